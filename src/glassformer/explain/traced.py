"""A trace: the values of one run by name, and all that is told about them.

`manifest()` describes the run and every value; `blob()` holds the values, little-endian float32 one after the other,
at the offsets that the manifest gives. Page, notebook and command line read the same two.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import torch
from torch import Tensor

from glassformer.common.errors import GlassformerError, InputError, WeightsError, one_of, why
from glassformer.common.files import read_json, without_nan, write_bytes, write_text
from glassformer.common.strings import Language
from glassformer.explain.changes import Change
from glassformer.explain.operations import Value
from glassformer.explain.subject import Subject
from glassformer.explain.values import Values
from glassformer.explain.weights import Weights, facts, raw
from glassformer.explain.words import formula
from glassformer.explain.writing import Options, Written, log_probabilities

if TYPE_CHECKING:
    from rich.console import Console

FORMAT = "glassformer-trace/1"


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trace:
    """`tr[name]` is a value without batch axis, `tr[name, head]` a part of it; `tr.names("*.pattern")` lists names."""

    subject: Subject
    name: str
    run: str
    text: str
    source: list[int]
    real: list[bool]
    written: Written
    options: Options
    changes: list[Change]
    values: Values
    weights: Weights
    steps: list[dict[str, Any]]
    answer: dict[str, Any] | None  # of a model that writes nothing
    score: float | None
    one_pass: bool  # the values are those of every step; else those of the last, which read the whole output
    beam: dict[str, Any] | None
    cache: dict[str, Any] | None

    def __getitem__(self, key: str | tuple[Any, ...]) -> Tensor:
        name, *index = key if isinstance(key, tuple) else (key,)
        return self.value(name).value[tuple(index)]

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __repr__(self) -> str:
        wrote = f" -> {self.said!r}" if self.said else ""
        return f"Trace({self.text!r}{wrote}, {len(self.values)} values, run {self.run})"

    def value(self, name: str) -> Value:
        """A value with its axes, formula and operation."""
        return self.values[name]

    def names(self, pattern: str = "*") -> list[str]:
        """The names that fit a glob pattern, in the order of computation."""
        return self.values.names(pattern)

    def select(self, pattern: str | None = None, layer: int | None = None) -> list[Value]:
        """The values whose names fit, of one layer if it is given."""
        chosen = self.values.select(pattern or "*")
        if layer is not None:
            deepest = max((int(name.split(".")[2]) for name in self.names("*.blocks.*")), default=-1)
            if not 0 <= layer <= deepest:
                raise InputError(f"layer {layer} does not exist; the layers are numbered 0 to {deepest}")
            chosen = [value for value in chosen if f".blocks.{layer}." in f"{value.name}."]
            if not chosen:
                raise InputError(f"layer {layer} has no value named `{pattern}`; leave one of the two out")
        return chosen

    @property
    def output(self) -> dict[str, Any] | None:
        """What was written: ids, pieces, text, score, and whether it came to its end."""
        if not self.subject.writes:
            return None
        ids = self.written.ids
        return {
            "ids": ids,
            "pieces": self.subject.pieces(ids, source=False),
            "text": self.subject.written(ids, self.written.prompt),
            "score": self.score,
            "finished": self.written.finished and not self.written.forced_end,
        }

    @property
    def log_probs(self) -> Tensor:
        """The log-probabilities (T, V) at every place."""
        return log_probabilities(self["logits"], self.options.temperature)

    @property
    def said(self) -> str | None:
        """What came out, in words: the text that was written, a label, the text with its gaps filled."""
        if self.output is not None:
            return str(self.output["text"])
        return None if self.answer is None else self.answer["text"] or None

    @property
    def masks(self) -> dict[str, Tensor]:
        """Who may see whom: 1 visible, 0 hidden."""
        return {name: self[name] for name in self.names("masks.*")}

    def manifest(self) -> dict[str, Any]:
        """The whole run in words and numbers, fit for JSON; the values themselves are in `blob()`."""
        reads = self.written.reads
        return {
            "format": FORMAT,
            "run": self.run,
            "model": facts(self.subject, self.name),
            "options": self.options.as_dict(),
            "changes": self.changes,
            "text": self.text,
            "about": asdict(self.subject.about),
            "unfamiliar": self.subject.unfamiliar(self.text),
            "source": {
                "ids": self.source,
                "pieces": self.subject.source_pieces(self.source),
                "real": self.real,
                "tag": self.subject.tag,
            },
            "target": {"ids": reads, "pieces": self.subject.pieces(reads, source=False)},
            "output": without_nan(self.output),
            "tensors": self._tensors(),
            "weights": self.weights.manifest(),
            "steps": without_nan(self.steps),
            "answer": without_nan(self.answer),
            "one_pass": self.one_pass,
            "beam": without_nan(self.beam),
            "cache": without_nan(self.cache),
            "masks": self.names("masks.*"),
        }

    def _tensors(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        places: dict[str, tuple[int, float, float]] = {}
        offset = 0
        for value in self.values.values():
            size = 4 * value.value.numel()
            if value.op["kind"] == "same":  # stored once
                place = places[value.op["input"]]
            else:
                place, offset = (offset, *span(value.value)), offset + size
            places[value.name] = place
            rows.append(
                {
                    "name": value.name,
                    "shape": list(value.value.shape),
                    "axes": list(value.axes),
                    "op": value.op,
                    "formula": value.formula,
                    "formula_zh": formula(value.formula, "zh"),
                    "inputs": value.inputs,
                    "offset": place[0],
                    "bytes": size,
                    "low": place[1],
                    "high": place[2],
                }
            )
        return rows

    def blob(self) -> bytes:
        """All values, minus infinity included."""
        return b"".join(raw(value.value) for value in self.values.values() if value.op["kind"] != "same")

    def weights_blob(self) -> bytes:
        """The model's weights, the same for each of its runs."""
        return self.weights.blob()

    def to_json(self, pattern: str = "*") -> dict[str, Any]:
        """The manifest with the values of the tensors that fit inline; what JSON lacks is the text "-inf" or "nan"."""
        wanted = {value.name for value in self.select(pattern)}
        whole = self.manifest()
        whole["tensors"] = [
            row | {"values": plain(self[row["name"]].tolist())} for row in whole["tensors"] if row["name"] in wanted
        ]
        return whole

    def show(
        self,
        pattern: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        lang: Language = "en",
        console: Console | None = None,
    ) -> None:
        """Print what was written and a row for every value, or those that a `pattern` or `head` picks, in full."""
        from rich.console import Console

        from glassformer.explain.show import show

        if lang not in get_args(Language):
            raise InputError(f"lang={lang!r} is not one of {one_of(get_args(Language))}")
        show(self, console or Console(), pattern, layer, head, lang)

    def save(self, path: str | Path) -> Path:
        """Write the manifest to `path` and the blob beside it, with the ending .bin, in place of an older trace."""
        path = Path(path)
        if path.suffix == ".bin":
            raise InputError(f"{path}: the values go to a .bin beside the manifest; name the manifest, x.json")
        blob = path.with_suffix(".bin")
        if blob.exists() and not names_blob(path, blob.name):
            raise InputError(f"{blob} is there, and not as the values of a trace in {path}; choose another name")
        try:
            write_bytes(blob, self.blob())
            text = json.dumps(self.manifest() | {"blob": blob.name}, ensure_ascii=False, allow_nan=False, indent=1)
            write_text(path, text + "\n")
        except OSError as error:
            raise unwritten(path, error) from None
        return path

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with all of it inside, which opens from disk; written to `path` if one is given."""
        from glassformer.explain.page import standalone

        page = standalone(self)
        if path is not None:
            try:
                write_text(Path(path), page)
            except OSError as error:
                raise unwritten(path, error) from None
        return page


def names_blob(manifest: Path, blob: str) -> bool:
    try:
        return (read_json(manifest) or {}).get("blob") == blob
    except WeightsError:
        return False


def unwritten(path: str | Path, error: OSError) -> GlassformerError:
    return GlassformerError(f"cannot write `{path}`: {why(error)}; give a file in a folder that exists")


def span(value: Tensor) -> tuple[float, float]:
    """The lowest and highest of the finite values."""
    if value.numel() == 0:
        return 0.0, 0.0
    low, high = (float(end) for end in value.aminmax())
    if not (math.isfinite(low) and math.isfinite(high)):
        real = value[torch.isfinite(value)]
        low, high = (float(end) for end in real.aminmax()) if real.numel() else (0.0, 0.0)
    return low, high


def plain(values: Any) -> Any:
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values if math.isfinite(values) else str(values)
