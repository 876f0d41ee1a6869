"""The API of the page that looks inside a model.

GET  /api/model              the model, the directions, the weights by name, the limits of this server
GET  /api/weights            the weights' bytes (ranges)
POST /api/trace              a sentence followed through the model: the manifest
POST /api/whatif             the same sentence before and after some changes
POST /api/translate          the translation alone
GET  /api/schematics         drawings of how the model is put together, as SVG
GET  /api/runs/{run}/blob    a run's values (ranges); /json the whole run; /export one HTML file
GET  /api/labs               the labs: what each claims, and the cached results
POST /api/labs/{name}        run one, or answer from the cache

`direction` is the name of a direction of /api/model; by default, the first.
"""

from __future__ import annotations

import asyncio
import io
import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from mmap import mmap
from typing import Annotated, Any, NamedTuple

import anyio
from fastapi import APIRouter, Path, Request, Response

from glassformer.common.errors import ConfigError, RunError
from glassformer.common.strings import Language
from glassformer.common.version import __version__
from glassformer.deploy.server.admission import AdmissionControl, RequestState, cancel_on_disconnect
from glassformer.deploy.server.directions import Directions, ServedDirection
from glassformer.deploy.server.errors import RequestError
from glassformer.deploy.server.requests import (
    ChangesRequest,
    LabRequest,
    SentenceRequest,
    TraceRequest,
    WhatIfRequest,
    decode_image,
)
from glassformer.deploy.server.responses import compressed, encode_json, json_response, range_response
from glassformer.explain.html_page import standalone
from glassformer.explain.schematic import schematics
from glassformer.explain.subject import Sentence, Subject
from glassformer.explain.trace import Trace, TraceOptions, inline_values, trace
from glassformer.explain.weights import facts
from glassformer.explain.what_if import what_if
from glassformer.labs import NAMES, find
from glassformer.labs.run import LabWorker, Reports
from glassformer.pipelines import Classifier

MAX_RUNS, MAX_BYTES = 64, 256_000_000  # of traces, kept for the page; making one takes about 60 MB more
MAX_LAB_RUNS = 64
LabName = Annotated[str, Path(pattern="^[a-z][a-z_-]{1,39}$", description="A lab's name, as GET /api/labs gives it.")]
RunName = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="A run's name, as its manifest gives it.")]
BYTES: dict[int | str, dict[str, Any]] = {
    200: {"description": "All bytes.", "content": {"application/octet-stream": {}}},
    206: {"description": "The requested range.", "content": {"application/octet-stream": {}}},
    416: {"description": "The range lies outside.", "content": {"application/json": {}}},
}


@dataclass(frozen=True)
class Limits:
    """Requests beyond `source_tokens` or `characters` are refused. The other values are capped, with a note."""

    source_tokens: int = 64
    beam: int = 8
    padding: int = 8
    new_tokens: int = 64
    continued: int = 24  # new tokens of a decoder-only model, which seldom ends by itself
    characters: int = 2000
    waiting: int = 256  # requests


class Run(NamedTuple):
    """A trace as bytes, so that its size is known. The values lie outside the heap, which would otherwise have large
    holes when they go."""

    manifest: bytes  # JSON
    blob: memoryview
    served: ServedDirection

    @property
    def size(self) -> int:
        return len(self.manifest) + len(self.blob)

    def to_json(self) -> bytes:
        """The manifest with all values inline, one tensor at a time: lists of numbers take eight times the blob."""
        whole, text = json.loads(self.manifest), io.BytesIO()
        rows = inline_values(whole.pop("tensors"), self.blob)
        text.write(encode_json(whole)[:-1] + b',"tensors":[')
        for row in rows:
            text.write(encode_json(row) + b",")
        text.seek(-1, io.SEEK_CUR)
        text.write(b"]}")
        return text.getvalue()

    def to_html(self) -> str:
        return standalone(json.loads(self.manifest), self.blob, self.served.loader.weights, self.served.model.model)


class RunCache:
    """The latest runs, within bounds of number and size. The newest always stays."""

    def __init__(self, max_runs: int = MAX_RUNS, max_bytes: int = MAX_BYTES) -> None:
        self.max_runs, self.max_bytes = max_runs, max_bytes
        self._runs: OrderedDict[str, Run] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, manifest: dict[str, Any], blob: bytes, served: ServedDirection) -> None:
        pages = mmap(-1, len(blob))
        pages.write(blob)
        run = Run(encode_json(manifest), memoryview(pages), served)
        with self._lock:
            self._runs[manifest["run"]] = run
            self._runs.move_to_end(manifest["run"])
            while len(self._runs) > 1 and (len(self._runs) > self.max_runs or self.size > self.max_bytes):
                self._runs.popitem(last=False)

    def get(self, run: str) -> Run | None:
        with self._lock:
            if run in self._runs:
                self._runs.move_to_end(run)
            return self._runs.get(run)

    @property
    def size(self) -> int:
        return sum(run.size for run in self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)


