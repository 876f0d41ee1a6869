"""Every lab is complete: its verdict as it ships and with a broken part, a chapter, the READMEs' count."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from glassformer.decode import generate
from glassformer.labs import (
    NAMES,
    Verdict,
    activations,
    beam_search,
    causal_mask,
    concatenation,
    distance,
    dropout,
    embedding_scale,
    find,
    heads,
    identity,
    initialisation,
    kv_cache,
    layout,
    length,
    memories,
    norm_kind,
    norm_placement,
    padding,
    permutation,
    repetition,
    residuals,
    scaling,
    sinusoids,
    smoothing,
    softmax_axis,
    teacher_forcing,
)
from glassformer.labs.experiment import CheckOutcome
from glassformer.labs.figures import Text
from glassformer.labs.residuals import remove_residuals
from glassformer.labs.seeds import merge
from glassformer.model import Cache, DecoderOnly, EncoderDecoder, EncoderOnly
from glassformer.model.attention import Attention
from glassformer.model.embedding import PositionTable
from glassformer.model.layer import FeedForward, Residual
from glassformer.model.loss import smoothed_cross_entropy

ROOT = Path(__file__).parents[2]
LANGUAGES = ("en", "zh")
SAME_IN_EVERY_LANGUAGE = r"[a-z]|[\d /n]+|b?float\d+"  # a letter, a number, a type
HOLD, FAIL = ("kv_cache", "causal_mask", "teacher_forcing", "smoothing"), ("length",)  # the others hold with limits
QUICK = (  # the others train for seconds
    "scaling", "kv_cache", "sinusoids", "padding", "teacher_forcing", "memories", "smoothing", "layout", "repetition",
)  # fmt: skip


def passed(check):
    return check.outcome is CheckOutcome.PASSED


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name not in QUICK)) for name in NAMES])
def test_a_lab_as_it_ships(name):
    finding = find(name).run(0)
    merged = merge([finding])
    assert merged.verdict is (Verdict.HOLDS if name in HOLD else Verdict.FAILS if name in FAIL else Verdict.LIMITED)
    if name == "length":
        assert passed(merged.checks[0])  # all kinds have learnt the task
    summary = merged.summary
    assert finding.quoted
    assert not re.search(r"[{}]", summary.en + summary.zh)
    for language in LANGUAGES:
        assert all(re.search(rf"{{{quoted}:", finding.summary.say(language)) for quoted in finding.quoted)
        assert len({number.say(language) for number in finding.numbers}) == len(finding.numbers)  # no two of one name
    assert all(re.search("[一-鿿]", number.zh) for number in finding.numbers)
    for panel in finding.figure.panels:
        for tick in (*panel.ticks, *panel.rows):
            assert isinstance(tick, Text) or re.fullmatch(SAME_IN_EVERY_LANGUAGE, tick)


@pytest.mark.parametrize("name", NAMES)
def test_a_lab_is_tested_with_a_broken_part(name):
    assert f"{name}.run(" in Path(__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_chapter_names_every_lab(language):
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / language).glob("*.md"))
    named = {name.replace("-", "_") for name in re.findall(r"glassformer lab ([\w-]+)", pages)}
    assert [name for name in NAMES if name not in named] == []


@pytest.mark.parametrize(("readme", "count"), [("README.md", r"(\d+) labs"), ("README.zh-CN.md", r"(\d+) 个实验")])
def test_the_readmes_count_the_labs(readme, count):
    text = (ROOT / readme).read_text(encoding="utf-8")
    assert re.findall(count, text) == [str(len(NAMES))], "the words for the number and the verdicts' numbers too"


class DividedByWidth(Attention):
    """Scores over d_k, the square root forgotten."""

    def __init__(self, config):
        super().__init__(config)
        self.scale = config.score_scale or 1 / config.d_head


def test_scaling_by_the_width_itself(monkeypatch):
    monkeypatch.setattr(scaling, "STEPS", 10)  # it is seen before any training
    finding = merge([scaling.run(0, part=DividedByWidth)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[0])


def test_scaling_that_makes_no_difference_to_training(monkeypatch):
    monkeypatch.setattr(scaling, "TRAINED", 4)  # so narrow a head needs no scale
    monkeypatch.setattr(scaling, "STEPS", 40)
    finding = merge([scaling.run(0)])
    assert [passed(check) for check in finding.checks[:6]] == [True] * 5 + [False]


def always_post(config):
    """A model whose Pre-LN normalises the stream after all."""
    model = EncoderOnly(config)
    for module in model.modules():
        if isinstance(module, Residual):
            module.pre = False
    return model


def test_norm_placement_without_the_identity_path(monkeypatch):
    monkeypatch.setattr(norm_placement, "STEPS", 10)
    finding = merge([norm_placement.run(0, build=always_post)])
    assert finding.verdict is Verdict.FAILS
    assert not any(passed(check) for check in finding.checks[:3])  # it is seen in the gradient, before any training


def test_residuals_that_add_nothing(monkeypatch):
    monkeypatch.setattr(residuals, "STEPS", 10)
    finding = merge([residuals.run(0, build=lambda config: residuals.remove_residuals(EncoderOnly(config)))])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[4])  # positions become alike, before any training


def test_norm_kind_with_a_norm_that_looks_at_the_batch(monkeypatch):
    monkeypatch.setattr(norm_kind, "STEPS", 10)
    finding = merge([norm_kind.run(0, build=norm_kind.with_batch_norm)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[0])
    assert not passed(finding.checks[2])


def scaled_by_the_width(config):
    model = EncoderOnly(config)
    model.encoder.embedding.scale = config.d_model
    return model


def test_embedding_scale_by_the_width_itself(monkeypatch):
    monkeypatch.setattr(embedding_scale, "STEPS", 10)
    finding = merge([embedding_scale.run(0, build=scaled_by_the_width)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[1])


class EachColumnItsOwnFrequency(PositionTable):
    """A common slip: the exponent runs over columns, so that a sine and its cosine no longer belong together."""

    def __init__(self, config):
        super().__init__(config)
        frequency = 10_000.0 ** (-torch.arange(config.d_model) / config.d_model)
        angle = torch.arange(config.max_length).unsqueeze(1) * frequency
        self.table = torch.where(torch.arange(config.d_model) % 2 == 0, angle.sin(), angle.cos())


def test_sinusoids_with_a_frequency_for_each_column():
    assert merge([sinusoids.run(0, positions=EachColumnItsOwnFrequency)]).verdict is Verdict.FAILS


def test_permutation_where_one_kind_of_positions_is_none(monkeypatch):
    monkeypatch.setattr(permutation, "STEPS", 20)  # it is seen before any training
    assert merge([permutation.run(0, without="alibi")]).verdict is Verdict.FAILS


class OnePatternForAll(Attention):
    """Heads that add up their scores and all look the same way: one wide head in disguise."""

    def attend(self, q, k, v, mask, cache):
        scores = (q @ k.transpose(-2, -1)).sum(1, keepdim=True) / (self.heads * self.d_head) ** 0.5
        return torch.softmax(scores, -1) @ v


def test_heads_that_all_look_the_same_way(monkeypatch):
    monkeypatch.setattr(heads, "MOST", 150)  # twice what several heads need
    assert merge([heads.run(0, attention=OnePatternForAll)]).verdict is Verdict.FAILS


def added_on_top(logits, labels, e, pad):
    """Smoothing added to the full one-hot loss: the wanted shares then sum to more than one."""
    return smoothed_cross_entropy(logits, labels, e, pad) + e * smoothed_cross_entropy(logits, labels, 0.0, pad)


def test_smoothing_added_to_the_full_loss():
    assert merge([smoothing.run(0, loss=added_on_top)]).verdict is Verdict.FAILS


class ValuesOfTheNeighbour(FeedForward):
    """What is seen of a neuron is another's: keys and values no longer belong together."""

    def forward(self, x):
        hidden = self.activation(self.up(x))
        self.hidden(hidden.roll(1, -1))
        return self.down(hidden)


