"""A model of one stack, of a bundle or of a Hugging Face folder, with its text side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import torch
from torch import Tensor

from glassformer import bundle
from glassformer.decode.engine import counted
from glassformer.errors import InputError, WeightsError
from glassformer.files import read_json
from glassformer.hub import locate
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.pretrained import load_model
from glassformer.pretrained.plain_text import PlainText
from glassformer.text import END, START, About, PairTokenizer, Tokenizer

Some = TypeVar("Some", EncoderOnly, DecoderOnly)


class LoneText(PairTokenizer, Protocol):
    """A text side of one language. `encode_source` gives the ids as the model reads them, its marks among them."""

    mask_id: int | None  # of the token that stands for a gap

    @property
    def gap(self) -> str:
        """How a text says that something is missing there."""

    def encode_gaps(self, texts: Sequence[str]) -> list[list[int]]: ...

    def filled(self, text: str, tokens: Sequence[int]) -> str: ...


@dataclass(frozen=True)
class Opened(Generic[Some]):
    folder: Path
    model: Some
    text: LoneText | None  # none where images are read
    labels: tuple[str, ...]
    about: About


def opened(folder: str | Path, kind: type[Some], revision: str | None = None, offline: bool = False) -> Opened[Some]:
    """The model in a folder, or of a name of the hub, if it is of this kind."""
    folder = locate(folder, revision, offline)
    if bundle.is_bundle(folder) or not (folder / "config.json").is_file():
        loaded = bundle.load(folder)
        model = loaded.of_kind(kind)
        text = None if loaded.vocabulary is None else OwnText(loaded.vocabulary, isinstance(model, DecoderOnly))
        return Opened(folder, model, text, loaded.labels, About.of_recipe(loaded.recipe))
    published = load_model(folder)
    if not isinstance(published, kind):
        raise WeightsError(f"{folder} {bundle.use_of(published)}")
    read = None if published.config.patch_size is not None else PlainText.load(folder, published.config.vocab_size)
    named = (read_json(folder / "config.json") or {}).get("id2label")
    labels = tuple(str(label) for label in named.values()) if isinstance(named, dict) else ()
    return Opened(folder, published, read, labels, About())


class OwnText:
    """The text side of a bundle: its one vocabulary, and the marks that training has put around every text: the start,
    and where a text does not go on, the end."""

    gap = "[MASK]"

    def __init__(self, tokenizer: Tokenizer, goes_on: bool) -> None:
        self.tokenizer, self._goes_on = tokenizer, goes_on
        self.mask_id = next((id for id, piece in tokenizer.pieces[1].items() if piece == self.gap), None)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._marked(ids) for ids in self.encode_target(texts)]

    def _marked(self, ids: list[int]) -> list[int]:
        return [START, *ids] if self._goes_on else [START, *ids, END]

    def encode_gaps(self, texts: Sequence[str]) -> list[list[int]]:
        """As `encode_source`, each gap as its token. A gap is a piece with the space before it, if it has one."""
        return [self._marked(self._with_gaps(text)) for text in texts]

    def _with_gaps(self, text: str) -> list[int]:
        assert self.mask_id is not None
        first, *rest = text.split(self.gap)
        ids = self.encode_target([first])[0]
        for part in rest:
            ids.append(self.mask_id)
            if part.startswith(" "):
                ids += self.encode_target([part[1:]])[0]
            elif part:
                # A text is encoded with a space before it. Behind a sign of another kind, its first piece has none.
                before = "a" if not part[0].isalnum() else "-"
                lone, both = self.encode_target([before, before + part])
                ids += both[len(lone) :] if both[: len(lone)] == lone else self.encode_target([part])[0]
        return ids

    def filled(self, text: str, tokens: Sequence[int]) -> str:
        """The text, its gaps filled by these tokens one after the other."""
        fillings = iter(tokens)
        ids = [next(fillings) if id == self.mask_id else id for id in self._with_gaps(text)]
        return self.decode_target([ids])[0]

    def encode_target(self, texts: Sequence[str]) -> list[list[int]]:
        """A space at the end is the next word's own, and no piece."""
        return self.tokenizer.encode_target([text.rstrip(" ") for text in texts])

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]:
        return self.tokenizer.decode_target(batch)

    def source_pieces(self, ids: Sequence[int]) -> list[str]:
        return self.tokenizer.target_pieces(ids)

    target_pieces = source_pieces


def rows_of(lengths: Sequence[int], tokens: int, alike: bool = False) -> list[list[int]]:
    """Indices in batches of at most `tokens`, like with like; `alike`: of one length exactly."""
    rows: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        width = lengths[rows[-1][0]] if rows else 0
        near = lengths[i] == width if alike else counted(lengths[i]) == counted(width)
        if rows and near and (len(rows[-1]) + 1) * width <= tokens:
            rows[-1].append(i)
        else:
            rows.append([i])
    return rows


def padded(sources: Sequence[Sequence[int]], pad: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Ids as one table (B, T), and which of them are real."""
    width = max(map(len, sources))
    ids = torch.tensor([[*ids, *[pad] * (width - len(ids))] for ids in sources])
    mask = torch.arange(width) < torch.tensor([[len(ids)] for ids in sources])
    return ids.to(device), mask.to(device)


def check_lengths(sources: Sequence[Sequence[int]], limit: int, name: str = "texts") -> None:
    for i, ids in enumerate(sources):
        if len(ids) > limit:
            raise InputError(
                f"{name}[{i}] has {len(ids):,} tokens, and the model reads at most {limit:,}; give it in pieces"
            )
