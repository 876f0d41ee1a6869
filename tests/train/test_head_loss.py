"""The loss that makes its logits itself, beside the plain one.

It needs a GPU; or Triton's interpreter, for the kernel alone: TRITON_INTERPRET=1 in the environment.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
import torch
from torch.nn import functional as F

import glassformer as gf
from glassformer.model.loss import IGNORED
from glassformer.train import step
from glassformer.train.options import Train
from glassformer.train.parallel import World
from glassformer.train.step import Inputs, Stepper

GPU = torch.cuda.is_available()
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if GPU and not INTERPRETED else "cpu"
needs_gpu = pytest.mark.skipif(not GPU or INTERPRETED, reason="there is no GPU here")


@pytest.mark.skipif(not GPU and not INTERPRETED, reason="there is no GPU here, and Triton's interpreter was not asked")
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("pieces", [5, 4095, 4096, 4097, 9001])
def test_losses_and_their_gradients_are_the_plain_ones(pieces, smoothing):
    from glassformer.train.head_loss import losses

    generator = torch.Generator().manual_seed(pieces)
    logits = (5 * torch.randn(7, pieces, generator=generator)).to(DEVICE)
    labels = torch.randint(pieces, (7,), generator=generator).to(DEVICE)
    labels[3] = IGNORED
    plain = logits.double().requires_grad_()
    wanted = F.cross_entropy(plain, labels, reduction="none", label_smoothing=smoothing, ignore_index=IGNORED)
    wanted.sum().backward()
    written = logits.clone()
    found = losses(written, labels, smoothing)
    torch.testing.assert_close(found.double(), wanted.detach(), rtol=1e-6, atol=1e-5)
    torch.testing.assert_close(written.double(), plain.grad, rtol=1e-5, atol=1e-6)
    assert not written[3].any()
    wide = torch.full((7, pieces + 3), 9.0, device=DEVICE)
    wide[:, :pieces] = logits
    assert torch.equal(losses(wide[:, :pieces], torch.stack((labels, labels), 1)[:, 0], smoothing), found)
    assert torch.equal(wide[:, :pieces], written)
    assert (wide[:, pieces:] == 9).all()
    assert not torch.allclose(losses(logits.clone(), labels.roll(1), smoothing), found, atol=0.1)


def model_and_rows(kind, **changes):
    config = gf.ModelConfig(
        vocab_size=5000, d_model=64, heads=1, d_ff=128, layers=2, max_length=300, dropout=0.0, seed=1
    )
    model = kind(replace(config, **changes)).to(DEVICE).train()
    drawn = torch.randint(3, 5000, (3, 2, 300), generator=torch.Generator().manual_seed(0)).to(DEVICE)
    labels = drawn[0].clone()
    labels[0, 250:] = IGNORED
    names = ("src", "tgt") if kind is gf.EncoderDecoder else ("ids",)
    return model, {"labels": labels} | dict(zip(names, drawn[1:], strict=False))


@needs_gpu
@pytest.mark.filterwarnings("ignore")  # the compiler's own
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        (gf.DecoderOnly, {}),
        (gf.EncoderOnly, {"output_transform": True, "output_bias": True, "tied": False}),
        (gf.EncoderDecoder, {}),
    ],
)
def test_a_compiled_step_learns_what_a_plain_one_does(kind, changes, smoothing, monkeypatch):
    monkeypatch.setattr(step, "LARGE_VOCABULARY", 5000)
    found = {}
    for compiled in (False, True):
        model, rows = model_and_rows(kind, **changes)
        head = model.head
        train = Train(precision="fp32", compile=compiled, label_smoothing=smoothing, cuda_graphs=False)
        stepper = Stepper(model, train, World(0, 1, torch.device("cuda")))
        (3 * stepper.rows_loss(**rows)).backward()
        found[compiled] = {name: p.grad for name, p in model.named_parameters()}
        assert model.head is head
        assert compiled == (type(stepper.rows_loss).__name__ == "JoinedLoss")
    for name, plain in found[False].items():
        assert (found[True][name] - plain).norm() < 2e-3 * plain.norm(), name
    assert (found[True][name] / 3 - plain).norm() > 0.1 * plain.norm()


@needs_gpu
@pytest.mark.filterwarnings("ignore")
def test_recorded_steps_go_where_plain_ones_go(monkeypatch):
    """Joined loss, gradients clipped within AdamW, and the step recorded; beside none of the three."""
    monkeypatch.setattr(step, "LARGE_VOCABULARY", 5000)
    ends = []
    for fast, clip in ((False, 0.1), (True, 0.1), (True, 0.05)):
        model, rows = model_and_rows(gf.DecoderOnly)
        train = Train(precision="fp32", compile=fast, cuda_graphs=fast, clip=clip, weight_decay=0.0)
        stepper = Stepper(model, train, World(0, 1, torch.device("cuda")))
        for group in stepper.optimizer.param_groups:
            group["eps"] = 1e-3  # without it Adam forgets how long gradients are
        inputs = Inputs(rows, torch.tensor(1 / 550, device="cuda"))
        start = torch.cat([p.detach().flatten() for p in model.parameters()])
        for number in range(4):
            stepper(inputs, 1e-2, number)
        ends.append(torch.cat([p.detach().flatten() for p in model.parameters()]) - start)
    assert (ends[1] - ends[0]).norm() < 1e-2 * ends[0].norm()
    assert (ends[2] - ends[0]).norm() > 0.1 * ends[0].norm()  # another clip goes elsewhere
