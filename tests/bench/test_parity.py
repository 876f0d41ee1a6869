"""Our parts against Hugging Face transformers, and controls that show the comparison can fail."""

import re
from pathlib import Path

import pytest
import torch

from glassformer.bench.parity import (
    BAR,
    CONTROLS,
    cases,
    hugging_face,
    measure,
    our_logits,
    peer_logits,
    random_batch,
    random_model,
    saved,
)
from glassformer.pretrained import load_model
from glassformer.pretrained.loader import FAMILIES

CASES = {f"{case.family}: {case.name}": case for case in cases()}


@pytest.fixture(autouse=True)
def _quiet():
    hugging_face()


@pytest.mark.parametrize("name", CASES)
def test_logits_are_hugging_faces(name):
    assert measure(CASES[name]) <= BAR


@pytest.mark.parametrize(
    ("family", "spoil"), [(family, spoil) for family, spoils in CONTROLS.items() for spoil in spoils]
)
def test_a_broken_part_is_noticed(family, spoil):
    case = next(case for case in cases() if case.family == family)
    assert measure(case, spoil) > 100 * BAR


def test_every_family_has_three_cases_and_a_control():
    families = [case.family for case in cases()]
    assert [family for family in FAMILIES if families.count(family) < 3] == []
    assert set(CONTROLS) == set(families) == set(FAMILIES)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.family in ("marian", "gpt2")])
def test_gradients_are_hugging_faces(name):
    """Every parameter's gradient of a summed loss, mapped by the family's own table."""
    from glassformer.pretrained.family import Settings
    from glassformer.pretrained.loader import FAMILIES

    case = CASES[name]
    peer = random_model(case)
    with saved(peer, case) as folder:
        model = load_model(folder)
        batch = random_batch(min(model.config.vocab_size, model.config.encoder.vocab_size), case.seed)
        seen = torch.ones_like(batch.tgt, dtype=torch.bool) if case.family == "marian" else batch.mask
        our_logits(model, batch)[seen].logsumexp(-1).sum().backward()
        peer_logits(peer, batch)[seen].logsumexp(-1).sum().backward()
        settings = Settings(peer.config.to_dict())
    family = FAMILIES[case.family](settings)
    theirs = {n.removeprefix(family.prefix): p.grad for n, p in peer.named_parameters() if p.grad is not None}
    ours = {n: p.grad for n, p in model.named_parameters()}
    compared = 0
    for name, take in family.weights(model.config, settings).items():
        sources = [theirs.get(n) for n in take.names]
        if any(source is None for source in sources):
            assert name == "head.bias" or "positions" in name  # what Hugging Face keeps as a buffer
            continue
        expected = take.fold(*sources)
        if case.settings.get("scale_attn_by_inverse_layer_idx") and "projection" in name:
            layer, width = int(name.split(".")[2]), model.config.d_model
            expected[:width] *= (layer + 1) ** 2  # a weight folded by c has the gradient divided by c
        scale = expected.abs().max().item()
        assert (ours[name] - expected).abs().max().item() <= 1e-5 * max(1.0, scale), name
        compared += 1
    assert compared >= len(ours) - 3


@pytest.mark.parametrize("file", ["README.md", "README.zh-CN.md", "docs/en/17-families.md", "docs/zh/17-families.md"])
def test_what_is_read_counts_the_random_models(file):
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    assert set(re.findall(r"(\d+) (?:random models|个随机模型)", text)) == {str(len(CASES))}
