"""To a page that needs no server: static files in which the model runs, and every view shows the numbers of that run.

index.html, static/        the page that `glassformer serve` shows
runtime/                   ONNX Runtime's WebAssembly, with its licence
model/onnx/                the graphs: encoder, decoder step, and a pass whose outputs are all values of a trace
model/weights.bin          the weights of all three, once, stored as in the model's folder
model/told.json            what a trace says of each value, the vocabulary, examples, drawings
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.external_data_helper import set_external_data
from torch import nn

from glassformer.common.files import write_bytes, write_json, write_text
from glassformer.data import Tokenizer
from glassformer.data.protect import PLACEHOLDERS
from glassformer.data.vocabulary import TAG
from glassformer.decode.engine import GROWTH, SLACK, STRIDE
from glassformer.deploy.export.formats import CannotExport, CheckFailed, Format, Progress
from glassformer.deploy.export.graph import MASK, SOURCE, TARGET, WEIGHT, encoder_and_decoder, trace_graph
from glassformer.deploy.export.inputs import LoadedModel, Sample
from glassformer.deploy.export.onnx import FOLDER, check_onnx, int8_matrices, onnx_config, refusals
from glassformer.deploy.export.runtime import SCRIPT, VERSION, runtime_files
from glassformer.explain.decoding import RULE, RUNNERS_UP, TOP
from glassformer.explain.kv_cache import ROUNDING
from glassformer.explain.schematic import schematics
from glassformer.explain.trace import Trace, trace
from glassformer.explain.weights import Weights, facts, raw
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.page import page_files
from glassformer.pipelines import box
from glassformer.pipelines.translator import Translator
from glassformer.weights.quantized import Int8Matrix

MODEL, RUNTIME = "model", "runtime"
WEIGHTS = "weights.bin"
GRAPHS = ("encoder_model", "decoder_model_merged", "trace")
TRACED = 3  # sentences of which every value is compared
VALUE_TOLERANCE = 1e-4  # of the largest number of a value
ENTRY = '<script type="module" src="static/main.js"></script>'
BEFORE = f"""<script>window.GLASSFORMER_MODEL = "{MODEL}/";</script>
<script type="module">import * as ort from "./{RUNTIME}/{SCRIPT}"; window.GLASSFORMER_RUNTIME = ort;</script>"""


class Page(Format):
    name = "page"
    options: ClassVar[dict[str, tuple[str, ...]]] = {}  # weights are stored as in the model's folder

    def refuse(self, loaded: LoadedModel) -> None:
        for reason in (*refusals(loaded.model), *page_refusals(loaded)):
            raise CannotExport(f"a page cannot run this model: {reason}")
        runtime_files()

    def write(self, loaded: LoadedModel, folder: Path) -> None:
        translator = translator_of(loaded)
        model = translator.model
        examples = choose_examples(loaded)
        traced = trace(translator, examples[0].text, name=loaded.name)
        values = [value.name for value in traced.values.values() if value.op["kind"] != "same"]
        weights = WeightsFile(traced.weights, int8_matrices(model) if loaded.stored == "int8" else {})
        place = folder / MODEL
        for made in (place / FOLDER, folder / RUNTIME, folder / "static"):
            made.mkdir(parents=True)
        for name, graph in zip(GRAPHS, (*encoder_and_decoder(model), trace_graph(model, values)), strict=True):
            onnx.checker.check_model(graph)
            weights.move(graph, model)
            write_bytes(place / FOLDER / f"{name}.onnx", graph.SerializeToString())
        write_bytes(place / WEIGHTS, weights.stored())
        write_json(place / "config.json", onnx_config(loaded, "float32"))
        told = page_data(translator, traced, values, examples) | {"stored": weights.parts(), "bytes": weights.size}
        write_text(place / "told.json", json.dumps(told, ensure_ascii=False, separators=(",", ":")))
        for name, data in runtime_files().items():
            write_bytes(folder / RUNTIME / name, data)
        files = dict(page_files())
        index = files.pop("index.html")
        assert ENTRY in index
        write_text(folder / "index.html", index.replace(ENTRY, f"{BEFORE}\n{ENTRY}"))
        for name, text in files.items():
            write_text(folder / "static" / name, text)

    def check(self, loaded: LoadedModel, folder: Path, sample: Sample, progress: Progress) -> dict[str, Any]:
        translator = translator_of(loaded)
        told = json.loads((folder / MODEL / "told.json").read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as temporary:
            place = Path(temporary)
            shutil.copytree(folder / MODEL / FOLDER, place / FOLDER)
            shutil.copyfile(folder / MODEL / "config.json", place / "config.json")
            (place / FOLDER / WEIGHTS).write_bytes(to_float32((folder / MODEL / WEIGHTS).read_bytes(), told))
            figures = check_onnx(loaded, translator.model, place, sample, progress)
            examples = choose_examples(loaded)[:TRACED]
            traced = same_values(translator, place / FOLDER / "trace.onnx", told["values"], examples)
        return figures | {"traced": traced}

    def versions(self) -> dict[str, str]:
        return {"onnxruntime-web": VERSION} | super().versions()


FORMAT = Page()


def page_refusals(loaded: LoadedModel) -> Iterator[str]:
    """Why the page's script cannot run a model."""
    config = loaded.model.config
    if not isinstance(loaded.tokenizer, Tokenizer) or '"WordLevel"' in loaded.tokenizer.forms[0]:
        yield "it needs text cut by a tokenizer of ours of kind bpe or unigram"
    if config.positions == "relative":
        yield "positions='relative': the page has no table of their buckets without a server"
    if config.segments:
        yield f"segments={config.segments}: the page knows one text only"


