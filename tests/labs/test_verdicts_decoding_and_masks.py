"""What is said of decoding and of masks: each lab's verdict, and that a broken part turns it."""

import pytest
import torch

from glassformer.decode import generate
from glassformer.labs import Verdict, beam_search, causal_mask, kv_cache, padding, teacher_forcing
from glassformer.model import Cache, DecoderOnly, EncoderDecoder


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


def test_teacher_forcing(shipped):
    assert shipped(teacher_forcing).verdict == Verdict.HOLDS


def test_teacher_forcing_with_a_leaking_mask():
    assert teacher_forcing.run(0, build=leaking(EncoderDecoder)).verdict == Verdict.FAILS


class Late(Cache):
    """Takes every new token for the one before it."""

    def admit(self, ids, mask):
        held = super().admit(ids, mask)
        return held._replace(positions=(held.positions - 1).clamp_min(0))


def test_kv_cache(shipped):
    assert shipped(kv_cache).verdict == Verdict.HOLDS


def test_kv_cache_off_by_one():
    def late(model, capacity):
        return Late(len(model.decoder.blocks), capacity)

    assert kv_cache.run(0, make_cache=late).verdict == Verdict.FAILS


@pytest.mark.long
def test_causal_mask(shipped):
    assert shipped(causal_mask).verdict == Verdict.HOLDS


def test_causal_mask_that_leaks(monkeypatch):
    monkeypatch.setattr(causal_mask, "STEPS", 40)  # it is seen before any training
    assert causal_mask.run(0, build=leaking(DecoderOnly)).verdict == Verdict.FAILS


class Forgetful(EncoderDecoder):
    """Takes padding for words."""

    def forward(self, src, tgt, src_mask=None):
        return super().forward(src, tgt)


def test_padding(shipped):
    assert shipped(padding).verdict == Verdict.LIMITED


def test_padding_that_is_not_masked():
    assert padding.run(0, build=Forgetful).verdict == Verdict.FAILS


def test_padding_with_a_softmax_that_divides_by_zero():
    assert padding.run(0, softmax=padding.plain).verdict == Verdict.FAILS


@pytest.mark.long
def test_beam_search(shipped):
    assert shipped(beam_search).verdict == Verdict.LIMITED


@pytest.mark.long
def test_beam_search_that_forgets_its_beams():
    def narrow(model, src, beam, **options):
        return generate(model, src, beam=1, **options)

    assert beam_search.run(0, search=narrow).verdict == Verdict.FAILS
