"""Search against Hugging Face `generate`, against trying everything, and against itself."""

import itertools
import warnings
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_model import tiny

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError
from glassformer.decode import alternatives, score, stream
from glassformer.decode.greedy import RandomStreams
from glassformer.decode.scoring import align
from glassformer.weights.parity import Case, hugging_face, random_model, saved

SIZES = {
    "marian": {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
               "decoder_ffn_dim": 48, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64,
               "vocab_size": 40, "pad_token_id": 39, "eos_token_id": 0, "decoder_start_token_id": 39,
               "scale_embedding": True},
    "bart": {"d_model": 32, "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
             "decoder_ffn_dim": 48, "encoder_layers": 2, "decoder_layers": 2, "max_position_embeddings": 64,
             "vocab_size": 40},
    "t5": {"vocab_size": 40, "d_model": 32, "d_kv": 8, "num_heads": 4, "d_ff": 48, "num_layers": 2,
           "decoder_start_token_id": 0, "eos_token_id": 30},
    "gpt2": {"vocab_size": 40, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 64, "bos_token_id": 0,
             "eos_token_id": 0},
}  # fmt: skip
LLAMA = {"vocab_size": 40, "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
         "num_hidden_layers": 2, "intermediate_size": 48, "max_position_embeddings": 64, "eos_token_id": 2}  # fmt: skip
SIZES |= {
    "mbart": SIZES["bart"],
    "m2m_100": SIZES["bart"],
    "pegasus": SIZES["marian"] | {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0},
    "llama": LLAMA,
    "mistral": LLAMA | {"sliding_window": None},
    "qwen2": LLAMA | {"bos_token_id": 1},
}
THOROUGH = ("marian", "bart", "t5", "gpt2")  # what they leave open for the others is how a family's logits come to be
LIMIT = 12
# A fresh model says much the same whatever it reads, and never ends. Found by trying: by how much to multiply matrices,
# embeddings, the end token's embedding and the last norm, and what to add to the end token's logit.
LIVELY = {
    "marian": (12, 6, 1, 3, 2.0),
    "bart": (12, 3, 1, 6, 2.0),
    "t5": (4, 2, 1.5, 1, 0.0),
    "gpt2": (10, 6, 2, 1, 0.0),
    "mbart": (20, 6, 5, 1, 0.0),
    "m2m_100": (20, 1, 1, 1, 0.0),
    "pegasus": (20, 6, 5, 1, 0.0),
    "llama": (20, 1, 3, 1, 0.0),
    "mistral": (20, 1, 3, 1, 0.0),
    "qwen2": (12, 1, 2, 1, 0.0),
}


def lively(family):
    """A random model whose outputs vary with their source, in length too."""
    peer = random_model(Case(family, "search", SIZES[family], 2))
    matrices, embeddings, end, norm, bias = LIVELY[family]
    with torch.no_grad():
        for name, p in peer.named_parameters():
            if p.dim() > 1 and "embed_positions" not in name:  # Marian's table is not saved but computed
                p *= embeddings if any(word in name for word in ("embed", "shared", "wte", "wpe")) else matrices
        peer.get_output_embeddings().weight[peer.config.eos_token_id] *= end
        if bias:
            peer.model.decoder.layers[-1].final_layer_norm.weight *= norm
            peer.final_logits_bias[0, peer.config.eos_token_id] += bias
    return peer


def pair(family, count):
    peer = lively(family)
    with saved(peer, Case(family, "search", SIZES[family], 2)) as folder:
        model = gf.load_model(folder)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(3, 38, (count, 9), generator=generator)
    mask = torch.arange(9) < torch.randint(1, 10, (count, 1), generator=generator)
    return peer, model, ids, mask


