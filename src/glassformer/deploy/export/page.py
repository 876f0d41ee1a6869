"""To a page that needs no server: static files in which the model runs, and every view shows the numbers of that run.

index.html, static/        the page that `glassformer serve` shows
runtime/                   ONNX Runtime's WebAssembly, with its licence
model/onnx/                the graphs: encoder, decoder step, and the pass of a trace with every probe an output
model/weights.bin          the weights of all three, once; as the model's folder stores them
model/told.json            what a trace tells of each value, the vocabulary, examples, drawings
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from glassformer.common.files import write_bytes, write_text
from glassformer.data import Tokenizer
from glassformer.deploy.export.blob import Blob, expanded
from glassformer.deploy.export.check import same_targets
from glassformer.deploy.export.driver import Model as Driver
from glassformer.deploy.export.format import CannotExport, CheckFailed, Format, Progress
from glassformer.deploy.export.graph import MASK, SOURCE, TARGET, trace_graph
from glassformer.deploy.export.onnx import FOLDER, graphs, reasons, rounded_matrices, settings, write_json, written_by
from glassformer.deploy.export.report import told_of
from glassformer.deploy.export.runtime import SCRIPT, VERSION, runtime_files
from glassformer.deploy.export.sample import Sample
from glassformer.deploy.export.subject import Subject
from glassformer.deploy.export.vocabulary import spelling
from glassformer.explain.trace import trace
from glassformer.explain.traced import Trace
from glassformer.model import EncoderDecoder
from glassformer.page import page_files
from glassformer.pipelines import box
from glassformer.pipelines.translator import Translator

MODEL, RUNTIME = "model", "runtime"
WEIGHTS = "weights.bin"
GRAPHS = ("encoder_model", "decoder_model_merged", "trace")
TRACED = 3  # sentences whose every value is compared
CLOSE = 1e-4  # of the largest number of a value
TOLERANCE = 1e-4
ENTRY = '<script type="module" src="static/main.js"></script>'
BEFORE = f"""<script>window.GLASSFORMER_MODEL = "{MODEL}/";</script>
<script type="module">import * as ort from "./{RUNTIME}/{SCRIPT}"; window.GLASSFORMER_RUNTIME = ort;</script>"""


@dataclass(frozen=True)
class Options:
    """There is nothing to choose: weights lie as the model's folder has them."""


class Page(Format):
    name = "page"
    options = Options

    def refuse(self, subject: Subject, options: Options) -> None:
        for reason in [*reasons(subject), *unseen(subject)]:
            raise CannotExport(f"a page cannot run this model: {reason}")
        runtime_files()

    def write(self, subject: Subject, folder: Path, options: Options) -> None:
        translator = translator_of(subject)
        model = translator.model
        traced = trace(translator, example(subject), name=subject.name)
        values = [value.name for value in traced.values.values() if value.op["kind"] != "same"]
        rounded = rounded_matrices(model) if subject.stored == "int8" else {}
        blob = Blob(traced.weights, rounded)
        place = folder / MODEL
        (place / FOLDER).mkdir(parents=True)
        for name, graph in zip(GRAPHS, (*graphs(model), trace_graph(model, values)), strict=True):
            onnx.checker.check_model(graph)
            blob.take(graph, model)
            write_bytes(place / FOLDER / f"{name}.onnx", graph.SerializeToString())
        write_bytes(place / WEIGHTS, blob.stored())
        write_json(place / "config.json", settings(subject, "float32"))
        told = told_of(translator, traced, values, examples(subject)) | {"stored": blob.parts(), "bytes": blob.size}
        write_text(place / "told.json", json.dumps(told, ensure_ascii=False, separators=(",", ":")))
        for name, data in runtime_files().items():
            (folder / RUNTIME).mkdir(exist_ok=True)
            write_bytes(folder / RUNTIME / name, data)
        for name, text in page_files().items():
            if name == "index.html":
                assert ENTRY in text
                write_text(folder / name, text.replace(ENTRY, f"{BEFORE}\n{ENTRY}"))
            else:
                (folder / "static").mkdir(exist_ok=True)
                write_text(folder / "static" / name, text)

    def check(
        self, subject: Subject, folder: Path, sample: Sample, options: Options, progress: Progress
    ) -> dict[str, Any]:
        translator = translator_of(subject)
        told = json.loads((folder / MODEL / "told.json").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary)
            (place / FOLDER).mkdir()
            for file in (folder / MODEL / FOLDER).iterdir():
                (place / FOLDER / file.name).write_bytes(file.read_bytes())
            (place / FOLDER / WEIGHTS).write_bytes(expanded((folder / MODEL / WEIGHTS).read_bytes(), told))
            (place / "config.json").write_bytes((folder / MODEL / "config.json").read_bytes())
            driver = Driver(place, threads=1)
            figures = same_targets(translator.model, written_by(driver), sample, TOLERANCE, progress, spelling(subject))
            traced = same_values(translator, place / FOLDER / "trace.onnx", told["values"], examples(subject)[:TRACED])
        return figures | {"traced": traced}

    def versions(self) -> dict[str, str]:
        return {"onnxruntime-web": VERSION} | {name: version(name) for name in ("onnx", "onnxscript", "onnxruntime")}


