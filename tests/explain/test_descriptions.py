"""What is told of every activation and norm is what the model computes."""

import math
from typing import get_args

import numpy as np
import pytest
import torch
from arithmetic import check, evaluated

import glassformer as gf
from glassformer.explain import formulas
from glassformer.model.config import Activation, NormType
from glassformer.model.layer import ACTIVATIONS
from glassformer.model.norm import NORMS

SMALL = {"vocab_size": 23, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 1, "max_length": 40, "dropout": 0.0}


def test_every_choice_has_a_function_and_a_description():
    assert set(get_args(Activation)) == set(ACTIVATIONS) == set(formulas.ACTIVATIONS)
    assert set(get_args(NormType)) == set(NORMS) == set(formulas.NORMS)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_is_its_expression(name):
    x = torch.linspace(-9, 9, 181, dtype=torch.float64)
    found = evaluated(formulas.ACTIVATIONS[name].expression, {"u": x.numpy(), "π": math.pi})
    np.testing.assert_allclose(found, ACTIVATIONS[name](x).numpy(), atol=1e-12)


@pytest.mark.parametrize("placement", ["pre", "post"])
@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_trace_of_every_choice_gives_its_numbers_again(activation, norm, placement):
    config = gf.ModelConfig(**SMALL, activation=activation, norm_type=norm, norm=placement, norm_eps=0.1)
    model = gf.EncoderDecoder(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():  # gains of one and biases of zero would hide mistakes
            parameter += 0.2 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    kinds = check(gf.trace(model, [5, 9, 4], max_new_tokens=3))
    assert kinds["activation"] == 2
    assert kinds[f"{norm}_norm"] == (7 if placement == "pre" else 5)


def test_a_formula_is_printed_as_a_reader_writes_it():
    assert formulas.NORMS["layer"].formula == "(x - mean) / √(variance + ε) · g + b"
    assert formulas.NORMS["rms"].formula == "x / √(mean(x²) + ε) · g"
    assert formulas.ACTIVATIONS["silu"].formula == "u / (1 + exp(-u))"
    assert (
        formulas.format_expression(("-", "a", ("-", "b", ("*", ("+", "c", 1), ("^", "d", 3)))))
        == "a - (b - (c + 1) · d³)"
    )
    assert formulas.format_expression(("/", "a", ("*", "b", "c"))) == "a / (b · c)"