class TraceApi:
    """Checks requests about a sentence, and answers them with the model."""

    def __init__(self, directions: Directions, limits: Limits, handbook: bool, translates: bool) -> None:
        self.directions, self.limits = directions, limits
        self.handbook, self.translates = handbook, translates  # what the server has beside the page
        self.runs = RunCache()

    def count_tokens(self, text: str, subject: Subject) -> int:
        """The number of tokens, or of an image's patches; too long and empty texts are refused."""
        limits = self.limits
        if subject.reads_images:
            return len(subject.places)
        if len(text) > limits.characters:
            message = f"the sentence has {len(text):,} characters, at most {limits.characters:,} are read"
            raise RequestError(422, "long_text", message, "shorten it", limit=limits.characters)
        tokens = len(subject.encoded(text)) if text.strip() else 0
        if tokens == 0:
            raise RequestError(422, "empty", "the sentence is empty", "send some words as `text`")
        limit = min(limits.source_tokens, subject.max_source_length())
        if tokens > limit:
            message = f"the sentence has {tokens} tokens, at most {limit} can be shown"
            raise RequestError(422, "long", message, "shorten it", tokens=tokens, limit=limit)
        return tokens

    def prepare(
        self, body: ChangesRequest, state: RequestState
    ) -> tuple[ServedDirection, Sentence, TraceOptions, dict[str, dict[str, int]]]:
        """What the model reads, the options of the trace, and which of them are capped."""
        served = self.directions.get(body.direction)
        model, subject, limits = served.model, Subject(served.model), self.limits
        tokens = self.count_tokens(body.text, subject)
        limit = limits.continued if subject.task == "continue" else limits.new_tokens
        options: TraceOptions = {
            "beam": min(body.beam, limits.beam),
            "padding": min(body.padding, limits.padding),
            "max_new_tokens": limit if subject.max_target_length(tokens) > limit else None,
            "name": served.loader.name,
            "between_steps": state.check,
        }
        sentence: Sentence = body.text
        if isinstance(model, Classifier) and model.reads_images:
            sentence = decode_image(body.text, model.image_processor)
        capped = exceeded(beam=(body.beam, limits.beam), padding=(body.padding, limits.padding))
        return served, sentence, options, capped

    def trace(self, body: TraceRequest, state: RequestState) -> dict[str, Any]:
        served, sentence, options, capped = self.prepare(body, state)
        limit = self.limits.new_tokens
        if body.target is not None and len(Subject(served.model).target_ids(body.target)) > limit:
            raise RequestError(422, "refused", f"the target has more than {limit} tokens", "shorten it", limit=limit)
        options |= {"prefix": body.prefix, "temperature": body.temperature}
        found = trace(served.model, sentence, body.target, changes=body.plain_changes(), **options)
        manifest = found.manifest()
        self.runs.add(manifest, found.blob(), served)
        return manifest | trace_notes(found, capped, options["max_new_tokens"])

    def what_if(self, body: WhatIfRequest, state: RequestState) -> dict[str, Any]:
        served, sentence, options, capped = self.prepare(body, state)
        found = what_if(served.model, sentence, body.plain_changes(), **options)
        told = found.as_dict()
        for which in ("before", "after"):
            self.runs.add(told[which], getattr(found, which).blob(), served)
        return told | trace_notes(found.after, capped, options["max_new_tokens"])

    def translate(self, body: SentenceRequest, state: RequestState) -> dict[str, Any]:
        translator = self.directions.get(body.direction).translator
        self.count_tokens(body.text, Subject(translator))
        limit = self.limits.beam
        best = translator.translate([body.text], beam=min(body.beam, limit), between_steps=state.check)[0][0]
        found = {"text": best.text, "score": best.score, "tokens": best.tokens}
        return found | notes(exceeded(beam=(body.beam, limit)))

    def describe(self, direction: str | None) -> dict[str, Any]:
        served = self.directions.get(direction)
        return {
            "model": facts(Subject(served.model), served.loader.name),
            "about": asdict(served.model.about),
            "direction": served.direction.name,
            "directions": [one._asdict() for one in self.directions.by_name.values()],
            "examples": [one._asdict() for one in served.examples],
            "handbook": self.handbook,
            "limits": asdict(self.limits),
            "translates": self.translates,
            "version": __version__,
            "weights": served.loader.weights.manifest(),
        }

    def run(self, run: str) -> Run:
        found = self.runs.get(run)
        if found is None:
            hint = "POST the same request to /api/trace again"
            raise RequestError(404, "forgotten", f"the run {run} is not, or no longer, in this server's memory", hint)
        return found


