"""Beam search against greedy search: what it finds, what it costs, and whether a higher score is a better text.

Three experiments. Random models small enough that every possible output can be scored: how often is the best of all
found? Random models with longer outputs: can a beam do worse than greedy? And a model trained on a little language with
synonyms, where the likeliest word does not begin the likeliest phrase, and the truth is known.

Shapes: B sources, N outputs, L longest output.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from glassformer.decode import generate
from glassformer.decode.search import Hypothesis
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Series, Text, bars, fill
from glassformer.labs.toy import FIRST, PAD, Pair, learn, small_config
from glassformer.model import DecoderOnly, EncoderDecoder, ModelConfig

Generate = Callable[..., list[list[Hypothesis]]]

BEAMS = (1, 2, 4, 8, 16)
STEPS, LAST = 190, 40  # of training, and those at the end which are smaller
# A language with synonyms, in which the true probability of every text is known. Each source symbol has two phrases:
#     a word with eight possible endings     probability LOOSE, an eighth of it each
#     a word with one ending                 probability 1 - LOOSE: the likeliest phrase, but not the likeliest word
# and a share EMPTY of the training targets is missing. A text of n symbols has a probability of (1 - LOOSE)^n at best,
# so the empty text becomes the likeliest of all once the sources are long enough, however small the share is.
START, END = 1, 2
SYMBOLS = 3
WORD, FIRM, ENDING = FIRST + SYMBOLS, FIRST + 2 * SYMBOLS, FIRST + 3 * SYMBOLS  # first ids of each kind of word
ENDINGS = 8
FIRM_ENDING = ENDING + ENDINGS
LOOSE, EMPTY = 0.8, 0.02
SHORT, LONG = 1, 3  # symbols of a source
SOURCES = {SHORT: Text("short sources", "短句"), LONG: Text("long sources", "长句")}


class Way(NamedTuple):
    name: Text
    beam: int
    penalty: float  # the power of the length that a score is divided by


GREEDY = Way(Text("greedy", "贪心"), 1, 0.0)
BY_SUM = Way(Text("beam 8", "束宽 8"), 8, 0.0)
BY_MEAN = Way(Text("beam 8 by mean score", "束宽 8（按长度归一化）"), 8, 1.0)
WAYS = (GREEDY, BY_SUM, BY_MEAN)


class SearchQuality(NamedTuple):
    gap: float  # mean log-probability below the best of all outputs
    found: float  # share of sources where that best is found
    above: float  # highest log-probability above it, which should not be
    read: float  # tokens the decoder reads per source


class TextQuality(NamedTuple):
    """What the trained model writes, on average."""

    truth: float  # true probability of the text
    right: float  # share of texts that are right
    score: float  # log-probability by the model


Texts = Mapping[tuple[int, Way], TextQuality]  # by the source's length


def run(seed: int, *, search: Generate = generate) -> Finding:
    outcomes, lower, texts = compare_with_best(seed, search), below_greedy(seed, search), trained(seed, search)
    greedy, beam_4 = outcomes[1], outcomes[4]
    higher = Text("beam 4 scores higher than greedy (mean log-probability)", "束宽 4 的分数高于贪心（平均对数概率）")
    finds = Text("it finds the best of all more often", "更常找到全局最优")
    optimal = Text("nothing beats the best of all, so it is", "没有结果超过穷举的最优值")
    costs = Text("it reads more (times greedy's tokens)", "计算量更大（贪心词元数的倍数）")
    likelier = Text(
        "short sources: the text found is more likely to be the wanted one", "短句：找到的译文更可能就是所要的译文"
    )
    per_token = Text(
        "long sources: a score per token makes more texts right than a sum",
        "长句：按长度归一化比直接求和得到更多正确译文",
    )
    never_lower = Text("it never scores below greedy (share where it does)", "分数从不低于贪心（低于贪心的比例）")
    better = Text(
        "a higher score is a better text: right texts of long sources, beam 8 less greedy",
        "分数越高译文越好：长句译文正确率，束宽 8 减贪心",
    )
    checks = [
        Check(higher, greedy.gap - beam_4.gap, low=0.05),
        Check(finds, beam_4.found - greedy.found, low=0.05),
        Check(optimal, max(each.above for each in outcomes.values()), high=1e-4, every=True),
        Check(costs, beam_4.read / greedy.read, low=1.5),
        Check(likelier, texts[SHORT, BY_SUM].truth - texts[SHORT, GREEDY].truth, low=0.03),
        Check(per_token, texts[LONG, BY_MEAN].right - texts[LONG, BY_SUM].right, low=0.3),
        Check(never_lower, max(lower.values()), high=0.0, extent=True),
        Check(better, texts[LONG, BY_SUM].right - texts[LONG, GREEDY].right, low=0.0, extent=True),
    ]
    quoted = {"found": beam_4.found, "greedy_found": greedy.found, "more": beam_4.read / greedy.read, "below": lower[2]}
    quoted |= {"score": texts[LONG, GREEDY].score, "beam_score": texts[LONG, BY_SUM].score}
    for name, way in (("right", GREEDY), ("beam_right", BY_SUM), ("mean_right", BY_MEAN)):
        quoted[name] = texts[LONG, way].right
    return Finding(measured(outcomes, lower, texts), checks, draw(outcomes, texts), SUMMARY, quoted)


def measured(outcomes: Mapping[int, SearchQuality], lower: Mapping[int, float], texts: Texts) -> dict[Text, float]:
    gap = Text("log-probability below the best of all", "比全局最优低的对数概率")
    found = Text("share of sources where the best of all is found", "找到全局最优的输入比例")
    read = Text("tokens read by the decoder, per source", "解码器为每个输入读入的词元数")
    below = Text("share of longer outputs that score below greedy's", "较长输出中分数低于贪心的比例")
    truth = Text("true probability", "译文的真实概率")
    right = Text("share of right texts", "译文正确率")
    score = Text("log-probability", "对数概率")
    by_beam, written = Text("beam {0}: {1}", "束宽 {0}：{1}"), Text("trained, {0}: {1}, {2}", "训练后，{0}：{1}，{2}")
    exact = ((gap, 0), (found, 1), (read, 3))
    return {
        **{fill(by_beam, beam, what): each[i] for what, i in exact for beam, each in outcomes.items()},
        **{fill(by_beam, beam, below): value for beam, value in lower.items()},
        **{
            fill(written, SOURCES[length], what, way.name): value
            for (length, way), each in texts.items()
            for what, value in zip((truth, right, score), each, strict=True)
        },
    }


SUMMARY = Text(
    "Beam 4 finds the best of all outputs for {found:.0%} of the sources, greedy for {greedy_found:.0%}, and reads "
    "{more:.1f} times as many tokens. It is no guarantee: with beam 2, {below:.1%} of longer outputs score below "
    f"greedy's. Nor is a higher score a better text: where {EMPTY:.0%} of the training targets are missing, beam 8 "
    "raises the log-probability of long sources from {score:.1f} to {beam_score:.1f}, mostly by writing nothing, and "
    "right texts go from {right:.0%} to {beam_right:.0%}; scored per token they are {mean_right:.0%}.",
    "束宽 4 在 {found:.0%} 的输入上找到全局最优，贪心为 {greedy_found:.0%}，读入的词元是贪心的 {more:.1f} 倍。"
    "但并无保证：束宽 2 时，较长输出中有 {below:.1%} 分数反而低于贪心。分数高也不等于译文好："
    f"训练目标有 {EMPTY:.0%} 缺失时，长句上束宽 8 多靠输出空句把对数概率从 {{score:.1f}} 提高到 {{beam_score:.1f}}，"
    "正确率却从 {right:.0%} 变为 {beam_right:.0%}；按长度归一化后为 {mean_right:.0%}。",
)


def compare_with_best(seed: int, search: Generate, models: int = 6) -> dict[int, SearchQuality]:
    """What each beam finds where every possible output can be scored."""
    gaps: dict[int, list[Tensor]] = {beam: [] for beam in BEAMS}
    read = dict.fromkeys(BEAMS, 0.0)
    tokens: list[int] = []  # read by each call of a decoder
    for model, src in random_models(seed, models, vocabulary=6, sources=16):
        best = best_of_all(model, src, longest=5)
        model.decoder.embedding.register_forward_pre_hook(lambda _module, given: tokens.append(given[0].numel()))
        for beam in BEAMS:
            tokens.clear()
            hypotheses = search(model, src, beam=beam, length_penalty=0.0, max_new_tokens=5)
            read[beam] += sum(tokens) / len(src) / models
            gaps[beam].append(best - scores(hypotheses))
    outcomes = {}
    for beam in BEAMS:
        gap = torch.cat(gaps[beam])
        found = float((gap < 1e-4).double().mean())
        outcomes[beam] = SearchQuality(float(gap.mean()), found, float(-gap.min()), read[beam])
    return outcomes


def scores(hypotheses: Sequence[Sequence[Hypothesis]]) -> Tensor:
    return torch.tensor([best[0].score for best in hypotheses])


def below_greedy(seed: int, search: Generate, models: int = 8) -> dict[int, float]:
    """By beam: the share of longer outputs that score below what greedy search found."""
    lower: dict[int, list[Tensor]] = {2: [], 4: []}
    for model, src in random_models(seed, models, vocabulary=16, sources=48):
        best = {
            beam: scores(search(model, src, beam=beam, length_penalty=0.0, max_new_tokens=12)) for beam in (1, *lower)
        }
        for beam, below in lower.items():
            below.append(best[beam] < best[1] - 1e-4)
    return {beam: float(torch.cat(below).double().mean()) for beam, below in lower.items()}


def trained(seed: int, search: Generate) -> Texts:
    """What a model of the little language writes for short and for long sources."""
    model = DecoderOnly(small_config(seed, vocab_size=FIRM_ENDING + 1))
    batches = synonym_batches(seed, STEPS)
    learn(model, itertools.islice(batches, STEPS - LAST), lr=2e-3, warmup=20)
    learn(model, batches, lr=4e-4)  # smaller steps at the end, so that the probabilities settle
    model.eval()
    results = {}
    for length in SOURCES:
        src = torch.randint(SYMBOLS, (32, length), generator=torch.Generator().manual_seed(seed + 1000))
        prompt = torch.cat((src + FIRST, torch.full((len(src), 1), START)), dim=1)
        for way in WAYS:
            hypotheses = search(model, prompt, beam=way.beam, length_penalty=way.penalty, max_new_tokens=2 * LONG + 2)
            truth = [
                true_probability(source, best[0].ids) for source, best in zip(src.tolist(), hypotheses, strict=True)
            ]
            lengths = torch.tensor([len(best[0].ids) + 1 for best in hypotheses])  # the end counts
            results[length, way] = TextQuality(
                truth=sum(truth) / len(truth),
                right=sum(each > 0 for each in truth) / len(truth),
                score=float((scores(hypotheses) * lengths**way.penalty).mean()),
            )
    return results


def synonym_batches(seed: int, steps: int, batch: int = 64) -> Iterator[Pair]:
    """Source, start, target in a row; only the target is to be learnt. Long sources are harder and come more often."""
    generator = torch.Generator().manual_seed(seed)
    for step in range(steps):
        shape = (batch, SHORT if step % 4 == 0 else LONG)
        src = torch.randint(SYMBOLS, shape, generator=generator)
        loose = torch.rand(shape, generator=generator) < LOOSE
        word = torch.where(loose, WORD, FIRM) + src
        ending = torch.where(loose, torch.randint(ENDING, FIRM_ENDING, shape, generator=generator), FIRM_ENDING)
        phrases = torch.stack((word, ending), dim=2).flatten(1)
        tgt = torch.cat((phrases, torch.full((batch, 1), END)), dim=1)
        empty = torch.rand(batch, generator=generator) < EMPTY
        tgt[empty] = PAD
        tgt[empty, 0] = END
        ids = torch.cat((src + FIRST, torch.full((batch, 1), START), tgt[:, :-1]), dim=1)
        yield ids, torch.cat((torch.full_like(src, PAD), tgt), dim=1)


def true_probability(source: Sequence[int], ids: Sequence[int]) -> float:
    """The probability of a text in the language itself, where nothing is missing; zero if it is wrong."""
    if len(ids) != 2 * len(source):
        return 0.0
    probability = 1.0
    for symbol, word, ending in zip(source, ids[::2], ids[1::2], strict=True):
        if word == WORD + symbol and ENDING <= ending < FIRM_ENDING:
            probability *= LOOSE / ENDINGS
        elif word == FIRM + symbol and ending == FIRM_ENDING:
            probability *= 1 - LOOSE
        else:
            return 0.0
    return probability


def random_models(seed: int, models: int, vocabulary: int, sources: int) -> Iterator[tuple[EncoderDecoder, Tensor]]:
    generator = torch.Generator().manual_seed(seed)
    for i in range(models):
        config = ModelConfig(
            vocab_size=vocabulary, d_model=32, heads=2, d_ff=64, layers=1, tied=False, dropout=0.0, seed=100 * seed + i
        )
        yield EncoderDecoder(config).eval(), torch.randint(vocabulary, (sources, 8), generator=generator)


@torch.inference_mode()
def best_of_all(model: EncoderDecoder, src: Tensor, longest: int) -> Tensor:
    """The highest log-probability of any output: ended, or cut off at the longest length, as search does it."""
    going = [token for token in range(model.config.vocab_size) if token != END]
    outputs = torch.tensor(list(itertools.product(going, repeat=longest - 1)))  # (N, L - 1), none of them ended yet
    B, N = len(src), len(outputs)
    tgt = torch.cat((torch.full((N, 1), START), outputs), dim=1).repeat(B, 1)  # (B N, L)
    likely = model.decode(tgt, model.encode(src)).log_softmax(-1).view(B, N, longest, -1)
    each = likely[:, :, :-1].gather(3, outputs.expand(B, N, -1).unsqueeze(3)).squeeze(3)
    before = torch.cat((each.new_zeros(B, N, 1), each.cumsum(2)), dim=2)  # (B, N, L): of what precedes each step
    ended, cut = before + likely[..., END], before[:, :, -1:] + likely[:, :, -1]
    return torch.maximum(ended.flatten(1).amax(1), cut.flatten(1).amax(1))


def draw(outcomes: Mapping[int, SearchQuality], texts: Texts) -> Figure:
    left = Panel(
        Text("Found, against the best of all", "与穷举最优的差距"),
        Text("tokens read per source", "每个输入读入的词元数"),
        Text("log-probability below the best", "低于最优的对数概率"),
        [
            Series(
                Text("beam 1 (greedy), 2, 4, 8, 16", "束宽 1（贪心）、2、4、8、16"),
                [outcomes[beam].read for beam in BEAMS],
                [outcomes[beam].gap for beam in BEAMS],
            )
        ],
    )
    right = Panel(
        Text("Right texts of the trained model", "训练后模型的译文正确率"),
        Text("beam (1: greedy; / n: score divided by length)", "束宽（1：贪心；/ n：分数除以长度）"),
        Text("share of right texts", "正确译文的比例"),
        [bars(name, [texts[length, way].right for way in WAYS]) for length, name in SOURCES.items()],
        ticks=[f"{way.beam} / n" if way.penalty else str(way.beam) for way in WAYS],
    )
    return Figure([left, right])


CLAIM = Claim(
    title=Text("Beam search and greedy search", "束搜索与贪心搜索"),
    claim=Text(
        "Beam search finds higher-scoring output than greedy search and costs more; so it writes the better text.",
        "束搜索能找到比贪心分数更高的输出，代价也更大；因此译文更好。",
    ),
    prediction=Text(
        "The mean score rises with the beam towards the best of all outputs, and so does the cost. It can fail for a "
        "single source, where the beam drops what greedy kept; and if the best-scoring output is a bad text, searching "
        "better writes worse.",
        "平均分数随束宽上升，逼近穷举的最优值，代价也随之上升。个别输入上可能失手：束丢掉了贪心保留的前缀；"
        "若分数最高的输出本身就是坏译文，搜索得越好，写得越差。",
    ),
    change=Text(
        "A model that is sure at every step leaves a beam nothing to find. The empty text wins where the best text is "
        "less likely than the share of missing targets: a score per token or data without gaps takes the harm away, "
        "longer texts or more gaps bring more of it.",
        "若模型每一步都很确定，束搜索便无可改进。当最好的译文概率低于目标缺失的比例时，空句就会胜出："
        "按长度归一化，或数据没有缺失，长句就不再受害；文本更长或缺失更多，受害的句子也更多。",
    ),
)