def peer_answer(peer, ids, mask, beam, penalty, early=False, **more):
    if not peer.config.is_encoder_decoder:  # padding belongs on the left of a prompt
        order = mask.int().argsort(dim=1, stable=True)
        ids, mask = ids.gather(1, order), mask.gather(1, order)
    pad = peer.config.pad_token_id if peer.config.pad_token_id is not None else 0
    found = peer.generate(
        input_ids=ids.masked_fill(~mask, pad), attention_mask=mask.long(), num_beams=beam, do_sample=False,
        max_new_tokens=LIMIT, length_penalty=penalty, return_dict_in_generate=True, output_scores=True,
        early_stopping=early, pad_token_id=pad, **more,
    )  # fmt: skip
    start = 1 if peer.config.is_encoder_decoder else ids.shape[1]
    end = peer.config.eos_token_id
    rows = []
    for row in found.sequences[:, start:].tolist():
        rows.append(row[: row.index(end)] if end in row else row)
    return rows, None if beam == 1 else found.sequences_scores.tolist()


@pytest.mark.parametrize(
    "family", ["marian", "gpt2", *(pytest.param(family, marks=pytest.mark.long) for family in ("bart", "t5"))]
)
def test_the_same_tokens_and_scores_as_hugging_face(family):
    """Their default rule for stopping is `huggingface` here; `exact` goes on until nothing better can come, as their
    "never" does, and can only find better ones."""
    hugging_face()
    peer, model, ids, mask = pair(family, 100)
    finished = better = 0
    said = set()
    for beam, penalty in ((1, 1.0), (2, 0.6), (4, 1.0), (5, 2.0), (4, 2.0)):
        found = {
            stopping: [
                best[0]
                for best in gf.generate(
                    model, ids, mask, beam=beam, length_penalty=penalty, max_new_tokens=LIMIT, stopping=stopping
                )
            ]
            for stopping in ("huggingface", "exact")
        }
        rules = [("huggingface", False)] + [("exact", "never")] * (penalty == 2.0)
        for stopping, early in rules:
            theirs, scores = peer_answer(peer, ids, mask, beam, penalty, early)
            finished += sum(0 < len(row) < LIMIT - 1 for row in theirs)
            said |= set(map(tuple, theirs))
            for i, (their, our) in enumerate(zip(theirs, found[stopping], strict=True)):
                if scores is not None:
                    assert our.score == pytest.approx(scores[i], abs=1e-4), (beam, penalty, early, i)
                assert our.ids == their, (beam, penalty, early, i)
        for early, late in zip(found["huggingface"], found["exact"], strict=True):
            assert late.score >= early.score - 1e-6
            better += late.score > early.score + 1e-4
    assert finished > 20  # the comparison is of sentences that end, not only of ones cut off,
    assert len(said) > 100  # that are not all the same,
    assert better > 2  # and of rules that differ


@pytest.mark.parametrize("family", THOROUGH)
def test_repetitions_are_treated_as_by_hugging_face(family):
    """The penalty is compared in greedy search only: ours always changes the logits, before the softmax makes
    probabilities of them; theirs, in beam search, divides log-probabilities, which then no longer sum to one."""
    hugging_face()
    peer, model, ids, mask = pair(family, 60)
    if family == "gpt2":
        mask = torch.ones_like(mask)  # theirs counts padding before a prompt as said, ours does not
    plain = [best[0].ids for best in gf.generate(model, ids, mask, max_new_tokens=LIMIT)]
    for beam, ngram, penalty in [(1, 2, 1.0), (1, 3, 1.0), (4, 2, 1.0), (4, 3, 1.0), (1, 0, 1.3)]:
        theirs, _ = peer_answer(peer, ids, mask, beam, 1.0, no_repeat_ngram_size=ngram, repetition_penalty=penalty)
        ours = gf.generate(
            model, ids, mask, beam=beam, max_new_tokens=LIMIT, stopping="huggingface", no_repeat_ngram=ngram,
            repetition_penalty=penalty,
        )  # fmt: skip
        assert [best[0].ids for best in ours] == theirs, (beam, ngram, penalty)
        assert theirs != plain


