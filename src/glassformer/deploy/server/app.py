"""The server: pages that translate and that look inside models, and translations for other programs.

GET /                 the page that translates, or with one direction only, the page that looks inside
GET /look, /text      the page that looks inside, the page that translates; their files under /static
GET /handbook/en/...  the handbook, if it has been built

The other routes are in `trace_api`, `word_alternatives`, `libre`, `files` and `deepl`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.staticfiles import StaticFiles

from glassformer.common.version import __version__
from glassformer.deploy.server.admission import AdmissionControl
from glassformer.deploy.server.deepl import DeepLApi, add_deepl_routes
from glassformer.deploy.server.directions import Directions
from glassformer.deploy.server.errors import add_error_handlers, error_responses
from glassformer.deploy.server.files import FilesApi, add_file_routes
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.libre import LibreApi, add_libre_routes
from glassformer.deploy.server.middleware import LOCAL, GuardMiddleware, Metrics, MetricsMiddleware
from glassformer.deploy.server.responses import page_file
from glassformer.deploy.server.trace_api import LabRunner, Limits, TraceApi, add_trace_routes
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.deploy.server.word_alternatives import WordsApi, add_word_routes

MAX_WAITING = 2048  # requests for a translation
CONCURRENCY = 256  # of them that are cut into sentences and in the queue
SITE = Path("site")  # the built handbook
# Pages of the handbook contain scripts and styles, one a model in a frame. Nothing comes from elsewhere.
SITE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class Handbook(StaticFiles):
    def file_response(self, *args: Any, **options: Any) -> Response:
        response = super().file_response(*args, **options)
        response.headers["content-security-policy"] = SITE_POLICY
        return response


def is_handbook(folder: Path) -> bool:
    """Whether the folder, which others may call `site` too, holds chapters in both languages."""
    return all((folder / language / "04-attention.html").is_file() for language in ("en", "zh"))


def create_app(
    shown: Directions | None,
    limits: Limits | None = None,
    hosts: frozenset[str] = LOCAL,
    by_address: bool = False,
    service: TranslationService | None = None,
    handbook: Path | None = None,
    api_keys: ApiKeys | None = None,
    log: Callable[[str], None] | None = None,
    origins: Sequence[str] = (),
    timeout: float | None = None,
) -> FastAPI:
    """The server of the models that the page shows, and of a service that translates for other programs.

    shown       the directions of the page; without them there is no page, and weights cannot be read
    hosts       the host names that the server answers to; `by_address` allows any IP address
    service     translates for the front page and for other programs
    handbook    the folder of the built site
    api_keys    with them, programs need a key
    log         called with a line for every answered request
    origins     other sites whose pages may call the routes for programs
    timeout     seconds for one translation
    """

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        if shown is not None:
            app.state.labs.worker.close()
        if service is not None:
            await anyio.to_thread.run_sync(service.queue.close)

    app = FastAPI(title="glassformer", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    add_error_handlers(app)
    metrics = None
    if service is not None:
        metrics = Metrics(service.queue)
        admission = AdmissionControl(MAX_WAITING, CONCURRENCY, timeout)
        api = LibreApi(service, api_keys is not None)
        add_libre_routes(app, api, admission, api_keys)
        add_file_routes(app, FilesApi(api), api_keys, timeout)
        add_deepl_routes(app, DeepLApi(service), admission, api_keys)
        app.add_api_route("/metrics", metrics.response, include_in_schema=False)
    if shown is not None:
        add_pages(app, shown, limits or Limits(), handbook, service, api_keys)
    images = shown is not None and shown.images
    app.add_middleware(
        GuardMiddleware, hosts=hosts, by_address=by_address, origins=tuple(origins), images=images, api_keys=api_keys
    )
    app.add_middleware(MetricsMiddleware, metrics=metrics, paths=lambda: frozenset(app.openapi()["paths"]), log=log)
    return app


def add_pages(
    app: FastAPI,
    directions: Directions,
    limits: Limits,
    handbook: Path | None,
    service: TranslationService | None,
    api_keys: ApiKeys | None,
) -> None:
    """The pages, and the routes that they call."""
    api = TraceApi(directions, limits, handbook is not None, service is not None)
    admission, labs = AdmissionControl(limits.waiting), LabRunner()
    app.state.trace_api, app.state.admission, app.state.labs = api, admission, labs
    router = APIRouter(responses=error_responses(400, 404, 408, 409, 413, 422, 429))
    # With a single direction, the visitor wants to look into a model; with more, to translate.
    front = service is not None and len(service.directions.by_name) > 1

    @router.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return page_file(request, "front/index.html" if front else "index.html")

    @router.get("/look", include_in_schema=False)
    async def look(request: Request) -> Response:
        return page_file(request, "index.html")

    @router.get("/static/{file:path}", include_in_schema=False)
    @router.get("/static/v-{version}/{file:path}", include_in_schema=False)  # matched first
    async def static(request: Request, file: str, version: str = "") -> Response:
        return page_file(request, file, version)

    if service is not None:
        add_word_routes(router, WordsApi(service), AdmissionControl(limits.waiting), api_keys)

        @router.get("/text", include_in_schema=False)
        async def text(request: Request) -> Response:
            return page_file(request, "front/index.html")

    if handbook is not None:
        app.mount("/handbook", Handbook(directory=handbook, html=True))
    add_trace_routes(router, api, labs, admission)
    app.include_router(router)
