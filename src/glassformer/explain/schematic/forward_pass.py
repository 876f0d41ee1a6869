"""One recorded forward pass of a small twin of a model: which module is called within which, in which order, on what.

The twin has every choice of the model's configuration and sizes that all differ, so that a letter can stand for each
number in a shape: B batch, S source, T target, H heads, G key/value heads, D model width, d head width, F feed-forward
width, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from glassformer.model.attention import AttentionMask
from glassformer.model.config import ModelConfig
from glassformer.model.transformer import EncoderDecoder

BATCH, SOURCE, TARGET, PADDING = 3, 7, 5, 2
HEADS, GROUPS, HEAD_WIDTH, INNER, VOCABULARY = 4, 2, 6, 40, 97


def small(config: ModelConfig) -> ModelConfig:
    """The same choices in small sizes, no two of them equal."""
    grouped = config.kv_heads is not None and config.kv_heads != config.heads
    apart = config.heads * config.d_head != config.d_model
    sizes = {"vocab_size": VOCABULARY, "heads": HEADS, "head_width": HEAD_WIDTH, "d_ff": INNER, "layers": 1}
    ids: dict[str, Any] = {"max_length": 16, "pad_id": 0, "start_id": 1, "end_id": 2}
    same = dict.fromkeys(("decoder_heads", "decoder_d_ff", "decoder_layers"))  # as the encoder
    return replace(
        config,
        **sizes | ids | same,
        src_vocab_size=VOCABULARY + 4 if config.src_vocab_size else None,
        d_model=HEADS * HEAD_WIDTH + 4 * apart,
        kv_heads=GROUPS if grouped else None,
    )


@dataclass
class ForwardPass:
    """The calls of the twin's modules by name: the tensors that each got and returned, and the mask of an attention."""

    model: EncoderDecoder
    real: Tensor  # (B, S), True for a token, False for padding
    inputs: dict[str, list[Tensor]] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    masks: dict[str, AttentionMask] = field(default_factory=dict)

    def letters(self, shape: torch.Size) -> str:
        config = self.model.config
        known = {1: "1", BATCH: "B", SOURCE: "S", TARGET: "T", HEADS: "H", HEAD_WIDTH: "d", INNER: "F", VOCABULARY: "V"}
        known |= {GROUPS: "G", 2 * INNER: "2F", config.heads * config.d_head: "H·d", config.d_model: "D"}
        known |= {3 * config.d_model: "3D"}
        return f"({', '.join(known[size] for size in shape)})"

    def output_shape(self, name: str) -> str:
        return self.letters(self.outputs[name].shape)

    def input_shape(self, name: str, which: int = 0) -> str:
        return self.letters(self.inputs[name][which].shape)

    def visible(self, attention: str) -> Tensor:
        """Which keys of one sentence its queries see: (T, S), bool."""
        return self.outputs[f"{attention}.masked"][0, 0].isfinite()

    def causal(self, attention: str) -> bool:
        """Whether queries see their past only."""
        visible = self.visible(attention)
        return visible.shape[0] == visible.shape[1] and torch.equal(visible, torch.ones_like(visible).tril())

    def is_pre_norm(self, residual: str) -> bool:
        """Whether the norm reads what the residual reads (Pre-LN), not the sum (Post-LN)."""
        return self.inputs[f"{residual}.norm"][0] is self.inputs[residual][0]


def record_calls(config: ModelConfig) -> ForwardPass:
    """A pass of the small twin of an encoder-decoder, its source padded."""
    model = EncoderDecoder(small(config)).eval()
    real = torch.ones(BATCH, SOURCE, dtype=torch.bool)
    real[:, SOURCE - PADDING :] = False
    run = ForwardPass(model, real)
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    active: list[str] = []

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # A module that both stacks share has two names: take that of the stack that is running.
        stack = next(filter(None, active), "")
        name = next((one for one in names[module] if one.startswith(f"{stack}.")), names[module][0])
        given = [*args, *kwargs.values()]
        run.inputs[name] = [one for one in given if isinstance(one, Tensor)]
        run.masks.update((name, one) for one in given if isinstance(one, AttentionMask))
        active.append(name)

    def leave(_module: nn.Module, _args: tuple[Any, ...], _kwargs: dict[str, Any], output: Any) -> None:
        name = active.pop()
        if isinstance(output, Tensor):
            run.outputs[name] = output

    for module in names:
        module.register_forward_pre_hook(enter, with_kwargs=True)
        module.register_forward_hook(leave, with_kwargs=True)
    ids = torch.arange(3, 3 + BATCH).unsqueeze(1)
    with torch.no_grad():
        model(ids.expand(-1, SOURCE) * real, ids.expand(-1, TARGET), real)
    return run