@pytest.mark.parametrize("family", [family for family in SIZES if family not in THOROUGH])
def test_the_same_tokens_in_every_other_family(family):
    hugging_face()
    peer, model, ids, mask = pair(family, 40)
    finished, said = 0, set()
    for beam in (1, 4):
        theirs, _ = peer_answer(peer, ids, mask, beam, 1.0)
        ours = gf.generate(model, ids, mask, beam=beam, max_new_tokens=LIMIT, stopping="huggingface")
        assert [best[0].ids for best in ours] == theirs, beam
        finished += sum(0 < len(row) < LIMIT - 1 for row in theirs)
        said |= set(map(tuple, theirs))
    assert finished > 10
    assert len(said) > 15


def divisor(length, penalty, rule):
    return (length if rule == "average" else (5 + length) / 6) ** penalty


@pytest.mark.parametrize("rule", ["average", "gnmt"])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
@torch.no_grad()
def test_a_full_beam_finds_the_true_optimum(seed, rule):
    model, src = tiny(seed), torch.tensor([[3, 4, 3]])
    everything = []
    for length in range(1, 5):
        for ids in itertools.product(range(5), repeat=length):
            if 2 in ids[:-1] or (length < 4 and ids[-1] != 2):
                continue
            logits = model(src, torch.tensor([[1, *ids[:-1]]])).log_softmax(-1)[0]
            everything.append((sum(logits[t, token].item() for t, token in enumerate(ids)), ids))
    for penalty in (0.0, 0.6, 1.0, 2.0):
        total, ids = max((total / divisor(len(ids), penalty, rule), ids) for total, ids in everything)
        options = {"beam": 5**4, "length_penalty": penalty, "length_rule": rule, "max_new_tokens": 4}
        found = gf.generate(model, src, **options)[0][0]
        assert found.score == pytest.approx(total, abs=1e-5)
        assert found.ids == [token for token in ids if token != 2]


@given(st.integers(0, 20), st.integers(1, 4), st.integers(1, 5), st.permutations(range(4)))
@settings(max_examples=25, deadline=None)
def test_output_does_not_depend_on_the_batch(seed, beam, extra, order):
    model = tiny(seed)
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(3, 5, (4, 5), generator=generator)
    mask = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    together = gf.generate(model, src, mask, beam=beam, max_new_tokens=6)
    wide = torch.nn.functional.pad(src, (0, extra))
    wide_mask = torch.nn.functional.pad(mask, (0, extra))
    shuffled = gf.generate(model, wide[list(order)], wide_mask[list(order)], beam=beam, max_new_tokens=6)
    for place, i in enumerate(order):
        alone = gf.generate(model, src[i : i + 1, : mask[i].sum()], beam=beam, max_new_tokens=6)[0][0]
        for other in (together[i][0], shuffled[place][0]):
            assert other.score == pytest.approx(alone.score, abs=1e-4)
            assert other.ids == alone.ids


def same(one, other):
    """But for rounding: of one search fewer sentences may be left in a step's batch than of the other."""
    assert one.score == pytest.approx(other.score, abs=1e-6)
    assert replace(one, score=other.score) == other


@given(st.integers(0, 30), st.integers(2, 5), st.sampled_from([0.0, 0.6, 1.0, 2.0]))
@settings(max_examples=25, deadline=None)
@torch.no_grad()
def test_n_best_is_sorted_starts_with_the_best_and_its_scores_are_true(seed, beam, penalty):
    model = tiny(seed)
    src = torch.randint(3, 5, (2, 4), generator=torch.Generator().manual_seed(seed))
    one = gf.generate(model, src, beam=beam, length_penalty=penalty, max_new_tokens=6)
    many = gf.generate(model, src, beam=beam, nbest=beam, length_penalty=penalty, max_new_tokens=6)
    for i, (single, several) in enumerate(zip(one, many, strict=True)):
        same(single[0], several[0])
        assert [h.score for h in several] == sorted((h.score for h in several), reverse=True)
        for h in several:
            ids = h.ids + ([2] if len(h.ids) < 6 else [])
            logits = model(src[i : i + 1], torch.tensor([[1, *ids[:-1]]])).log_softmax(-1)[0]
            total = sum(logits[t, token].item() for t, token in enumerate(ids))
            assert h.score == pytest.approx(total / len(ids) ** penalty, abs=1e-4)


