"""The text side of a published model of one stack: the tokenizer.json that its folder brings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import tokenizers

from glassformer.common.errors import WeightsError
from glassformer.common.files import read_json
from glassformer.weights.pretrained.marian_text import SURROGATE, UNKNOWN

WHOLE = "tokenizer.json"
GAPS = ("[MASK]", "<mask>")  # as the families write a gap
INSIDE = "##"  # before a piece that goes on a word, as BERT's are written


def read_rules(path: Path) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception
        raise WeightsError(f"{path} is not a tokenizer of the library `tokenizers`: {error}") from None


class PlainText:
    """Text to ids and back as the library `tokenizers` reads the folder's file; what a text spells as one of its marks,
    such as "[SEP]", is that mark. Sources come with the marks that the family puts around them."""

    def __init__(self, rust: tokenizers.Tokenizer, mask: int | None = None) -> None:
        rust.no_padding()
        rust.no_truncation()
        self._rust, self.mask_id = rust, mask

    @classmethod
    def load(cls, folder: Path, size: int) -> PlainText:
        """That of a model with a vocabulary of `size`."""
        path = folder / WHOLE
        if not path.is_file():
            raise WeightsError(
                f"{folder} holds no {WHOLE}, so its model reads ids alone; write one with transformers: "
                f"AutoTokenizer.from_pretrained(NAME).save_pretrained(FOLDER)"
            )
        rust = read_rules(path)
        if (highest := max(rust.get_vocab().values())) >= size:
            raise WeightsError(
                f"{path} has ids up to {highest}, but the model only 0 to {size - 1}; do {WHOLE} and config.json "
                f"belong together?"
            )
        named: Any = (read_json(folder / "tokenizer_config.json") or {}).get("mask_token")
        name = named.get("content") if isinstance(named, dict) else named
        ids = [rust.token_to_id(gap) for gap in (*([name] if isinstance(name, str) else []), *GAPS)]
        return cls(rust, next((id for id in ids if id is not None), None))

    @property
    def gap(self) -> str:
        """How a text says that something is missing there."""
        return GAPS[0] if self.mask_id is None else str(self._rust.id_to_token(self.mask_id))

    def encode_gaps(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode_source`, each gap, written "[MASK]" or as the family does, as its token."""
        return self.encode_source([text.replace(GAPS[0], self.gap) for text in texts])

    def filled(self, text: str, tokens: Sequence[int]) -> str:
        """The text, its gaps filled by these tokens one after the other; a piece of a word joins what is before it."""
        first, *rest = text.replace(GAPS[0], self.gap).split(self.gap)
        for token, after in zip(tokens, rest, strict=True):
            piece = str(self._rust.decode([token])).strip()
            inside = piece.startswith(INSIDE)
            first = (first.rstrip(" ") if inside else first) + piece.removeprefix(INSIDE) + after
        return first

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encode(texts, marked=True)

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        return self._encode(texts, marked=False)

    def _encode(self, texts: Sequence[str], marked: bool) -> list[list[int]]:
        whole = [SURROGATE.sub("\ufffd", text) for text in texts]  # half of a pair is no text
        return [one.ids for one in self._rust.encode_batch(whole, add_special_tokens=marked)]

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return [str(self._rust.decode(list(ids), skip_special_tokens=True)) for ids in batch]

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        """To look at: a space is drawn as everywhere here, not as a family spells it."""
        return [(self._rust.id_to_token(id) or UNKNOWN).replace("Ġ", "▁").replace("Ċ", "\\n") for id in ids]

    target_pieces = source_pieces