FORMAT = Page()


def unseen(subject: Subject) -> list[str]:
    """What the page's script has no way to do."""
    config, found = subject.model.config, []
    if not isinstance(subject.tokenizer, Tokenizer) or '"WordLevel"' in subject.tokenizer.forms[0]:
        found.append("it needs text cut by a tokenizer of ours of kind bpe or unigram")
    if config.positions == "relative":
        found.append("positions='relative': the page has no table of their buckets without a server")
    if config.segments:
        found.append(f"segments={config.segments}: the page knows one text only")
    return found


def translator_of(subject: Subject) -> Translator:
    assert isinstance(subject.model, EncoderDecoder)
    assert isinstance(subject.tokenizer, Tokenizer)
    return Translator(subject.model, subject.tokenizer, about=subject.about)


def examples(subject: Subject) -> list[Any]:
    """Sentences to try: the box's, or those that the model's card names."""
    name = "-".join((subject.about.source, subject.about.target))
    found = list(box.examples(name)) if subject.language and name in box.directions() else []
    return found or [box.Example(text) for text in subject.about.examples or ("Hello, world!",)]


def example(subject: Subject) -> str:
    text: str = examples(subject)[0].text
    return text


def same_values(translator: Translator, path: Path, names: list[str], texts: Sequence[Any]) -> dict[str, Any]:
    """Every value of some traces, by the graph and by us."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    worst, numbers = 0.0, 0
    for one in texts:
        ours: Trace = trace(translator, one.text)
        src, tgt = (np.array([ids], dtype=np.int64) for ids in (ours.source, ours.written.reads))
        found = session.run(names, {SOURCE: src, MASK: np.ones_like(src), TARGET: tgt})
        for name, there in zip(names, found, strict=True):
            here = ours[name].numpy()
            hidden = ~np.isfinite(here)
            high = np.abs(here[~hidden]).max(initial=1e-6)
            if here.shape != there.shape or not np.array_equal(here[hidden], there[hidden]):
                raise CheckFailed(f"the page's graph gives {name} of {one.text!r} in another form: {there.shape}")
            apart = float(np.abs(here[~hidden] - there[~hidden]).max(initial=0.0) / high)
            if not apart <= CLOSE:
                raise CheckFailed(f"the page's graph gives {name} of {one.text!r} otherwise: {apart:.2g} of its range")
            worst, numbers = max(worst, apart), numbers + here.size
    return {"sentences": len(texts), "values": len(names), "numbers": numbers, "worst of a value's range": worst}
