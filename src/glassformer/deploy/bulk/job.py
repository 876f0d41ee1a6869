"""What a worker needs to know, and a worker: it holds a model and makes parts of shards."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from glassformer.common.errors import ConfigError, WeightsError, one_of
from glassformer.common.version import __version__
from glassformer.decode import Search
from glassformer.decode.precision import Precision
from glassformer.deploy.bulk.lines import JsonLines, TextLines
from glassformer.deploy.bulk.shards import Format, Shard
from glassformer.deploy.bulk.sources import Kind, Source
from glassformer.deploy.bulk.tables import Parquet
from glassformer.pipelines import box
from glassformer.pipelines.language.language import code_of
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator
from glassformer.weights.pretrained.loader import is_multilingual

MODEL_FILES = ("*.safetensors", "*.bin", "*.spm", "*.model", "config.json", "tokenizer*.json", "vocab.json")


@dataclass(frozen=True)
class Job:
    """How texts are translated; workers on other machines are told it whole."""

    model: str | None  # by its folder or name; the box's if none
    source: str
    target: str | None
    beam: int
    precision: Precision
    kind: Kind
    column: str
    into: str
    version: str = __version__

    def format(self) -> Format:
        made: dict[Kind, Format] = {
            "text": TextLines(),
            "jsonl": JsonLines(self.column, self.into),
            "parquet": Parquet(self.column, self.into),
        }
        return made[self.kind]

    def load(self, device: str) -> TextTranslator:
        if self.model is not None:
            spoken = self.source or None if is_multilingual(Path(self.model)) else None
            one = Translator.load(self.model, device, self.precision, to=self.target, source=spoken)
            return TextTranslator(one, source="" if spoken else self.source)
        assert self.target is not None
        hops = [
            Translator.load(box.folder(way.model), device, self.precision, to=way.to)
            for way in box.route(self.source, self.target)
        ]
        return TextTranslator(*hops, source=self.source, target=self.target)


class Worker:
    """A model, loaded once, that makes one part after the other."""

    def __init__(self, job: Job, device: str, threads: int | None) -> None:
        import torch

        if job.version != __version__:
            raise ConfigError(
                f"a worker has glassformer {__version__} and the run {job.version}; install the same on all machines"
            )
        if threads is not None:
            torch.set_num_threads(threads)
        self.format, self.translator, self.search = job.format(), job.load(device), Search(beam=job.beam)

    def made(self, source: Source, shard: Shard) -> bytes:
        return self.format.made(source, shard, lambda texts: self.translator.translate(texts, search=self.search))

    def close(self) -> None:
        self.format.close()


def check_model(model: str | None, to: str | None) -> str | None:
    """The language to translate into as it is called here, if it can be; asked before anything is read."""
    if model is None:
        return None if to is None else code_of(to, box.LANGUAGES)
    if not os.path.lexists(model) and model not in box.directions():
        names = one_of(box.directions())
        raise WeightsError(f"there is no model {model}; name a folder that `glassformer train` has made, or {names}")
    return to


def model_digest(job: Job) -> str:
    """Of the weights and words that translate: with others, a folder is not gone on with."""
    if job.model is None:
        assert job.target is not None
        folders = [box.folder(way.model) for way in box.route(job.source, job.target)]
    elif os.path.lexists(job.model):
        folders = [Path(job.model)]
    else:
        folders = [box.folder(box.directions()[job.model].model)]
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted({path for name in MODEL_FILES for path in folder.glob(name)}):
            with path.open("rb") as file:
                digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
