"""One forward pass of a small twin of a model, watched: which module is called within which, in which order, on what.

The twin has every choice of the model's configuration and sizes that all differ, so that each number in a shape can be
told by a letter: B batch, S source, T target, H heads, G key/value heads, D model width, d head width, F feed-forward
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
    return replace(
        config,
        vocab_size=VOCABULARY,
        src_vocab_size=VOCABULARY + 4 if config.src_vocab_size else None,
        d_model=HEADS * HEAD_WIDTH + 4 * apart,
        heads=HEADS,
        d_ff=INNER,
        layers=1,
        decoder_heads=None,
        decoder_d_ff=None,
        decoder_layers=None,
        kv_heads=GROUPS if grouped else None,
        head_width=HEAD_WIDTH,
        max_length=16,
        pad_id=0,
        start_id=1,
        end_id=2,
    )


@dataclass
class Call:
    """A module at work: the name it has in the tree, the call it was made in, what it was given and what it gave."""

    name: str
    within: str
    order: int
    given: list[Tensor]
    mask: AttentionMask | None
    gave: Tensor | None = None


@dataclass
class Pass:
    """What the twin did, call by call, in the order in which the calls began."""

    model: EncoderDecoder
    real: Tensor  # (B, S), True for a token, False for padding
    calls: dict[str, Call] = field(default_factory=dict)

    def letters(self, shape: torch.Size) -> str:
        config = self.model.config
        known = {1: "1", BATCH: "B", SOURCE: "S", TARGET: "T", HEADS: "H", HEAD_WIDTH: "d", INNER: "F", VOCABULARY: "V"}
        known |= {GROUPS: "G", 2 * INNER: "2F", config.heads * config.d_head: "H·d", config.d_model: "D"}
        known |= {3 * config.d_model: "3D"}
        return f"({', '.join(known[size] for size in shape)})"

    def shape(self, name: str) -> str:
        """Of what the module so named gave."""
        gave = self.calls[name].gave
        assert gave is not None, f"{name} gave no tensor"
        return self.letters(gave.shape)

    def taken(self, name: str, which: int = 0) -> str:
        """The shape of a tensor that the module so named was given."""
        return self.letters(self.calls[name].given[which].shape)

    def mask(self, name: str) -> AttentionMask:
        found = self.calls[name].mask
        assert found is not None, f"{name} was given no mask"
        return found

    def seen(self, attention: str) -> Tensor:
        """What the queries of one sentence may see of its keys: (T, S), bool."""
        masked = self.calls[f"{attention}.masked"].gave
        assert masked is not None, "a probe gives what it is given"
        return masked[0, 0].isfinite()

    def causal(self, attention: str) -> bool:
        """Whether queries see their past only, by whatever means."""
        seen = self.seen(attention)
        return seen.shape[0] == seen.shape[1] and torch.equal(seen, torch.ones_like(seen).tril())

    def normalised_first(self, residual: str) -> bool:
        """Whether the norm is given what the residual is given (Pre-LN), not the sum (Post-LN)."""
        return self.calls[f"{residual}.norm"].given[0] is self.calls[residual].given[0]


def watch(config: ModelConfig) -> Pass:
    """A pass of the small twin of an encoder-decoder, its source padded."""
    model = EncoderDecoder(small(config)).eval()
    real = torch.ones(BATCH, SOURCE, dtype=torch.bool)
    real[:, SOURCE - PADDING :] = False
    found = Pass(model, real)
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    active: list[Call] = []

    def enter(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        # A module that both stacks share has two names: that of the stack at work is meant.
        above = [call.name for call in active if call.name]
        name = next((one for one in names[module] if not above or one.startswith(f"{above[0]}.")), names[module][0])
        given = [*args, *kwargs.values()]
        tensors = [one for one in given if isinstance(one, Tensor)]
        mask = next((one for one in given if isinstance(one, AttentionMask)), None)
        call = Call(name, above[-1] if above else "", len(found.calls), tensors, mask)
        found.calls[name] = call
        active.append(call)

    def leave(_module: nn.Module, _args: tuple[Any, ...], _kwargs: dict[str, Any], gave: Any) -> None:
        active.pop().gave = gave if isinstance(gave, Tensor) else None

    for module in names:
        module.register_forward_pre_hook(enter, with_kwargs=True)
        module.register_forward_hook(leave, with_kwargs=True)
    ids = torch.arange(3, 3 + BATCH).unsqueeze(1)
    with torch.no_grad():
        model(ids.expand(-1, SOURCE) * real, ids.expand(-1, TARGET), real)
    return found
