"""The server: a translator's traces over HTTP, and the page that shows them; and translations for other programs.

GET  /                       the page that translates, or where one model goes one way, that which looks inside it
GET  /look, /text            the page that looks inside, the page that translates; their files under /static
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
What other programs ask for is in `libre`, in `files` and in `deepl`; what the page that translates asks for besides, in
`words`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path as FilePath
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, FastAPI, Path, Request, Response

from glassformer.common.strings import Language
from glassformer.common.version import __version__
from glassformer.deploy.server import deepl, files, libre
from glassformer.deploy.server import word_alternatives as words
from glassformer.deploy.server.admission import Turns, while_wanted
from glassformer.deploy.server.directions import Directions, of_translator
from glassformer.deploy.server.errors import install
from glassformer.deploy.server.handbook import Handbook
from glassformer.deploy.server.keys import Gate
from glassformer.deploy.server.labs import Labs
from glassformer.deploy.server.metrics import Meter, Metered
from glassformer.deploy.server.middleware import LOCAL, Door
from glassformer.deploy.server.requests import Asked, LabAsked, TraceAsked, WhatIfAsked
from glassformer.deploy.server.responses import as_json, packed, page_file, ranged
from glassformer.deploy.server.routes import Routes
from glassformer.deploy.server.trace_api import Desk, Limits
from glassformer.explain.schematic import schematics
from glassformer.pipelines.translator import Translator

MOST_CLIENTS = 2048  # requests for a translation that may wait
AT_ONCE = 256  # of which so many are cut into sentences that wait for the model


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
    served: Translator | Directions | None,
    name: str = "model",
    examples: Sequence[str] = (),
    limits: Limits | None = None,
    hosts: frozenset[str] = LOCAL,
    by_address: bool = False,
    routes: Routes | None = None,
    handbook: FilePath | None = None,
    gate: Gate | None = None,
    log: Callable[[str], None] | None = None,
    origins: Sequence[str] = (),
    seconds: float | None = None,
) -> FastAPI:
    """The server of one translator, or of several directions, which say their `name` and `examples` themselves.

    `hosts` are the names it answers to, `by_address` lets any number pass for one. With `routes`, it also translates
    for other programs; with nothing `served` beside them, it has no page, and gives no weights away. `handbook` is
    the built site. With a `gate`, programs need a key; `log` is told every request that was answered.
    Pages of other sites, `origins`, may ask what programs may. A translation takes at most so many `seconds`.
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        if served is not None:
            app.state.labs.close()
        if routes is not None:
            await anyio.to_thread.run_sync(routes.queue.close)

    app = FastAPI(
        title="glassformer",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    meter = metered(routes)
    images = isinstance(served, Directions) and served.images
    app.add_middleware(Door, hosts=hosts, by_address=by_address, origins=tuple(origins), images=images)
    app.add_middleware(Metered, meter=meter, paths=lambda: frozenset(app.openapi()["paths"]), log=log)
    install(app)
    if routes is not None:
        waiting = Turns(MOST_CLIENTS, AT_ONCE, seconds)
        interface = libre.Libre(routes, gate is not None)
        libre.install(app, interface, waiting, gate)
        files.install(app, files.Files(interface), gate, seconds)
        deepl.install(app, deepl.DeepL(routes), waiting, gate)
        if meter is not None:
            app.add_api_route("/metrics", lambda: figures(meter), include_in_schema=False)
    if served is not None:
        shown = served if isinstance(served, Directions) else of_translator(served, name, examples)
        install_page(app, shown, limits or Limits(), handbook, routes, gate)
    return app


def metered(routes: Routes | None) -> Meter | None:
    """What counts requests, where there is something to count with."""
    return Meter(routes.queue) if routes is not None and find_spec("prometheus_client") is not None else None


def figures(meter: Meter) -> Response:
    text, kind = meter.told()
    return Response(text, media_type=kind)


def install_page(
    app: FastAPI,
    directions: Directions,
    limits: Limits,
    handbook: FilePath | None,
    routes: Routes | None,
    gate: Gate | None,
) -> None:
    """The pages, and what they ask for."""
    desk = Desk(directions, limits, handbook is not None, routes is not None)
    turns, labs = Turns(limits.waiting), Labs()
    app.state.desk, app.state.turns, app.state.labs = desk, turns, labs
    api = APIRouter(responses=ERRORS)

    # Who has one way to go has come to see a model; who has more, to translate.
    front = routes is not None and len(routes.directions.known) > 1

    @api.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return page_file(request, "index.html", front)

    @api.get("/look", include_in_schema=False)
    async def look(request: Request) -> Response:
        return page_file(request, "index.html")

    @api.get("/static/{file}", include_in_schema=False)
    @api.get("/static/v-{edition}/{file}", include_in_schema=False)
    async def static(request: Request, file: str, edition: str = "") -> Response:
        return page_file(request, file, asked=edition)

    if routes is not None:
        words.install(app, words.Words(routes), Turns(limits.waiting), gate, ERRORS)

        @api.get("/text", include_in_schema=False)
        async def text(request: Request) -> Response:
            return page_file(request, "index.html", front=True)

        @api.get("/static/front/{file}", include_in_schema=False)
        @api.get("/static/v-{edition}/front/{file}", include_in_schema=False)
        async def front_static(request: Request, file: str, edition: str = "") -> Response:
            return page_file(request, file, front=True, asked=edition)

    if handbook is not None:
        app.mount("/handbook", Handbook(directory=handbook, html=True))

    @api.get("/api/model")
    async def model(request: Request, direction: str | None = None) -> Response:
        return as_json(request, await anyio.to_thread.run_sync(desk.about, direction))

    @api.get("/api/schematics")
    async def drawings(request: Request, direction: str | None = None, lang: Language = "en") -> Response:
        model = await anyio.to_thread.run_sync(lambda: desk.directions.shown(direction).served.model)
        return as_json(request, await anyio.to_thread.run_sync(schematics, model, lang))

    @api.get("/api/weights", responses=BYTES)
    async def weights(request: Request, direction: str | None = None) -> Response:
        return ranged(request, await anyio.to_thread.run_sync(desk.weights_blob, direction))

    @api.post("/api/trace")
    async def trace_sentence(request: Request, asked: TraceAsked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.trace(asked, wanted)))

    @api.post("/api/whatif")
    async def compare(request: Request, asked: WhatIfAsked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.what_if(asked, wanted)))

    @api.post("/api/translate")
    async def translate(request: Request, asked: Asked) -> Response:
        return await turns.take(request, lambda wanted: as_json(request, desk.translate(asked, wanted)))

    @api.get("/api/runs/{run}/blob", responses=BYTES)
    async def blob(request: Request, run: RunName) -> Response:
        return ranged(request, desk.run(run).blob)

    @api.get("/api/runs/{run}/json")
    async def whole(request: Request, run: RunName) -> Response:
        found = desk.run(run).trace
        return await turns.take(request, lambda _: as_json(request, found.to_json()))

    @api.get("/api/runs/{run}/export", responses={200: {"content": {"text/html": {}}}})
    async def export(request: Request, run: RunName) -> Response:
        found = desk.run(run).trace
        headers = {"Content-Disposition": f'attachment; filename="{run}.html"', "Cache-Control": "no-store"}
        return await turns.take(
            request, lambda _: packed(request, found.to_html().encode(), "text/html; charset=utf-8", headers)
        )

    @api.get("/api/labs")
    async def list_labs(request: Request, lang: Language = "en") -> Response:
        return as_json(request, await labs.listed(lang))

    @api.post("/api/labs/{name}")
    async def run_lab(request: Request, name: LabName, asked: LabAsked) -> Response:
        with while_wanted(request):
            found = await labs.ask(name, asked.seed)
        return as_json(request, found[asked.lang])

    app.include_router(api)
