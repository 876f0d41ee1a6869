"""Greedy search stuck in repetition, and what stops it.

A small language of words, each of which may be followed by four others, with known probabilities. A model learns it to
its entropy; then it continues some texts by every way of decoding that ships. Two things are counted: texts that end
in what they have said before, and steps that the language does not have.

Shapes: N texts, T words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor

from glassformer.decode.generation import generate
from glassformer.decode.search import Sampling, Search
from glassformer.labs.experiment import Check, Claim, Figure, Finding, Panel, Text, bars, join
from glassformer.labs.toy import FIRST, Pair, final_loss, learn, loss_after, small_config
from glassformer.model import DecoderOnly

WORDS = 12
FOLLOWS = (0.4, 0.3, 0.2, 0.1)  # probabilities of the words that may follow one
STEPS, BATCH, LENGTH, RATE = 150, 16, 16, 1e-2
TEXTS, PROMPT, NEW = 20, 4, 40
LOOP = 8  # words at the end that stood in the text before

NAMES = {
    "text": Text("the language itself", "语料本身"),
    "certain": Text("true probabilities", "真实概率"),
    "greedy": Text("greedy", "贪心"),
    "beam": Text("beam of 4", "束宽 4"),
    "penalty": Text("penalty 1.3", "惩罚 1.3"),
    "ngram": Text("no 3-gram twice", "禁止重复"),
    "sampling": Text("sampling", "采样"),
}


def ways(seed: int) -> dict[str, Search]:
    return {
        "greedy": Search(),
        "beam": Search(beam=4),
        "penalty": Search(repetition_penalty=1.3),
        "ngram": Search(no_repeat_ngram=3),
        "sampling": Search(sampling=Sampling(seed=seed)),
    }


def word_table(seed: int) -> Tensor:
    """The probability of each word after each; (WORDS, WORDS)."""
    generator = torch.Generator().manual_seed(seed)
    table = torch.zeros(WORDS, WORDS)
    for row in table:
        row[torch.randperm(WORDS, generator=generator)[: len(FOLLOWS)]] = torch.tensor(FOLLOWS)
    return table


def sample_texts(table: Tensor, generator: torch.Generator, texts: int, length: int) -> Tensor:
    words = [torch.randint(WORDS, (texts,), generator=generator)]
    while len(words) < length:
        words.append(torch.multinomial(table[words[-1]], 1, generator=generator).squeeze(1))
    return FIRST + torch.stack(words, 1)  # (N, T)


def training_pairs(table: Tensor, seed: int) -> Iterator[Pair]:
    generator = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        text = sample_texts(table, generator, BATCH, LENGTH + 1)
        yield text[:, :-1], text[:, 1:]


def share_looping(texts: Tensor) -> float:
    """Texts whose last words stood in them before, one after the other."""
    windows = texts.unfold(1, LOOP, 1)  # (N, T - LOOP + 1, LOOP)
    return float((windows[:, :-1] == windows[:, -1:]).all(2).any(1).float().mean())


def share_foreign(texts: Tensor, table: Tensor) -> float:
    """New words that the language never has after the word before them."""
    before, after = texts[:, PROMPT - 1 : -1] - FIRST, texts[:, PROMPT:] - FIRST
    return float((table[before, after.clamp(0, WORDS - 1)] == 0).float().mean())


def write(model: DecoderOnly, prompts: Tensor, search: Search) -> Tensor:
    found = generate(model, prompts, search=search, max_new_tokens=NEW)
    return torch.cat((prompts, torch.tensor([list(best[0].ids) for best in found])), 1)


Write = Callable[[DecoderOnly, Tensor, Search], Tensor]


def run(seed: int, *, write: Write = write) -> Finding:
    table = word_table(seed)
    generator = torch.Generator().manual_seed(seed + 1_000_000)
    model = DecoderOnly(small_config(seed, layers=1, vocab_size=FIRST + WORDS, positions="relative", end_id=None))
    loss = final_loss(learn(model, training_pairs(table, seed), RATE))
    model.eval()
    prompts = sample_texts(table, generator, TEXTS, PROMPT)
    texts = {
        "text": sample_texts(table, generator, TEXTS, PROMPT + NEW),
        "certain": sample_texts(torch.eye(WORDS)[table.argmax(1)], generator, TEXTS, PROMPT + NEW),
        **{name: write(model, prompts, search) for name, search in ways(seed).items()},
    }
    looping = {name: share_looping(text) for name, text in texts.items()}
    foreign = {name: share_foreign(texts[name], table) for name in ways(seed)}
    chances = torch.tensor(FOLLOWS)
    entropy = float(-(chances * chances.log()).sum())
    loops = Text("texts that end in a loop", "以循环结尾的文本比例")
    odd = Text("words that the language does not have there", "语言中不会出现的接续比例")
    numbers = {
        Text("entropy of the next word, the lowest honest loss", "下一个词的熵，即不作弊所能达到的最低损失"): entropy,
        loss_after(STEPS): loss,
        **{join(loops, NAMES[name]): value for name, value in looping.items()},
        **{join(odd, NAMES[name]): value for name, value in foreign.items()},
    }
    learnt = Text("the model has learnt the language (loss / entropy)", "模型已学会这门语言（损失 / 熵）")
    penalty_stops = Text("a penalty on words said before stops it", "对说过的词加惩罚能避免循环")
    native = Text("what stops it writes nothing foreign to the language", "避免循环的方法不会写出语言中没有的接续")
    checks = [
        Check(learnt, loss / entropy, high=1.1),
        Check(Text("texts of the language do not end in a loop", "语料本身不以循环结尾"), looping["text"], high=0.1),
        Check(Text("greedy search ends in one", "贪心搜索以循环结尾"), looping["greedy"], low=0.8),
        Check(Text("sampling stops it", "采样能避免循环"), looping["sampling"], high=0.15),
        Check(Text("forbidding 3-grams stops it", "禁止重复 3 元组能避免循环"), looping["ngram"], high=0.15),
        Check(Text("a beam of 4 stops it", "束宽 4 能避免循环"), looping["beam"], high=0.15, extent=True),
        Check(penalty_stops, looping["penalty"], high=0.15, extent=True),
        Check(native, max(foreign["ngram"], foreign["sampling"]), high=0.001, extent=True),
    ]
    quoted = {**looping, "loss": loss, "foreign_ngram": foreign["ngram"], "foreign_sampling": foreign["sampling"]}
    summary = Text(
        f"The model learns the language to {{loss:.2f}} nats, its entropy being {entropy:.2f}. Continued greedily, "
        "{greedy:.0%} of the texts end in a loop, of the language's own {text:.0%}. Sampling leaves {sampling:.0%} and "
        "a ban on repeated 3-grams {ngram:.0%}, at the price of steps that the language does not have "
        "({foreign_sampling:.1%} and {foreign_ngram:.1%} of the words). A beam of 4 still loops in {beam:.0%}, a "
        "repetition penalty of 1.3 in {penalty:.0%}. It is not the model's fault: the likeliest word by the "
        "language's true probabilities, taken again and again, loops in {certain:.0%}.",
        f"模型学到的损失为 {{loss:.2f}}，语言本身的熵为 {entropy:.2f}。贪心续写时，{{greedy:.0%}} 的文本以循环结尾，"
        "语料本身为 {text:.0%}。采样时为 {sampling:.0%}，禁止重复 3 元组时为 {ngram:.0%}，代价是写出语言中没有的接续"
        "（分别占 {foreign_sampling:.1%} 和 {foreign_ngram:.1%}）。束宽 4 仍有 {beam:.0%} 循环，"
        "重复惩罚 1.3 仍有 {penalty:.0%}。这不是模型的错：即使用真实概率，每步取最可能的词也有 {certain:.0%} 循环。",
    )
    return Finding(numbers, checks, figure(looping, foreign), summary, quoted)


def figure(looping: Mapping[str, float], foreign: Mapping[str, float]) -> Figure:
    def panel(title: Text, y: Text, name: Text, shares: Mapping[str, float]) -> Panel:
        drawn = [bars(name, list(shares.values()))]
        return Panel(title, Text("way of decoding", "解码方式"), y, drawn, ticks=[NAMES[way] for way in shares])

    stuck, ends = Text("Stuck in repetition", "陷入重复"), Text("share of texts that end in a loop", "以循环结尾的比例")
    lacks, words = Text("What the language does not have", "语言中没有的接续"), Text("share of words", "占词数的比例")
    left = panel(stuck, ends, Text("looping", "循环"), looping)
    return Figure([left, panel(lacks, words, Text("foreign", "不合语言"), foreign)])


CLAIM = Claim(
    title=Text("Greedy search and repetition", "贪心搜索与重复"),
    claim=Text(
        "Greedy search easily repeats itself and gets stuck; beam search and other ways of decoding avoid it.",
        "贪心搜索容易重复、卡住；束搜索等其他解码方式可以避免。",
    ),
    prediction=Text(
        "Continued greedily, texts end in a loop though the language has none; with a beam, a penalty, a ban on "
        "repeated n-grams or sampling they do not.",
        "贪心续写的文本会以循环结尾，而语料本身没有；用束搜索、重复惩罚、禁止重复 n 元组或采样则不会。",
    ),
    change=Text(
        "A target that is nearly determined by a source, as in translation, where the likeliest next word is mostly "
        "the right one and the end comes in time; a stronger penalty, which stops loops by saying other things.",
        "如果目标几乎由源句决定（如翻译），最可能的词多半正确，也会及时结束，就少有循环；加大惩罚也能打断循环，"
        "但代价是改说别的内容。",
    ),
)
