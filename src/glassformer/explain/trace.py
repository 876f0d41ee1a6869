"""A trace: every value between a sentence and what a model makes of it, by name.

The output is decoded first, by the fast path. Then one pass over all of it, with a hook at every named place, gives the
values: what the model computes for a token depends on no later one, so this pass shows what every step saw. Where a
what-if has removed the causal mask, the pass shows what the last step saw, which read all of it; the steps, the score
and the beam tree then come from a pass for each step.

`Trace.manifest()` describes the run and every value; `Trace.blob()` holds the values, little-endian float32 one after
the other, at the offsets that the manifest gives. Page, notebook and command line read the same two.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypedDict, Unpack, get_args

import numpy as np
import torch
from rich.console import Console
from torch import Tensor

from glassformer.common.arguments import checked
from glassformer.common.errors import ConfigError, GlassformerError, InputError, WeightsError, one_of, why
from glassformer.common.files import read_json, without_nan, write_bytes
from glassformer.common.strings import Language
from glassformer.decode import Search
from glassformer.explain import decoding
from glassformer.explain.activations import ActivationCache, Value, Values
from glassformer.explain.decoding import DecodedTokens, DecodingOptions
from glassformer.explain.formulas import translated
from glassformer.explain.interventions import Change, apply_changes, check_changes, swap_tokens
from glassformer.explain.kv_cache import cache_steps, is_causal
from glassformer.explain.operations import PATCHES, GraphBuilder, record_forward
from glassformer.explain.subject import Sentence, Subject, Traced
from glassformer.explain.weights import Weights, facts, fingerprint, raw
from glassformer.model import DecoderOnly, Model
from glassformer.model.layer import Block
from glassformer.model.transformer import share_weights

FORMAT = "glassformer-trace/1"


@checked
@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Trace:
    """`tr[name]` is a value without batch axis, `tr[name, head]` a part of it; `tr.names("*.pattern")` lists names."""

    subject: Subject
    name: str
    run: str
    text: str
    source: list[int]
    real: list[bool]
    written: DecodedTokens
    options: DecodingOptions
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
        name, *index = key if isinstance(key, tuple) and key else (key,)
        found = self.value(name).value
        try:
            return found[tuple(index)]
        except (IndexError, TypeError, ValueError):
            raise InputError(f"`{name}` has the shape {tuple(found.shape)}, and no part {index!r:.60}") from None

    def __contains__(self, name: object) -> bool:
        return name in self.values

    def __repr__(self) -> str:
        wrote = f" -> {self.said!r}" if self.said else ""
        return f"Trace({self.text!r}{wrote}, {len(self.values)} values, run {self.run})"

    def value(self, name: str) -> Value:
        """A value with its axes, formula and operation."""
        return self.values[name]

    def names(self, pattern: str = "*") -> list[str]:
        """The names that match a glob pattern, in the order of computation."""
        return self.values.names(pattern)

    def select(self, pattern: str | None = None, layer: int | None = None) -> list[Value]:
        """The values whose names match, of one layer if it is given."""
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
        """The log-probabilities (T, V) at every position."""
        return decoding.log_probabilities(self["logits"], self.options.temperature)

    @property
    def said(self) -> str | None:
        """The result as text: what was written, a label, or the text with its gaps filled."""
        if self.output is not None:
            return str(self.output["text"])
        return None if self.answer is None else self.answer["text"] or None

    @property
    def masks(self) -> dict[str, Tensor]:
        """Which keys each query sees: 1 visible, 0 hidden."""
        return {name: self[name] for name in self.names("masks.*")}

    def labels(self, axis: str, size: int) -> list[str]:
        """The tokens along an axis; numbers where it has none."""
        side = axis.partition(":")[2]
        if not side:
            return self.subject.answers(range(size)) if axis == "label" else [str(i) for i in range(size)]
        if side == "tgt":
            return self.subject.pieces(self.written.reads, source=False)
        pieces = self.subject.source_pieces(self.source)
        return pieces[1:] if side == PATCHES else pieces[:size]

    def manifest(self) -> dict[str, Any]:
        """The whole run but its values, fit for JSON; the values are in `blob()`."""
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
        places: dict[str, dict[str, Any]] = {}
        offset = 0
        for value in self.values.values():
            size = 4 * value.value.numel()
            if value.op["kind"] == "same":  # stored once
                place = places[value.op["input"]]
            else:
                low, high = value.span
                place = {"offset": offset, "bytes": size, "low": low, "high": high}
                offset += size
            places[value.name] = place
            row = {"name": value.name, "shape": list(value.value.shape), "axes": list(value.axes), "op": value.op}
            formulas = {"formula": value.formula, "formula_zh": translated(value.formula, "zh")}
            rows.append(row | formulas | {"inputs": value.inputs} | place)
        return rows

    def blob(self) -> bytes:
        """All values, minus infinity included."""
        return b"".join(raw(value.value) for value in self.values.values() if value.op["kind"] != "same")

    def weights_blob(self) -> bytes:
        """The model's weights, the same for each of its runs."""
        return self.weights.blob()

    def to_json(self, pattern: str = "*") -> dict[str, Any]:
        """The manifest with the values of matching tensors inline; what JSON lacks is the text "-inf" or "nan"."""
        names = {value.name for value in self.select(pattern)}
        whole = self.manifest()
        rows = [row for row in whole["tensors"] if row["name"] in names]
        return whole | {"tensors": list(inline_values(rows, self.blob()))}

    def show(
        self,
        pattern: str | None = None,
        layer: int | None = None,
        head: int | None = None,
        lang: Language = "en",
        console: Console | None = None,
    ) -> None:
        """Print what was written and a row for every value, or those that a `pattern` or `head` picks, in full."""
        from glassformer.explain.show import TracePrinter, check_head

        if lang not in get_args(Language):
            raise InputError(f"lang={lang!r} is not one of {one_of(get_args(Language))}")
        chosen, subject, output = self.select(pattern, layer), self.subject, self.output
        check_head(chosen, head)
        printer = TracePrinter(console or Console(), lang, self.labels, two_sides=subject.task == "translate")
        printer.heading(self.text, output, self.answer, self.options.search.beam)
        if output is not None and not output["finished"] and self.steps:
            printer.print(printer.say("cut", style="yellow"))
        if subject.tag is not None:
            pieces = subject.pieces(self.source, source=True)
            printer.print(printer.say("tag", pieces[0], subject.tag, " ".join(pieces), style="dim"))
        if self.cache is not None:
            printer.cache(self.cache)
        for change in self.changes:
            printer.change(change)
        if not self.one_pass:
            printer.print(printer.say("last step", style="yellow"))
        if pattern is not None or head is not None:
            printer.in_full(chosen, head)
        else:
            printer.overview(self.steps, self.answer, chosen)

    def save(self, path: str | Path) -> Path:
        """Write the manifest to `path` and the blob beside it, with the ending .bin, in place of an older trace."""
        path = Path(path)
        if path.suffix == ".bin":
            raise InputError(f"{path}: the values go to a .bin beside the manifest; name the manifest, x.json")
        blob = path.with_suffix(".bin")
        if blob.exists() and not names_blob(path, blob.name):
            raise InputError(f"{blob} is there, and not as the values of a trace in {path}; choose another name")
        write_file(blob, self.blob())
        text = json.dumps(self.manifest() | {"blob": blob.name}, ensure_ascii=False, allow_nan=False, indent=1)
        write_file(path, text.encode() + b"\n")
        return path

    def to_html(self, path: str | Path | None = None) -> str:
        """One page with all of it inside, which opens from disk; written to `path` if one is given."""
        from glassformer.explain.html_page import standalone

        page = standalone(self.manifest(), self.blob(), self.weights, self.subject.model)
        if path is not None:
            write_file(Path(path), page.encode())
        return page