def translator_of(loaded: LoadedModel) -> Translator:
    assert isinstance(loaded.model, EncoderDecoder)
    assert isinstance(loaded.tokenizer, Tokenizer)
    return Translator(loaded.model, loaded.tokenizer, about=loaded.about)


def choose_examples(loaded: LoadedModel) -> list[Any]:
    """Sentences to try: those of the box, or of the model's card."""
    name = f"{loaded.about.source}-{loaded.about.target}"
    found = list(box.examples(name)) if loaded.language and name in box.directions() else []
    return found or [box.Example(text) for text in loaded.about.examples or ("Hello, world!",)]


def same_values(translator: Translator, path: Path, names: list[str], texts: Sequence[Any]) -> dict[str, Any]:
    """Compare every value of some traces with the graph's outputs."""
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
            difference = float(np.abs(here[~hidden] - there[~hidden]).max(initial=0.0) / high)
            if not difference <= VALUE_TOLERANCE:
                raise CheckFailed(
                    f"the page's graph gives {name} of {one.text!r} otherwise: {difference:.2g} of its range"
                )
            worst, numbers = max(worst, difference), numbers + here.size
    return {"sentences": len(texts), "values": len(names), "numbers": numbers, "worst of a value's range": worst}


LIMITS = {"beam": 8, "padding": 8}


def page_data(translator: Translator, traced: Trace, values: list[str], examples: Sequence[Any]) -> dict[str, Any]:
    """The data of told.json, without numbers of a run; `traced` is any run, for what is the same in all of them."""
    manifest = traced.manifest()
    own = ("shape", "axes", "op", "formula", "formula_zh", "inputs")
    config = translator.model.config
    assert isinstance(translator.tokenizer, Tokenizer)
    return {
        "format": manifest["format"],
        "facts": {
            "model": facts(traced.subject, traced.name),
            "about": asdict(translator.about),
            "limits": LIMITS,
            "examples": [one._asdict() for one in examples],
            "direction": "",
            "directions": [],
        },
        "values": values,
        "tensors": [{"name": row["name"]} | {name: row[name] for name in own} for row in manifest["tensors"]],
        "weights": manifest["weights"],
        "masks": manifest["masks"],
        "tag": manifest["source"]["tag"],
        "schematics": {language: schematics(translator.model, language) for language in ("en", "zh")},
        "text": tokenizer_data(translator.tokenizer),
        "decoder": decoder_data(config),
        "rules": {"growth": GROWTH, "slack": SLACK, "stride": STRIDE, "top": TOP, "runners_up": RUNNERS_UP}
        | {"rule": RULE, "rounding": ROUNDING},
    }


def tokenizer_data(tokenizer: Tokenizer) -> dict[str, Any]:
    """The vocabularies and the merges or scores, as glassformer.data.vocabulary describes them."""
    sides = []
    for side, pieces in zip(tokenizer.forms, tokenizer.pieces, strict=True):
        form = json.loads(side)
        model, pattern = form["model"], form["pre_tokenizer"]["pattern"]["Regex"]
        size = max(pieces) + 1
        data: dict[str, Any] = {"pieces": [pieces.get(id, "") for id in range(size)]}
        if model["type"] == "BPE":
            data["merges"] = [one.split(" ") if isinstance(one, str) else one for one in model["merges"]]
        else:
            data["scores"] = [score for _, score in model["vocab"]]
        data["tags"] = [id for id, piece in pieces.items() if TAG.fullmatch(piece)]
        data["marks"] = "".join(mark for mark in PLACEHOLDERS if mark in pattern)
        sides.append(data)
        if tokenizer.joint:
            break
    first = [] if tokenizer.to is None else [sides[0]["pieces"].index(f"<2{tokenizer.to}>")]
    return {"sides": sides, "first": first, "words": sorted(tokenizer.words)}