@given(st.integers(0, 30), st.integers(1, 4), st.sampled_from([0.0, 1.0, 2.0]), st.sampled_from(["average", "gnmt"]))
@settings(max_examples=25, deadline=None)
def test_scoring_the_output_gives_its_score(seed, beam, penalty, rule):
    model = tiny(seed)
    src = torch.randint(3, 5, (4, 5), generator=torch.Generator().manual_seed(seed))
    mask = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    options = {"length_penalty": penalty, "length_rule": rule}
    found = [h[0] for h in gf.generate(model, src, mask, beam=beam, max_new_tokens=8, **options)]
    ended = [i for i, h in enumerate(found) if len(h.ids) < 8]  # the others were cut off before their end
    scores = score(model, src, [h.ids for h in found], mask, **options)
    for i in ended:
        assert found[i].score == pytest.approx(scores[i], abs=1e-4)


@given(
    st.integers(0, 30),
    st.integers(1, 4),
    st.lists(st.lists(st.sampled_from([0, 1, 3, 4]), max_size=5), min_size=3, max_size=3),
)
@settings(max_examples=25, deadline=None)
def test_a_prefix_is_kept_and_scored(seed, beam, prefix):
    model = tiny(seed)
    src = torch.randint(3, 5, (3, 5), generator=torch.Generator().manual_seed(seed))
    found = gf.generate(model, src, beam=beam, prefix=prefix, max_new_tokens=8)
    for i, (h, wanted) in enumerate(zip(found, prefix, strict=True)):
        assert h[0].ids[: len(wanted)] == wanted
        if len(h[0].ids) < 8:
            assert h[0].score == pytest.approx(score(model, src[i : i + 1], [h[0].ids])[0], abs=1e-4)


@given(st.integers(0, 30), st.integers(2, 4), st.sampled_from([1.0, 1.5]), st.integers(0, 3), st.booleans())
@settings(max_examples=25, deadline=None)
def test_under_constraints_the_first_of_n_best_is_the_best(seed, beam, penalty, ngram, begun):
    model = tiny(seed)
    src = torch.randint(3, 5, (3, 5), generator=torch.Generator().manual_seed(seed))
    options = {"beam": beam, "repetition_penalty": penalty, "no_repeat_ngram": ngram, "max_new_tokens": 7}
    options["prefix"] = [[3], [4, 3], []] if begun else None
    one, many = gf.generate(model, src, **options), gf.generate(model, src, nbest=beam, **options)
    for single, several in zip(one, many, strict=True):
        same(single[0], several[0])
        assert [h.score for h in several] == sorted((h.score for h in several), reverse=True)
        for h in several if ngram else []:
            grams = list(zip(*(h.ids[k:] for k in range(ngram)), strict=False))
            assert len(set(grams)) == len(grams)


@given(st.integers(0, 30), st.lists(st.sampled_from([3, 4]), max_size=3), st.integers(0, 2), st.booleans())
@settings(max_examples=25, deadline=None)
def test_a_stream_is_what_search_finds(seed, prefix, ngram, drawn):
    model = tiny(seed)
    src = torch.randint(3, 5, (1, 5), generator=torch.Generator().manual_seed(seed))
    options = {"sampling": gf.Sampling(seed=seed) if drawn else None, "no_repeat_ngram": ngram, "max_new_tokens": 9}
    found = gf.generate(model, src, prefix=[prefix], **options)[0][0]
    assert list(stream(model, src, prefix=prefix, **options)) == found.ids


