"""The sentences that an export is checked with: the model's own text where it is known, else random tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

import torch

from glassformer.common.errors import DataError, GlassformerError
from glassformer.data import read_pairs
from glassformer.data.readers import read_lines
from glassformer.deploy.export.subject import Subject
from glassformer.model import DecoderOnly
from glassformer.pipelines import box
from glassformer.train.evaluation.references import into
from glassformer.train.folder import saved_recipe
from glassformer.weights.bundle import is_bundle

COUNT = 200  # sentences, where nothing else is asked for
READ = 20  # times as many pairs that are looked through for them
LONGEST = 24  # tokens of a random sequence
SEED = 17

Ids = list[int]


@dataclass(frozen=True)
class Sample:
    """Sources: `texts`, and the ids of all, those of the texts first and then as many random ones as were missing."""

    ids: list[Ids]
    texts: list[str]
    said: str  # where they are from

    def __len__(self) -> int:
        return len(self.ids)


def sample_of(subject: Subject, file: Path | None = None, count: int | None = None) -> Sample:
    """At most `count` sentences of a file, of the test or valid text that the model's recipe names, or of the few that
    come with it; where these do not suffice and no file was given, random tokens."""
    if subject.model.config.patch_size is not None:
        return Sample([], [], "random images")
    wanted = COUNT if count is None else count
    if file is not None and subject.tokenizer is None:
        raise DataError(f"check={file}: the model has no tokenizer to read it with; leave it out to use random tokens")
    texts, said = own_texts(subject, wanted) if file is None else (spread(list(read_lines(file)), count), str(file))
    kept = [(text, ids) for text, ids in encoded(subject, texts) if text.strip() and ids]
    if file is not None and not kept:
        raise DataError(f"check={file} holds no sentence that the model translates as a whole; give another")
    rest = 0 if file is not None else max(0, wanted - len(kept))
    parts = [f"{len(kept)} of {said}"] * bool(kept) + [f"{rest} of random tokens"] * bool(rest)
    return Sample([ids for _, ids in kept] + random_ids(subject, rest), [text for text, _ in kept], ", ".join(parts))


def own_texts(subject: Subject, count: int) -> tuple[list[str], str]:
    if subject.tokenizer is None:
        return [], ""
    for split in ("test", "valid"):
        if found := recipe_texts(subject, split, count):
            return found, f"the model's {split} text"
    examples = list(subject.about.examples)
    if (languages := (subject.about.source, subject.about.target)) and "-".join(languages) in box.directions():
        examples += [one.text for one in box.examples("-".join(languages))]
    return list(dict.fromkeys(examples))[:count], "the model's examples"


def recipe_texts(subject: Subject, split: str, count: int) -> list[str]:
    """Sources of a split that the recipe names, spread over its beginning; none where its files are not here."""
    if subject.folder is None or not is_bundle(subject.folder) or not (subject.folder / "recipe.toml").is_file():
        return []
    try:
        corpora = into(subject.language, getattr(saved_recipe(subject.folder).data, split))
        pairs = chain.from_iterable(map(read_pairs, corpora))
        return spread([source for source, _ in islice(pairs, READ * count)], count)
    except (GlassformerError, OSError):
        return []


def spread(texts: list[str], count: int | None) -> list[str]:
    """So many, in order, from the whole of the list."""
    texts = list(dict.fromkeys(texts))
    return texts if count is None else texts[:: max(1, len(texts) // count)][:count]


def encoded(subject: Subject, texts: list[str]) -> Iterator[tuple[str, Ids]]:
    """Those that the model reads as a whole; a longer one is cut by us, and not by another."""
    if subject.tokenizer is None:
        return
    for text, ids in zip(texts, subject.tokenizer.encode_source(texts), strict=True):
        if len(ids) <= subject.model.config.max_length:
            yield text, ids


def random_ids(subject: Subject, count: int) -> list[Ids]:
    """Sequences of every length up to `LONGEST`, the same each time, without the marks of start, end and padding."""
    config, generator = subject.model.config, torch.Generator().manual_seed(SEED)
    size = config.vocab_size if isinstance(subject.model, DecoderOnly) else config.encoder.vocab_size
    marks = {config.pad_id, config.start_id, config.end_id}
    pieces = torch.tensor([id for id in range(size) if id not in marks] or [0])
    longest = max(1, min(LONGEST, config.max_length // 2))
    lengths = (1 + i % longest for i in range(count))
    return [pieces[torch.randint(len(pieces), (length,), generator=generator)].tolist() for length in lengths]
