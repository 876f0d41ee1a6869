"""The contestants of `bench language` do the same work."""

from dataclasses import replace

import torch

from benchmarks.language import GPT2, HuggingFaceGPT2, PlainDecoder, packed_places, random_text
from glassformer.model import DecoderOnly
from glassformer.model.loss import smoothed_cross_entropy

SMALL = replace(GPT2, vocab_size=100, d_model=32, heads=2, d_ff=64, layers=2, max_length=32)


def test_all_have_one_size_and_a_loss_of_the_same_labels():
    ids, labels = random_text(SMALL, 3, 16)
    assert torch.equal(ids[:, 1:], labels[:, :-1])
    plain, theirs, ours = PlainDecoder(SMALL), HuggingFaceGPT2(SMALL), DecoderOnly(SMALL)
    sizes = [sum(p.numel() for p in model.parameters()) for model in (plain, theirs, ours)]
    assert sizes[0] == sizes[1] == sizes[2]
    mean = smoothed_cross_entropy(ours.eval()(ids), labels, 0.0, -1) / labels.numel()
    for loss in (plain(ids, labels), theirs(ids, labels), mean):
        assert 4 < loss.item() < 7  # about log 100, of models that know nothing


def test_packed_rows_hold_texts_without_a_hole():
    places = packed_places(4, 1024)
    assert bool((places[:, 0] == 0).all())
    steps = places.diff(dim=1)
    assert bool(((steps == 1) | (places[:, 1:] == 0)).all())
    assert 4 < int((places == 0).sum()) < 70