@given(st.integers(0, 30), st.lists(st.sampled_from([3, 4]), max_size=3))
@settings(max_examples=25, deadline=None)
@torch.no_grad()
def test_alternatives_are_sorted_and_the_first_is_what_greedy_search_takes(seed, prefix):
    model, src = tiny(seed), torch.tensor([[3, 4, 4]])
    found = alternatives(model, src, prefix, 5)
    assert sorted(token for token, _ in found) == [0, 1, 2, 3, 4]
    assert [value for _, value in found] == sorted((value for _, value in found), reverse=True)
    torch.testing.assert_close(sum(torch.tensor(value).exp() for _, value in found), torch.tensor(1.0))
    greedy = gf.generate(model, src, prefix=[prefix], max_new_tokens=len(prefix) + 1)[0][0].ids
    assert [*greedy, 2][len(prefix)] == found[0][0]
    for wrong, words in (({"count": 9}, "count=9"), ({"src": src.expand(2, 3)}, "2 were given")):
        with pytest.raises(InputError, match=words):
            alternatives(model, **({"src": src} | wrong))


@given(st.integers(0, 30), st.lists(st.lists(st.sampled_from([0, 1, 3, 4]), max_size=5), min_size=3, max_size=3))
@settings(max_examples=25, deadline=None)
def test_every_target_token_has_a_partner_among_the_real_source_tokens(seed, targets):
    model = tiny(seed)
    src = torch.randint(3, 5, (3, 5), generator=torch.Generator().manual_seed(seed))
    src[0, 4] = 2  # an end mark, which is no partner
    lengths = [5, 2, 3]
    mask = torch.arange(5) < torch.tensor(lengths).unsqueeze(1)
    found = align(model, src, targets, mask)
    assert [[t for t, _ in pairs] for pairs in found] == [list(range(len(ids))) for ids in targets]
    assert all(0 <= s < most for pairs, most in zip(found, (4, 2, 3), strict=True) for _, s in pairs)
    for i, ids in enumerate(targets):
        assert align(model, src[i : i + 1, : lengths[i]], [ids]) == found[i : i + 1]
    assert not any(module._forward_hooks for module in model.modules())  # it watches a copy


def test_what_is_sampled_depends_on_seed_and_sentence_only():
    model = tiny(1)
    src = torch.randint(3, 5, (6, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.arange(7) < torch.tensor([[7], [2], [3], [5], [6], [4]])
    draw = gf.Sampling(seed=5, temperature=1.5)
    first = gf.generate(model, src, mask, sampling=draw, max_new_tokens=10)
    assert first == gf.generate(model, src, mask, sampling=draw, max_new_tokens=10)
    assert first != gf.generate(model, src, mask, sampling=gf.Sampling(seed=6, temperature=1.5), max_new_tokens=10)
    order = [4, 0, 5, 2]
    again = gf.generate(model, src[order], mask[order], sampling=draw, max_new_tokens=10)
    assert [h[0].ids for h in again] == [first[i][0].ids for i in order]
    for i in range(6):
        alone = gf.generate(model, src[i : i + 1, : mask[i].sum()], sampling=draw, max_new_tokens=10)
        assert alone[0][0].ids == first[i][0].ids
    likeliest = gf.generate(model, src, mask, max_new_tokens=10)
    for greedy in (gf.Sampling(top_k=1), gf.Sampling(top_p=1e-6), gf.Sampling(temperature=1e-4)):
        found = gf.generate(model, src, mask, sampling=greedy, max_new_tokens=10)
        assert [h[0].ids for h in found] == [h[0].ids for h in likeliest]


def test_sampling_follows_the_distribution_and_its_filters():
    probabilities = torch.tensor([0.5, 0.25, 0.15, 0.1])
    src = torch.arange(8000).unsqueeze(1)
    rows = probabilities.log().expand(8000, 4)
    for sampling, expected in (
        (gf.Sampling(), probabilities),
        (gf.Sampling(top_k=2), torch.tensor([2 / 3, 1 / 3, 0, 0])),
        (gf.Sampling(top_p=0.7), torch.tensor([2 / 3, 1 / 3, 0, 0])),
        (gf.Sampling(temperature=0.5), probabilities**2 / (probabilities**2).sum()),
    ):
        scores, tokens = RandomStreams(sampling, src, None).choose(rows, torch.arange(8000))
        share = tokens.bincount(minlength=4) / 8000
        assert (share - expected).abs().max() < 0.02
        torch.testing.assert_close(scores, probabilities.log()[tokens])


def test_wrong_use_is_refused():
    model, src = tiny(0), torch.tensor([[3]])
    for wrong in ({"temperature": 0.0}, {"top_k": -1}, {"top_p": 1.5}):
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))}="):
            gf.Sampling(**wrong)
    for prefix, words in (([[3], [3]], "2 prefixes"), ([[9]], "vocabulary of 5"), ([[3] * 200], "200 tokens")):
        with pytest.raises(InputError, match=words):
            gf.generate(model, src, prefix=prefix)
    with pytest.raises(InputError, match="2 targets were given for 1 sources"):
        align(model, src, [[3], [4]])
    for function, missing in ((align, "start_id"), (score, "start_id"), (score, "end_id")):
        with pytest.raises(ConfigError, match=rf"{missing}=None.*set it"):
            function(small(**{missing: None}), src, [[3]])