def names_blob(manifest: Path, blob: str) -> bool:
    try:
        return (read_json(manifest) or {}).get("blob") == blob
    except WeightsError:
        return False


def write_file(path: Path, content: bytes) -> None:
    try:
        write_bytes(path, content)
    except OSError as error:
        raise GlassformerError(f"cannot write `{path}`: {why(error)}; give a file in a folder that exists") from None


def inline_values(rows: Iterable[dict[str, Any]], blob: bytes | memoryview) -> Iterator[dict[str, Any]]:
    """The manifest's rows of tensors, each with its values from the blob."""
    for row in rows:
        values = np.frombuffer(blob, "<f4", math.prod(row["shape"]), row["offset"]).reshape(row["shape"])
        yield row | {"values": plain(values.tolist())}


def plain(values: Any) -> Any:
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values if math.isfinite(values) else str(values)


@dataclass(frozen=True)
class TraceInput:
    """A private copy of a model with the changes applied to it, and everything that it is given."""

    name: str
    subject: Subject
    sentence: Sentence
    target: list[int] | None  # given, not searched for
    model: Model  # a private copy
    src: Tensor  # (1, S), or an image (1, C, H, W)
    mask: Tensor  # (1, S), of an image its places
    options: DecodingOptions
    changes: list[Change]
    replaced: dict[str, Change]


