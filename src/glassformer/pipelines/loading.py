"""A model of one stack, of a bundle or of a Hugging Face folder, with its tokenizer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, Self, TypeVar, runtime_checkable

import torch

from glassformer.common.arguments import checked
from glassformer.common.device import pick_device
from glassformer.common.errors import InputError, WeightsError
from glassformer.data import END, START, About, PairTokenizer, Tokenizer
from glassformer.model import DecoderOnly, EncoderOnly
from glassformer.weights import bundle
from glassformer.weights.hub import locate
from glassformer.weights.lora import adapter_labels, load_adapter
from glassformer.weights.pretrained import load_model
from glassformer.weights.pretrained.fine_tuning import named_labels
from glassformer.weights.pretrained.tokenizer import FastTokenizer

Some = TypeVar("Some", EncoderOnly, DecoderOnly)


@runtime_checkable
class MonolingualTokenizer(PairTokenizer, Protocol):
    """The tokenizer of a model of one language. `encode_source` gives the ids that the model reads, with its marks."""

    mask_id: int | None  # of the token that stands for a gap

    @property
    def gap(self) -> str:
        """What marks a gap in a text."""

    def encode_gaps(self, texts: Sequence[str]) -> list[list[int]]: ...

    def filled(self, text: str, tokens: Sequence[int]) -> str: ...


AnyTokenizer = TypeVar("AnyTokenizer", bound=MonolingualTokenizer | None)


@dataclass(frozen=True)
class LoadedModel(Generic[Some]):
    folder: Path
    model: Some
    tokenizer: MonolingualTokenizer | None  # none of a model that reads images
    labels: tuple[str, ...]
    about: About


def load_model_of(
    folder: str | Path,
    kind: type[Some],
    revision: str | None = None,
    offline: bool = False,
    adapter: str | Path | None = None,
) -> LoadedModel[Some]:
    """The model of a folder or of a name of the hub, if it is of this kind, with the weights of an `adapter`."""
    folder = locate(folder, revision, offline)
    if bundle.is_bundle(folder) or not (folder / "config.json").is_file():
        loaded = bundle.load(folder, adapter=adapter)
        model = loaded.of_kind(kind)
        vocabulary, continues = loaded.vocabulary, isinstance(model, DecoderOnly)
        tokenizer = None if vocabulary is None else BundleTokenizer(vocabulary, continues)
        return LoadedModel(folder, model, tokenizer, loaded.labels, About.of_recipe(loaded.recipe))
    published = load_model(folder)
    if not isinstance(published, kind):
        raise WeightsError(f"{folder} {bundle.describe_use(published)}")
    reads_images = published.config.patch_size is not None
    plain_text = None if reads_images else FastTokenizer.load(folder, published.config.vocab_size)
    labels = adapter_labels(folder) or named_labels(folder)
    if adapter is not None:
        labels = load_adapter(published, adapter) or labels
    return LoadedModel(folder, published, plain_text, labels, About())


@checked
class SingleStackPipeline(Generic[Some, AnyTokenizer]):
    """A model of one stack on its device, with its tokenizer, if it reads texts."""

    kind: type[Some]

    def __init__(
        self, model: Some, tokenizer: AnyTokenizer, device: str | torch.device = "cpu", about: About | None = None
    ) -> None:
        self.device, self.about = pick_device(device), about or About()
        self.model: Some = model.to(self.device).eval()
        self.tokenizer = tokenizer

    @classmethod
    def load(
        cls,
        folder: str | Path,
        device: str | torch.device = "cpu",
        *,
        adapter: str | Path | None = None,
        revision: str | None = None,
        offline: bool = False,
    ) -> Self:
        """A folder that `glassformer train` has made, a Hugging Face folder, or a name of the hub, of such a model.
        The weights of an `adapter`, a folder of a run with `train.lora_rank`, are added to the model's."""
        return cls._from_loaded(load_model_of(folder, cls.kind, revision, offline, adapter), device)

    @classmethod
    def _from_loaded(cls, found: LoadedModel[Some], device: str | torch.device) -> Self:
        raise NotImplementedError


class BundleTokenizer:
    """The tokenizer of a bundle with one vocabulary, and the marks that training put around every text: the start, and
    for a model that does not continue texts, the end."""

    gap = "[MASK]"

    def __init__(self, tokenizer: Tokenizer, continues: bool) -> None:
        self.tokenizer, self._continues = tokenizer, continues
        self.mask_id = next((id for id, piece in tokenizer.pieces[1].items() if piece == self.gap), None)

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]:
        return [self._marked(ids) for ids in self.encode_target(texts)]

    def _marked(self, ids: list[int]) -> list[int]:
        return [START, *ids] if self._continues else [START, *ids, END]

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


def check_lengths(sources: Sequence[Sequence[int]], limit: int, name: str = "texts") -> None:
    for i, ids in enumerate(sources):
        if len(ids) > limit:
            raise InputError(
                f"{name}[{i}] has {len(ids):,} tokens, and the model reads at most {limit:,}; give it in pieces"
            )