class LabRunner:
    """Runs one lab at a time, in its own process. Requests for the running lab share its result."""

    def __init__(self) -> None:
        self.worker = LabWorker()
        self.execute: Callable[[str, int], Reports] = self.worker.run
        self._cache: OrderedDict[tuple[str, int], Reports] = OrderedDict()
        self._running: tuple[str, int, asyncio.Task[Reports]] | None = None

    async def list(self, language: Language) -> dict[str, Any]:
        labs = await anyio.to_thread.run_sync(lambda: [find(name).as_dict(language) for name in NAMES])
        kept = [{key: found["en"][key] for key in ("name", "seed", "verdict")} for found in self._cache.values()]
        running = self._running and {"name": self._running[0], "seed": self._running[1]}
        return {"labs": labs, "kept": kept, "running": running}

    async def run(self, name: str, seed: int) -> Reports:
        """The result of a lab with a seed. The lab goes on when its client disconnects."""
        try:
            lab = await anyio.to_thread.run_sync(find, name)
        except ConfigError as error:
            raise RequestError.from_user_error(error, 404, "no_lab", name=name) from None
        if (lab.name, seed) in self._cache:
            self._cache.move_to_end((lab.name, seed))
            return self._cache[lab.name, seed]
        if self._running is None:
            task = asyncio.create_task(self._run(lab.name, seed))
            task.add_done_callback(lambda done: done.cancelled() or done.exception())  # marks the error as seen
            self._running = (lab.name, seed, task)
        elif self._running[:2] != (lab.name, seed):
            busy, with_seed, _ = self._running
            message = f"the lab {busy} (seed {with_seed}) is running, and only one runs at a time"
            raise RequestError(409, "lab_busy", message, "try again when it is done", name=busy, seed=with_seed)
        return await asyncio.shield(self._running[2])

    async def _run(self, name: str, seed: int) -> Reports:
        try:
            found = self._cache[name, seed] = await anyio.to_thread.run_sync(self.execute, name, seed)
        except RunError as error:
            raise RequestError.from_user_error(error, 500, "lab_broke", name=name, seed=seed) from None
        finally:
            self._running = None
        if len(self._cache) > MAX_LAB_RUNS:
            self._cache.popitem(last=False)
        return found


def exceeded(**values: tuple[int, int]) -> dict[str, dict[str, int]]:
    """Values, each with its limit, that are beyond it."""
    return {name: {"asked": value, "used": limit} for name, (value, limit) in values.items() if value > limit}


def trace_notes(found: Trace, capped: dict[str, dict[str, int]], limit: int | None) -> dict[str, Any]:
    if limit is not None and not found.written.finished and len(found.written.chosen) >= limit:
        capped = capped | {"new_tokens": {"asked": limit, "used": limit}}
    return notes(capped)


def notes(capped: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Capped values, for people in `notes` and for the page in `capped`."""
    texts = [f"{name.replace('_', ' ')} capped at {one['used']}" for name, one in capped.items()]
    return {"notes": texts, "capped": capped}


def add_trace_routes(router: APIRouter, api: TraceApi, labs: LabRunner, admission: AdmissionControl) -> None:
    @router.get("/api/model")
    async def model(request: Request, direction: str | None = None) -> Response:
        return json_response(request, await anyio.to_thread.run_sync(api.describe, direction))

    @router.get("/api/schematics")
    async def drawings(request: Request, direction: str | None = None, lang: Language = "en") -> Response:
        found = await anyio.to_thread.run_sync(lambda: schematics(api.directions.get(direction).model.model, lang))
        return json_response(request, found)

    @router.get("/api/weights", responses=BYTES)
    async def weights(request: Request, direction: str | None = None) -> Response:
        blob = await anyio.to_thread.run_sync(lambda: api.directions.get(direction).loader.blob)
        return range_response(request, blob)

    @router.post("/api/trace")
    async def trace_sentence(request: Request, body: TraceRequest) -> Response:
        return await admission.run(request, lambda state: json_response(request, api.trace(body, state)))

    @router.post("/api/whatif")
    async def compare(request: Request, body: WhatIfRequest) -> Response:
        return await admission.run(request, lambda state: json_response(request, api.what_if(body, state)))

    @router.post("/api/translate")
    async def translate(request: Request, body: SentenceRequest) -> Response:
        return await admission.run(request, lambda state: json_response(request, api.translate(body, state)))

    @router.get("/api/runs/{run}/blob", responses=BYTES)
    async def blob(request: Request, run: RunName) -> Response:
        return range_response(request, api.run(run).blob)

    @router.get("/api/runs/{run}/json")
    async def whole_run(request: Request, run: RunName) -> Response:
        found = api.run(run)
        return await admission.run(request, lambda _: json_response(request, found.to_json()))

    @router.get("/api/runs/{run}/export", responses={200: {"content": {"text/html": {}}}})
    async def export(request: Request, run: RunName) -> Response:
        found = api.run(run)
        headers = {"Content-Disposition": f'attachment; filename="{run}.html"', "Cache-Control": "no-store"}
        return await admission.run(
            request, lambda _: compressed(request, found.to_html().encode(), "text/html; charset=utf-8", headers)
        )

    @router.get("/api/labs")
    async def list_labs(request: Request, lang: Language = "en") -> Response:
        return json_response(request, await labs.list(lang))

    @router.post("/api/labs/{name}")
    async def run_lab(request: Request, name: LabName, body: LabRequest) -> Response:
        with cancel_on_disconnect(request):
            found = await labs.run(name, body.seed)
        return json_response(request, found[body.lang])