class TraceOptions(TypedDict, total=False):
    """The options of `trace` and `what_if`."""

    beam: int
    length_penalty: float
    max_new_tokens: int | None
    prefix: Sequence[int | str] | None
    padding: int
    temperature: float
    name: str
    between_steps: Callable[[], None] | None


def prepare(
    subject: Subject, sentence: Sentence, target: Sentence | None, changes: Iterable[Mapping[str, Any]], *,
    beam: int = 1, length_penalty: float = 1.0, max_new_tokens: int | None = None,
    prefix: Sequence[int | str] | None = None, padding: int = 0, temperature: float = 1.0, name: str = "model",
    between_steps: Callable[[], None] | None = None,
) -> TraceInput:  # fmt: skip
    """Check every argument, and copy and change the model."""
    changes = check_changes(changes, subject)
    if subject.config.autoregression != "attention" and subject.writes:
        raise ConfigError(
            f"autoregression={subject.config.autoregression!r}: a trace follows attention alone so far; hooks on the "
            f"model's probes, such as `decoder.blocks.0.recurrence.gate`, read what it computes"
        )
    image = subject.image(sentence) if subject.reads_images else None
    if image is not None and padding:
        raise ConfigError(f"padding={padding}: an image fills its model's places; leave `padding` out")
    ids = swap_tokens(subject.source_ids(sentence), changes, subject)
    if target is not None and not subject.writes:
        raise ConfigError("an encoder-only model writes no target; leave `target` out")
    if target is not None and (prefix or any(change["kind"] == "prefix" for change in changes)):
        raise ConfigError("a given target is not searched for, so a prefix has no place in it; leave one of them out")
    limit = subject.max_target_length(len(ids)) if max_new_tokens is None else max_new_tokens
    search = Search(beam=beam, length_penalty=length_penalty, max_new_tokens=limit)
    first = () if target is not None else tuple(subject.prefix_ids(prefix or ()))
    options = DecodingOptions(search, padding, temperature, first, len(subject.opening))
    for change in changes:
        if change["kind"] == "temperature":
            options = replace(options, temperature=float(change["value"]))
        elif change["kind"] == "prefix":
            pieces = change["pieces"] if change["ids"] is None else change["ids"]
            options = replace(options, prefix=tuple(subject.prefix_ids(pieces)))
    pads, real = [subject.config.pad_id or 0] * options.padding, [True] * len(ids)
    hidden = [False] * options.padding
    # A text that is continued has its padding before it, any other behind.
    left = isinstance(subject.model, DecoderOnly)
    ids, real = (pads + ids, hidden + real) if left else (ids + pads, real + hidden)
    model = share_weights(subject.model).eval()
    if between_steps is not None:
        for module in model.modules():
            if isinstance(module, Block):
                module.register_forward_pre_hook(lambda _module, _args: between_steps())
    replaced = apply_changes(model, changes)
    src, mask = (torch.tensor([row], device=subject.device) for row in (ids, real or [True] * len(subject.places)))
    src = src if image is None else image
    given = None if target is None else subject.target_ids(target)
    return TraceInput(name, subject, sentence, given, model, src, mask, options, changes, replaced)