class WithoutActivation(FeedForward):
    """Two matrices in a row, which are one: no pair of letters can be recognised by it."""

    def forward(self, x):
        return self.down(self.hidden(self.up(x)))


@pytest.mark.long
def test_memories_whose_keys_and_values_do_not_belong_together_or_that_recognise_nothing():
    other = merge([memories.run(0, feed_forward=ValuesOfTheNeighbour)])
    assert [passed(check) for check in other.checks[:2]] == [True, False]
    linear = merge([memories.run(0, feed_forward=WithoutActivation)])
    assert not passed(linear.checks[0])
    assert linear.verdict is other.verdict is Verdict.FAILS


def test_layout_with_a_cache_of_transposed_views():
    assert merge([layout.run(0, keep=lambda k, v: (k, v))]).verdict is Verdict.FAILS


def leaking(kind):
    """A model of this kind whose queries see one token too many: the very one they are to predict."""

    def build(config):
        model = kind(config)
        shipped = model.decoder.attention_mask

        def attention_mask(queries, keys, visible):
            everything = torch.ones((1, 1, 1, len(keys)), dtype=torch.bool)
            return shipped(queries + 1, keys, everything if visible is None else visible)

        model.decoder.attention_mask = attention_mask
        return model

    return build


def test_teacher_forcing_with_a_leaking_mask():
    assert merge([teacher_forcing.run(0, build=leaking(EncoderDecoder))]).verdict is Verdict.FAILS


