"""What is said of decoding and of masks: each lab's verdict, and that a broken part turns it."""

import torch

from glassformer.labs import Verdict, kv_cache, teacher_forcing
from glassformer.model import Cache, EncoderDecoder


def leaking(kind):
    """A model of this kind whose queries see one token too many: the very one they are to predict."""

    def build(config):
        model = kind(config)
        shipped = model.decoder.sight

        def sight(queries, keys, visible):
            everything = torch.ones((1, 1, 1, len(keys)), dtype=torch.bool)
            return shipped(queries + 1, keys, everything if visible is None else visible)

        model.decoder.sight = sight
        return model

    return build


def test_teacher_forcing():
    assert teacher_forcing.LAB.run(0).verdict == Verdict.HOLDS


def test_teacher_forcing_with_a_leaking_mask():
    assert teacher_forcing.run(0, build=leaking(EncoderDecoder)).verdict == Verdict.FAILS


class Late(Cache):
    """Takes every new token for the one before it."""

    def admit(self, ids, mask):
        held = super().admit(ids, mask)
        return held._replace(positions=(held.positions - 1).clamp_min(0))


def test_kv_cache():
    assert kv_cache.LAB.run(0).verdict == Verdict.LIMITED


def test_kv_cache_off_by_one():
    def late(model, capacity):
        return Late(len(model.decoder.blocks), capacity)

    assert kv_cache.run(0, make_cache=late).verdict == Verdict.FAILS
