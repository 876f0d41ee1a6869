"""What each position may see. Every mask is bool, and True means "may attend".

    padding   (B, 1, 1, S)   keys that are real tokens
    causal    (1, 1, T, S)   keys that are not in a query's future
    text      (B, 1, T, S)   keys of the query's own text, where a row holds several

A decoder needs both at once; cross-attention needs the source's padding only.

Shapes: B batch, T queries, S keys.
"""

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from glassformer.common.errors import InputError


def padding_mask(mask: Tensor) -> Tensor:
    return mask[:, None, None, :]  # (B, 1, 1, S)


def causal_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """Query at position t sees keys at positions up to and including t."""
    return (keys.unsqueeze(0) <= queries.unsqueeze(1))[None, None]  # (1, 1, T, S)


def text_mask(queries: Tensor, keys: Tensor) -> Tensor:
    """For rows that hold several texts: a query sees the keys of its own text, or of that text's partner on the other
    side. Arguments are the tokens' places in their texts, (B, T) and (B, S): a text begins at every 0."""
    query_text, key_text = ((places == 0).cumsum(1) for places in (queries, keys))
    return (query_text.unsqueeze(2) == key_text.unsqueeze(1)).unsqueeze(1)  # (B, 1, T, S)


def block_mask(places: Tensor, causal: bool, width: int = 128) -> BlockMask:
    """`text_mask` in blocks of `width` queries and keys, for a kernel that skips the blocks without a visible key."""
    length = places.shape[1]
    first = torch.arange(length, device=places.device) - places  # (B, T): where each token's text begins

    def visible(row: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        if causal:
            return (key <= query) & (key >= first[row, query])
        return first[row, query] == first[row, key]

    blocks = create_block_mask(visible, places.shape[0], None, length, length, device=places.device, BLOCK_SIZE=width)
    blocks.BLOCK_SIZE = (128, 128)  # PyTorch checks it against its own choice of tiles; the kernel gets TILES
    return blocks


def additive(visible: Tensor | None, bias: Tensor | None) -> Tensor | None:
    """One term to add to the scores: `bias` where a key may be seen, minus infinity where not."""
    if visible is None:
        return bias
    if bias is None:
        bias = torch.zeros(1, device=visible.device)
    return torch.where(visible, bias, float("-inf"))


def check_mask(mask: Tensor, ids: Tensor, name: str = "mask") -> None:
    if mask.dtype != torch.bool:
        raise InputError(
            f"{name} has dtype {mask.dtype}; it must be torch.bool, True for a real token: "
            f"{name}.bool() turns ones and zeros into it"
        )
    if mask.shape != ids.shape:
        raise InputError(
            f"{name} has shape {tuple(mask.shape)}, its ids {tuple(ids.shape)}; both must be (batch, length)"
        )


def check_places(places: Tensor, ids: Tensor, alone: bool) -> None:
    if not alone or places.shape != ids.shape[:2] or places.is_floating_point():
        fault = f"are {places.dtype} of shape {tuple(places.shape)}" if alone else "go with no mask and no cache"
        raise InputError(f"places {fault}; they are whole numbers, {tuple(ids.shape[:2])}, for rows without padding")