class Late(Cache):
    """Takes every new token for the one before it."""

    def admit(self, ids, mask):
        held = super().admit(ids, mask)
        return held._replace(positions=(held.positions - 1).clamp_min(0))


def test_kv_cache_off_by_one():
    def late(model, capacity):
        return Late(len(model.decoder.blocks), capacity)

    assert merge([kv_cache.run(0, make_cache=late)]).verdict is Verdict.FAILS


def test_causal_mask_that_leaks(monkeypatch):
    monkeypatch.setattr(causal_mask, "STEPS", 40)  # it is seen before any training
    assert merge([causal_mask.run(0, build=leaking(DecoderOnly))]).verdict is Verdict.FAILS


class Forgetful(EncoderDecoder):
    """Takes padding for words."""

    def forward(self, src, tgt, src_mask=None):
        return super().forward(src, tgt)


def test_padding_that_is_not_masked():
    assert merge([padding.run(0, build=Forgetful)]).verdict is Verdict.FAILS


def test_padding_with_a_softmax_that_divides_by_zero():
    assert merge([padding.run(0, softmax=padding.plain)]).verdict is Verdict.FAILS


@pytest.mark.long
def test_beam_search_that_forgets_its_beams():
    def narrow(model, src, beam, **options):
        return generate(model, src, beam=1, **options)

    assert merge([beam_search.run(0, search=narrow)]).verdict is Verdict.FAILS


@pytest.mark.long
def test_distance_with_a_recurrence_in_the_place_of_attention():
    finding = merge([distance.run(0, build=distance.Recurrent)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[1])  # its gradient does not arrive
    assert not passed(finding.checks[3])  # and it does not learn


@pytest.mark.long
def test_softmax_axis_where_the_shipped_attention_has_the_mistake():
    finding = merge([softmax_axis.run(0, part=softmax_axis.OverQueries)])
    assert finding.verdict is Verdict.FAILS
    assert not any(passed(finding.checks[i]) for i in (0, 2, 4, 5))


@pytest.mark.long
def test_identity_with_residuals_that_add_nothing():
    finding = merge([identity.run(0, build=lambda config: remove_residuals(EncoderOnly(config)))])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[0])
    assert not passed(finding.checks[2])


def test_repetition_where_a_ban_on_ngrams_is_not_kept():
    def forgetful(model, prompts, search):
        return repetition.write(model, prompts, replace(search, no_repeat_ngram=0))

    finding = merge([repetition.run(0, write=forgetful)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[4])


def without_positions(config):
    return EncoderOnly(replace(config, positions="none"))


@pytest.mark.long
def test_concatenation_where_nothing_is_added():
    finding = merge([concatenation.run(0, build=without_positions)])
    assert finding.verdict is Verdict.FAILS
    assert not any(passed(check) for check in finding.checks[:3])


def by_distance(config):
    """A model that has ALiBi where sinusoids are asked for."""
    return DecoderOnly(replace(config, positions="alibi") if config.positions == "sinusoidal" else config)


@pytest.mark.long
def test_length_holds_where_the_sinusoids_are_distances():
    finding = merge([length.run(0, build=by_distance)])
    assert finding.verdict in (Verdict.HOLDS, Verdict.LIMITED)
    assert all(passed(check) for check in finding.checks[:3])


def always_in_use(config):
    """A model that is never in training, so that its dropout does nothing."""
    model = EncoderOnly(config)
    model.train = lambda mode=True: nn.Module.train(model, False)
    return model.train()


def test_dropout_that_drops_nothing(monkeypatch):
    monkeypatch.setattr(dropout, "STEPS", {"few": 40, "many": 40})  # the runs are the same, however long
    finding = merge([dropout.run(0, build=always_in_use)])
    assert finding.verdict is Verdict.FAILS
    assert finding.checks[1].spread.mean == 1.0


def far_too_large(config):
    """Every matrix ten times as large as it should be."""
    return initialisation.start(EncoderOnly(config), lambda weight: 10 * weight)


@pytest.mark.long
def test_initialisation_that_begins_too_large():
    finding = merge([initialisation.run(0, build=far_too_large)])
    assert finding.verdict is Verdict.FAILS
    assert not passed(finding.checks[0])  # it is seen before any training
    assert not passed(finding.checks[1])


class Kinked(FeedForward):
    """A network that takes ReLU whatever it is asked for."""

    def __init__(self, config):
        super().__init__(config)
        self.activation = torch.relu


def test_activations_that_are_all_the_same(monkeypatch):
    monkeypatch.setattr(activations, "STEPS", 40)  # the runs are the same, however long
    finding = merge([activations.run(0, part=Kinked)])
    assert finding.verdict is Verdict.FAILS
    assert finding.checks[1].spread.mean == 1.0