def small(kind=gf.EncoderDecoder, **options):
    return kind(gf.ModelConfig(vocab_size=5, d_model=8, heads=2, d_ff=8, layers=1, max_length=16, **options)).eval()


@pytest.mark.parametrize("search", [gf.generate, stream])
def test_what_cannot_be_written_from_is_told_before_any_work(search):
    src, nothing = torch.tensor([[3, 4, 3]]), torch.empty(1, 0, dtype=torch.long)
    for error, model, ids, words in (
        (InputError, small(gf.EncoderOnly), src, "type EncoderOnly; it must be EncoderDecoder or DecoderOnly"),
        (ConfigError, small(start_id=None), src, "start_id=None.*set it"),
        (InputError, small(), src[:0], r"shape \(0, 3\) is an empty batch"),
        (InputError, small(), nothing, "source 0 has no tokens"),
        (InputError, small(gf.DecoderOnly), nothing, "source 0 has no tokens"),
        (InputError, small(), src[0], r"ids have shape \(3,\)"),
        (InputError, small(gf.DecoderOnly), torch.full((1, 17), 3), "17 tokens is longer than the position table"),
    ):
        with pytest.raises(error, match=words):
            search(model, ids)
    mask = torch.tensor([[True, False, False], [False, False, False]])
    with pytest.raises(InputError, match="source 1 has no tokens"):
        gf.generate(small(), src.expand(2, 3), mask)


@pytest.mark.parametrize("search", [gf.generate, stream])
def test_what_is_written_fits_the_position_table(search):
    """Unless told otherwise, as much as fits; more than fits is refused at once, not when the table has ended."""
    src = torch.tensor([[3, 4, 3]])

    def length(model, limit=None):
        found = search(model, src, max_new_tokens=limit)
        return len(found[0][0].ids if isinstance(found, list) else list(found))

    for kind, fits in ((gf.EncoderDecoder, 16), (gf.DecoderOnly, 14)):
        model = small(kind, end_id=None)
        assert length(model) == length(model, fits) == fits
        with pytest.raises(ConfigError, match=f"max_new_tokens={fits + 1} is too many.*of 16 has room for {fits}"):
            search(model, src, max_new_tokens=fits + 1)
        assert length(small(kind, end_id=None, positions="rotary")) == 128


def test_dropout_while_writing_is_told():
    model, src = small(dropout=0.1), torch.tensor([[3, 4]])
    with pytest.warns(UserWarning, match=r"training mode.*model\.eval"):
        gf.generate(model.train(), src)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gf.generate(model.eval(), src)
        gf.generate(small(dropout=0.0).train(), src)


@pytest.mark.parametrize(
    ("asked", "words"),
    [(([[3]],), "src=.* is of type list; it must be Tensor"), ((torch.tensor([[3]]), 4), "src_mask=4 is of type int")],
)
def test_what_is_no_tensor_is_told(asked, words):
    with pytest.raises(InputError, match=words):
        gf.generate(small(), *asked)
    with pytest.raises(InputError, match=r"its `.model`"):
        gf.generate(SimpleNamespace(model=small()), torch.tensor([[3]]))
