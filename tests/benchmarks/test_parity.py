"""Our parts against Hugging Face transformers, and controls that show the comparison can fail."""

import functools
import re
from pathlib import Path

import pytest
import torch
from sampled import sampled

from glassformer.weights.parity import (
    BAR,
    CONTROLS,
    cases,
    difference,
    hugging_face,
    measure,
    our_logits,
    peer_logits,
    random_batch,
    random_model,
    saved,
)
from glassformer.weights.pretrained import load_model
from glassformer.weights.pretrained.loader import FAMILIES, assemble, family_state_dict, read_config, read_weights

CASES = {f"{case.family}: {case.name}": case for case in cases()}
FIRST = {case.family: name for name, case in reversed(CASES.items())}.values()  # one of each family


@pytest.fixture(autouse=True)
def _quiet():
    hugging_face()


@functools.cache
def loaded(name):
    """What one case gives to several tests: the peer, our model, and what the folder holds."""
    case = CASES[name]
    with saved(peer := random_model(case), case) as folder:
        model = load_model(folder)
        batch = random_batch(min(model.config.vocab_size, model.config.encoder.vocab_size), case.seed)
        return peer, model, batch, read_config(folder), read_weights(folder)


@torch.no_grad()
@pytest.mark.parametrize("name", CASES)
def test_logits_are_hugging_faces(name):
    peer, model, batch, _, _ = loaded(name)
    assert difference(our_logits(model, batch), peer_logits(peer, batch), batch) <= BAR


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


def name_in(tensors, name, parameter):
    """A file may know a parameter by an older name: then by what it holds."""
    if name in tensors:
        return name
    return next((n for n, t in tensors.items() if torch.equal(t, parameter)), name)


@pytest.mark.parametrize("name", sampled(CASES, FIRST))
def test_gradients_are_hugging_faces(name):
    """Of a summed loss, for every tensor of the file: what its fold hands back of our parameter's gradient."""
    peer, model, batch, settings, tensors = loaded(name)
    family = FAMILIES[CASES[name].family](settings)
    for logits in (our_logits(model, batch), peer_logits(peer, batch)):
        seen = batch.mask if logits.shape[1] == batch.mask.shape[1] else ...
        logits[seen].logsumexp(-1).sum().backward()
    ours = {n: p.grad for n, p in model.named_parameters()}
    named = peer.named_parameters(remove_duplicate=False)
    theirs = {name_in(tensors, n, p).removeprefix(family.prefix): p.grad for n, p in named if p.grad is not None}
    files = {n.removeprefix(family.prefix): t for n, t in tensors.items()}
    compared = set()
    for name, take in family.weights(model.config, settings).items():
        parts = [files[n].clone().requires_grad_() for n in take.names if n in theirs]
        if not parts:
            assert name == "head.bias" or "positions" in name  # what Hugging Face keeps as a buffer
            continue
        folded = torch.autograd.grad(take.fold(*parts), parts, ours[name])
        for n, gradient in zip(take.names, folded, strict=True):
            scale = theirs[n].abs().max().item()
            assert (gradient - theirs[n]).abs().max().item() <= 1e-5 * max(1.0, scale), n
            compared.add(n)
    if not model.config.tied:
        assert (ours["head.weight"] - theirs[family.head]).abs().max() <= 1e-5
        compared.add(family.head)
    seen = {id(theirs[n]) for n in compared}
    assert [n for n, gradient in theirs.items() if id(gradient) not in seen] == []


@pytest.mark.parametrize("name", sampled(CASES, FIRST))
def test_weights_go_back_bit_for_bit(name):
    _, model, _, settings, tensors = loaded(name)
    back = family_state_dict(model, settings)
    assert set(back) == set(tensors)
    assert [n for n in tensors if not torch.equal(back[n], tensors[n])] == []


@pytest.mark.parametrize("family", FAMILIES)
def test_a_changed_model_goes_back_changed(family):
    """What the file held is no excuse to give back what the model no longer is."""
    case = next(case for case in cases() if case.family == family)
    with saved(random_model(case), case) as folder, torch.no_grad():
        model, settings = load_model(folder), read_config(folder)
        for parameter in model.parameters():
            parameter += torch.randn_like(parameter)
        again = assemble(FAMILIES[family](settings), settings, family_state_dict(model, settings))
        assert again.config == model.config
        for name, value in model.state_dict().items():
            assert torch.allclose(again.state_dict()[name], value, rtol=1e-6, atol=0), name


@pytest.mark.parametrize("file", ["README.md", "README.zh-CN.md", "docs/en/17-families.md", "docs/zh/17-families.md"])
def test_what_is_read_counts_the_random_models(file):
    text = (Path(__file__).parents[2] / file).read_text(encoding="utf-8")
    assert set(re.findall(r"(\d+) (?:random models|个随机模型)", text)) == {str(len(CASES))}
