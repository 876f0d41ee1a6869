"""The server: a translator's traces over HTTP, and the page that shows them.

GET  /                       the page; its files under /static
GET  /api/model              what the model is, its directions, its weights by name, the limits of this server
GET  /api/weights            the weights' bytes (ranges)
POST /api/trace              a sentence followed through the model: the manifest
POST /api/whatif             the same sentence before and after some changes
POST /api/translate          the translation alone
GET  /api/schematics         drawings of how the model is put together, as SVG
GET  /api/runs/{run}/blob    a run's values (ranges); /json the whole run; /export one HTML file
GET  /api/labs               the labs: what each claims, what has been found already
POST /api/labs/{name}        run one, or answer with what it found before
GET  /handbook/en/...        the handbook, where it has been built

Where there are several directions, `direction` names one of those that /api/model lists; without it, the first.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path as FilePath
from typing import Annotated, Any

import anyio
from fastapi import FastAPI, Path, Request, Response

import glassformer
from glassformer.explain.schematic import schematics
from glassformer.explain.trace import TraceOptions, trace
from glassformer.explain.traced import Trace
from glassformer.explain.weights import facts
from glassformer.explain.what_if import what_if
from glassformer.serve.answers import as_json, packed, page_file, ranged
from glassformer.serve.asked import Asked, Changed, LabAsked, TraceAsked, WhatIfAsked
from glassformer.serve.directions import Directions, Shown, of_translator
from glassformer.serve.door import LOCAL, Door
from glassformer.serve.errors import Refused, install
from glassformer.serve.handbook import Handbook
from glassformer.serve.labs import Labs
from glassformer.serve.recent import RecentRuns, Run
from glassformer.serve.turns import Turns, Wanted, while_wanted
from glassformer.text.strings import Language
from glassformer.translator import Translator


@dataclass(frozen=True)
class Limits:
    """More than this is refused (`source_tokens`, `characters`) or capped (the others), and said."""

    source_tokens: int = 64
    beam: int = 8
    padding: int = 8
    new_tokens: int = 64
    characters: int = 2000
    waiting: int = 256  # requests that may wait for their turn


class Desk:
    """Where requests are checked and answered by the model, for as long as someone waits for the answer."""

    def __init__(self, directions: Directions, limits: Limits, handbook: bool) -> None:
        self.directions, self.limits, self.handbook = directions, limits, handbook
        self.recent = RecentRuns()

    def check(self, text: str, by: Translator) -> int:
        """How many tokens a sentence has, if it can be read."""
        limits = self.limits
        if len(text) > limits.characters:
            message = f"the sentence has {len(text):,} characters, at most {limits.characters:,} are read"
            raise Refused(422, "long_text", message, "shorten it", limit=limits.characters)
        tokens = len(by.tokenizer.encode_source([text])[0]) if text.strip() else 0
        if tokens == 0:
            raise Refused(422, "empty", "the sentence is empty", "send some words as `text`")
        most = min(limits.source_tokens, by.max_source_length())
        if tokens > most:
            message = f"the sentence has {tokens} tokens, at most {most} can be shown"
            raise Refused(422, "long", message, "shorten it", tokens=tokens, limit=most)
        return tokens

    def capped(self, **asked: int) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """The values to use, and those that are not what was asked for."""
        used = {name: min(value, getattr(self.limits, name)) for name, value in asked.items()}
        changed = {name: {"asked": asked[name], "used": used[name]} for name in asked if used[name] != asked[name]}
        return used, changed

    def options(self, asked: Changed, by: Shown, wanted: Wanted) -> tuple[TraceOptions, dict[str, dict[str, int]]]:
        """How a sentence is traced here, and what of that is not as asked for."""
        tokens, most = self.check(asked.text, by.translator), self.limits.new_tokens
        used, capped = self.capped(beam=asked.beam, padding=asked.padding)
        return {
            "beam": used["beam"],
            "padding": used["padding"],
            "max_new_tokens": most if by.translator.max_target_length(tokens) > most else None,
            "name": by.model.name,
            "between_steps": wanted,
        }, capped

    def told(self, found: Trace, capped: dict[str, dict[str, int]], limit: int | None) -> dict[str, Any]:
        if limit is not None and not found.written.finished and len(found.written.chosen) >= limit:
            capped = capped | {"new_tokens": {"asked": limit, "used": limit}}
        return noted(capped)

    def trace(self, asked: TraceAsked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction)
        options, capped = self.options(asked, by, wanted)
        most, encode = self.limits.new_tokens, by.translator.tokenizer.encode_target
        if asked.target is not None and len(encode([asked.target])[0]) > most:
            raise Refused(422, "refused", f"the target has more than {most} tokens", "shorten it", limit=most)
        options |= {"prefix": asked.prefix, "temperature": asked.temperature}
        found = trace(by.translator, asked.text, asked.target, changes=asked.plain_changes(), **options)
        self.recent.add(found)
        return found.manifest() | self.told(found, capped, options["max_new_tokens"])

    def what_if(self, asked: WhatIfAsked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction)
        options, capped = self.options(asked, by, wanted)
        found = what_if(by.translator, asked.text, asked.plain_changes(), **options)
        for one in (found.before, found.after):
            self.recent.add(one)
        return found.as_dict() | self.told(found.after, capped, options["max_new_tokens"])

    def translate(self, asked: Asked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction).translator
        self.check(asked.text, by)
        used, capped = self.capped(beam=asked.beam)
        best = by.translate([asked.text], beam=used["beam"], between_steps=wanted)[0][0]
        return {"text": best.text, "score": best.score, "tokens": best.tokens} | noted(capped)

    def about(self, direction: str | None) -> dict[str, Any]:
        shown, known = self.directions.shown(direction), self.directions.known
        return {
            "model": facts(shown.translator.model, shown.model.name),
            "about": asdict(shown.translator.about),
            "direction": shown.direction.name,
            "directions": [one._asdict() for one in known.values()],
            "examples": [one._asdict() for one in shown.examples],
            "handbook": self.handbook,
            "limits": asdict(self.limits),
            "version": glassformer.__version__,
            "weights": shown.model.weights.manifest(),
        }

    def weights_blob(self, direction: str | None) -> bytes:
        return self.directions.shown(direction).model.blob

    def run(self, run: str) -> Run:
        found = self.recent.get(run)
        if found is None:
            hint = "POST the same request to /api/trace again"
            raise Refused(404, "forgotten", f"the run {run} is not, or no longer, in this server's memory", hint)
        return found


def noted(capped: dict[str, dict[str, int]]) -> dict[str, Any]:
    """What was not done as asked, for people in `notes` and for the page in `capped`."""
    notes = [f"{name.replace('_', ' ')} capped at {one['used']}" for name, one in capped.items()]
    return {"notes": notes, "capped": capped}


LabName = Annotated[str, Path(pattern="^[a-z][a-z_-]{1,39}$", description="A lab's name, as GET /api/labs gives it.")]
RunName = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="A run's name, as its manifest gives it.")]
ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"description": text, "content": {"application/json": {}}}
    for code, text in {
        400: "The body is not JSON.",
        404: "Not, or no longer, here.",
        408: "The request took too long to arrive.",
        409: "Another lab is running.",
        413: "Too large.",
        422: "The request cannot be answered; the reason is in `error`.",
        429: "Too many requests are waiting.",
    }.items()
}
BYTES: dict[int | str, dict[str, Any]] = {
    200: {"description": "All bytes.", "content": {"application/octet-stream": {}}},
    206: {"description": "The range asked for.", "content": {"application/octet-stream": {}}},
    416: {"description": "The range lies outside.", "content": {"application/json": {}}},
}


def create_app(
    served: Translator | Directions,
    name: str = "model",
    examples: Sequence[str] = (),
    limits: Limits | None = None,
    hosts: frozenset[str] = LOCAL,
    by_address: bool = False,
    handbook: FilePath | None = None,
) -> FastAPI:
    """The server of one translator, or of several directions, which say their `name` and `examples` themselves.

    `hosts` are the names it answers to, `by_address` lets any number pass for one. `handbook` is the built site.
    """
    limits = limits or Limits()
    directions = served if isinstance(served, Directions) else of_translator(served, name, examples)
    desk = Desk(directions, limits, handbook is not None)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        labs.close()

    app = FastAPI(
        title="glassformer",
        version=glassformer.__version__,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
        lifespan=lifespan,
    )
    app.state.desk, app.state.turns = desk, (turns := Turns(limits.waiting))
    app.state.labs = labs = Labs()
    app.add_middleware(Door, hosts=hosts, by_address=by_address)
    install(app)

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return page_file(request, "index.html")

    @app.get("/static/{file}", include_in_schema=False)
    async def static(request: Request, file: str) -> Response:
        return page_file(request, file)

    if handbook is not None:
        app.mount("/handbook", Handbook(directory=handbook, html=True))

    @app.get("/api/model")
    async def model(request: Request, direction: str | None = None) -> Response:
        return as_json(request, await anyio.to_thread.run_sync(desk.about, direction))

    @app.get("/api/schematics")
    async def drawings(request: Request, direction: str | None = None, lang: Language = "en") -> Response:
        model = await anyio.to_thread.run_sync(lambda: desk.directions.shown(direction).translator.model)
        return as_json(request, await anyio.to_thread.run_sync(schematics, model, lang))

    @app.get("/api/weights", responses=BYTES)
    async def weights(request: Request, direction: str | None = None) -> Response:
        return ranged(request, await anyio.to_thread.run_sync(desk.weights_blob, direction))

    @app.post("/api/trace")
    async def trace_sentence(request: Request, asked: TraceAsked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.trace(asked, wanted)))

    @app.post("/api/whatif")
    async def compare(request: Request, asked: WhatIfAsked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.what_if(asked, wanted)))

    @app.post("/api/translate")
    async def translate(request: Request, asked: Asked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.translate(asked, wanted)))

    @app.get("/api/runs/{run}/blob", responses=BYTES)
    async def blob(request: Request, run: RunName) -> Response:
        return ranged(request, desk.run(run).blob)

    @app.get("/api/runs/{run}/json")
    async def whole(request: Request, run: RunName) -> Response:
        found = desk.run(run).trace
        return await turns.take(request, lambda _: as_json(request, found.to_json()))

    @app.get("/api/runs/{run}/export", responses={200: {"content": {"text/html": {}}}})
    async def export(request: Request, run: RunName) -> Response:
        found = desk.run(run).trace
        headers = {"Content-Disposition": f'attachment; filename="{run}.html"', "Cache-Control": "no-store"}
        return await turns.take(
            request, lambda _: packed(request, found.to_html().encode(), "text/html; charset=utf-8", headers)
        )

    @app.get("/api/labs")
    async def list_labs(request: Request, lang: Language = "en") -> Response:
        return as_json(request, await labs.listed(lang))

    @app.post("/api/labs/{name}")
    async def run_lab(request: Request, name: LabName, asked: LabAsked) -> Response:
        with while_wanted(request):
            found = await labs.ask(name, asked.seed)
        return as_json(request, found[asked.lang])

    return app