@checked
def trace(
    subject: Traced,
    sentence: Sentence,
    target: Sentence | None = None,
    *,
    changes: Iterable[Mapping[str, Any]] = (),
    **options: Unpack[TraceOptions],
) -> Trace:
    """Follow a sentence through a model: `trace(t, "twenty-one")["decoder.blocks.0.cross_attention.pattern"]`.

    A `Translator` takes a sentence, a `TextGenerator` a prompt, a `MaskFiller` a text with gaps, a `Classifier` a text
    or an image; a model alone takes ids. A model that writes searches for a target unless `target` gives one; of an
    encoder alone, `answer` holds the labels, or what fills the gaps. Several threads may trace one model while others
    use it. `changes` are those of `what_if`. The options are:

    beam, length_penalty, max_new_tokens   how to search for a target, as in `Search`
    prefix                                 ids or pieces that the target begins with
    padding                                padding tokens to add to the sentence, so that their mask can be seen
    temperature                            divides the logits
    name                                   of the model, for the manifest
    between_steps                          called before every layer of every pass; what it raises ends the trace
    """
    return run(prepare(Subject(subject), sentence, target, changes, **options))


def run(given: TraceInput) -> Trace:
    """Decode, run the traced pass, and derive everything else from its values."""
    subject, options, model, src, mask = given.subject, given.options, given.model, given.src, given.mask
    if given.target is not None:
        written = decoding.teacher_forced(model, src[0].tolist(), given.target)
    else:
        written = decoding.decode(model, src, mask, options)
    weights = Weights.of(model)
    open_mask = any(change["kind"] == "remove_mask" and change["mask"] == "padding" for change in given.changes)
    shift = options.padding if isinstance(model, DecoderOnly) and not open_mask else 0
    graph = GraphBuilder(model.config, ActivationCache(), weights, given.replaced, shift)
    tgt = torch.tensor([written.reads], device=src.device)
    memory = record_forward(model, src, mask, tgt, graph, open_mask, options.temperature)
    prompt = len(written.prompt)
    logits = graph.values["logits"].value[max(0, prompt - 1) :]  # (steps, V); of what writes nothing, (T, V)
    if not is_causal(model):
        logits = decoding.step_logits(model, src, mask, written)
    log_probs = decoding.log_probabilities(logits, options.temperature)
    rows = decoding.decoding_steps(log_probs, written, subject)
    source, real = [] if subject.reads_images else src[0].tolist(), mask[0].tolist()
    return Trace(
        subject=subject,
        name=given.name,
        run=run_id(source, written, given),
        text=subject.text_of(given.sentence),
        source=source,
        real=real,
        written=written,
        options=options,
        changes=given.changes,
        values=graph.values,
        weights=weights,
        steps=rows,
        answer=decoding.encoder_answer(subject, source, real, log_probs),
        score=rows[-1]["total"] / len(rows) ** options.search.length_penalty if rows else None,
        one_pass=is_causal(model),
        beam=decoding.beam_tree(subject, written, log_probs, options.search),
        cache=cache_steps(model, memory, mask, written.reads, prompt, logits),
    )


def run_id(source: list[int], written: DecodedTokens, given: TraceInput) -> str:
    """The same for the same weights, ids, options and changes."""
    read = hashlib.sha256(raw(given.src)).hexdigest() if given.subject.reads_images else source
    options = given.options.as_dict()
    identity = [fingerprint(given.subject.model), read, written.reads, written.chosen, options, given.changes]
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