def decoder_data(config: ModelConfig) -> dict[str, Any]:
    """What a search needs, and the count of its operations."""
    own = config.decoder
    sizes = ("layers", "heads", "d_head", "d_model", "d_ff", "gated", "vocab_size")
    return {
        "start": config.start_id,
        "end": config.end_id,
        "pad": config.pad_id or 0,
        "force_end": config.force_end and config.end_id is not None,
        "max_length": config.max_length,
        "groups": own.kv_heads or own.heads,
        **{name: getattr(own, name) for name in sizes},
    }


class WeightsFile:
    """The weights of several graphs in one file: those of a trace in its order, then other tables of the graphs.

    Graphs and the page address them as float32, one tensor after the other. A matrix may be stored as int8 with a scale
    for each row, and is then multiplied once, when the file is loaded.
    """

    def __init__(self, weights: Weights, int8: dict[str, Int8Matrix]) -> None:
        self.offsets = {row["name"]: (row["offset"], row["bytes"]) for row in weights.manifest()}
        self.weights, self.int8 = weights, int8
        self.size = sum(bytes for _, bytes in self.offsets.values())
        self.tables: dict[bytes, int] = {}

    def move(self, graph: onnx.ModelProto, model: nn.Module) -> None:
        """Replace the graph's weights by references into the file."""
        own = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        for weight in graph.graph.initializer:
            if not weight.name.startswith(WEIGHT):
                continue
            tensor = own.get(weight.name.removeprefix(WEIGHT))
            name = None if tensor is None else self.weights.names.get(id(tensor))
            offset, size = self.table(numpy_helper.to_array(weight)) if name is None else self.offsets[name]
            set_external_data(weight, WEIGHTS, offset, size)
            weight.ClearField("raw_data")

    def table(self, values: NDArray[Any]) -> tuple[int, int]:
        data = values.astype("<f4").tobytes()
        if data not in self.tables:
            self.tables[data] = self.size
            self.size += len(data)
        return self.tables[data], len(data)

    def parts(self) -> list[dict[str, Any]]:
        """For each part its `offset` as float32, and its place `at` in the file, with that of its `scales` if any."""
        found: list[dict[str, Any]] = []
        at = 0  # numbers of 4 bytes come first, so that each starts at a multiple of 4
        whole = [place for name, place in self.offsets.items() if name not in self.int8]
        for offset, size in (*whole, *((offset, len(data)) for data, offset in self.tables.items())):
            found.append({"offset": offset, "numbers": size // 4, "at": at})
            at += size
        names = [name for name in self.offsets if name in self.int8]
        scales = at
        at += sum(4 * len(self.int8[name].scales) for name in names)
        for name in names:
            (offset, size), rows = self.offsets[name], len(self.int8[name].scales)
            found.append({"offset": offset, "numbers": size // 4, "at": at, "rows": rows, "scales": scales})
            at, scales = at + size // 4, scales + 4 * rows
        return found

    def stored(self) -> bytes:
        whole = [raw(self.weights.tensors[name]) for name in self.offsets if name not in self.int8]
        matrices = [self.int8[name] for name in self.offsets if name in self.int8]
        scales = [raw(matrix.scales) for matrix in matrices]
        return b"".join((*whole, *self.tables, *scales, *(matrix.values.numpy().tobytes() for matrix in matrices)))


def to_float32(data: bytes, told: dict[str, Any]) -> bytes:
    """The file as float32, as graphs address it."""
    out = np.empty(told["bytes"] // 4, dtype="<f4")
    for part in told["stored"]:
        first, count = part["offset"] // 4, part["numbers"]
        if "scales" in part:
            values = np.frombuffer(data, np.int8, count, part["at"]).reshape(part["rows"], -1)
            scales = np.frombuffer(data, "<f4", part["rows"], part["scales"])
            out[first : first + count] = (values * scales[:, None]).ravel()
        else:
            out[first : first + count] = np.frombuffer(data, "<f4", count, part["at"])
    return out.tobytes()
