"""The interface of LibreTranslate, which many programs know already: the same addresses, fields, answers and errors.

POST /translate          q (a text or several), source (or auto), target, format (text or html), alternatives
POST /detect             q: which language it is in
GET  /languages          from which languages into which
GET  /frontend/settings  what a page should know
GET  /health             whether it answers
GET  /spec               this interface, as OpenAPI

What is wrong is said as {"error": "..."}.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from glassformer.deploy.server.admission import Turns
from glassformer.deploy.server.errors import Refused, body_for, printable
from glassformer.deploy.server.fields import Unreadable, fields
from glassformer.deploy.server.keys import Gate, Refusal
from glassformer.deploy.server.libre_forms import (
    ERRORS,
    TRANSLATED,
    DetectAsked,
    Detected,
    Health,
    LanguageListed,
    TranslateAnswer,
    TranslateAsked,
    body_of,
)
from glassformer.deploy.server.parts import translate_in_parts
from glassformer.deploy.server.queue import Busy, Closed
from glassformer.deploy.server.queued import awaited
from glassformer.deploy.server.request_state import Ticket
from glassformer.deploy.server.responses import as_json
from glassformer.deploy.server.routes import NoWay, Routes
from glassformer.deploy.server.stream import streamed, wants_events
from glassformer.pipelines.documents.formats import FORMATS
from glassformer.pipelines.language.language import confidence, detect, name_of

AUTO = "auto"
OUTSIDE = {"zh": "zh-Hans"}  # what a language is called by LibreTranslate, where that differs
ALIASES = {"zh-Hans": "zh", "zh-CN": "zh", "zh-hans": "zh", "zh-cn": "zh"}
MOST_ALTERNATIVES = 8
TEXTS, CHARACTERS = 5_000, 200_000  # in one request
FEW = 500  # characters for which no thread is needed


class Failed(Refused):
    """An answer other than 200, with the text that LibreTranslate gives it."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status, "libre", text)


def outside(code: str) -> str:
    return OUTSIDE.get(code, code)


def no_way(error: NoWay) -> Failed:
    source, target = (f"{name_of(code)} ({outside(code)})" for code in (error.source, error.target))
    return Failed(400, f"{target} is not available as a target language from {source}")


class Wish(NamedTuple):
    """A request for a translation, read."""

    texts: list[str]
    single: bool  # a text, and not a list of one
    codes: list[str | None]  # the language of each
    detected: list[Detected]  # where that was asked for
    target: str
    html: bool
    alternatives: int

    def answer(self, made: list[str], others: list[list[str]]) -> dict[str, Any]:
        answer: dict[str, Any] = {"translatedText": made[0] if self.single else made}
        if self.detected:
            seen = [one.model_dump() for one in self.detected]
            answer["detectedLanguage"] = seen[0] if self.single else seen
        if self.alternatives:
            answer["alternatives"] = others[0] if self.single else others
        return answer


class Libre:
    """What the addresses do, without the web."""

    def __init__(self, routes: Routes, keys_required: bool = False) -> None:
        self.routes, self.keys_required = routes, keys_required

    def language(self, given: Any) -> str:
        """The code of a language that is served."""
        code = ALIASES.get(given, given) if isinstance(given, str) else None
        if code not in self.routes.languages:
            raise Failed(400, f"{printable(str(given))[:60]} is not supported")
        return str(code)

    def detected(self, texts: list[str]) -> list[tuple[str | None, Detected]]:
        """The language of each text, none where nothing in it could be translated."""
        found: list[tuple[str | None, Detected]] = []
        for text in texts:
            code = detect(text, self.routes.languages).code
            sure = 100 * confidence(text, code) if code else 0.0
            shown = outside(code or self.routes.languages[0])
            found.append((code, Detected(confidence=round(sure, 2), language=shown)))
        return found

    def detect(self, asked: dict[str, Any]) -> list[dict[str, Any]]:
        (_, found), *_ = self.detected([one_text(asked, "q")])
        return [found.model_dump()]

    def wish(self, asked: dict[str, Any]) -> Wish:
        """What a request for a translation asks for, if it can be answered."""
        if asked.get("q") in (None, "", []):
            raise Failed(400, "Invalid request: missing q parameter")
        texts, single = several(asked["q"])
        source, target = one_text(asked, "source"), self.language(one_text(asked, "target"))
        form, count = asked.get("format") or "text", alternatives_of(asked.get("alternatives"))
        if form not in ("text", "html"):
            raise Failed(400, f"{printable(str(form))[:60]} format is not supported")
        detected = self.detected(texts) if source == AUTO else []
        codes = [code for code, _ in detected] or [self.language(source)] * len(texts)
        shown = [one for _, one in detected]
        return Wish(texts, single, codes, shown, target, form == "html", count)

    def translate(self, asked: dict[str, Any], ticket: Ticket) -> dict[str, Any]:
        wish = self.wish(asked)
        return wish.answer(*self.made(wish.texts, wish.codes, wish, ticket, wish.alternatives))

    def is_little(self, asked: dict[str, Any]) -> bool:
        """Whether nothing but the models takes long: they are there, and a short text is asked for in one way."""
        text, plain = asked.get("q"), asked.get("format") in (None, "", "text") and not asked.get("alternatives")
        return (
            self.routes.loaded and plain and isinstance(text, str) and len(text) <= FEW and asked.get("source") != AUTO
        )

    async def awaited(self, asked: dict[str, Any], ticket: Ticket) -> dict[str, Any]:
        """What `translate` gives where little is asked for, without a thread that waits for it."""
        wish = self.wish(asked)
        (text,), (code,) = wish.texts, wish.codes
        assert code is not None
        try:
            made = await awaited(self.routes.translating(text, code, wish.target, ticket), self.routes.bell)
        except NoWay as error:
            raise no_way(error) from None
        return wish.answer([made], [[]])

    def made(
        self, texts: list[str], codes: list[str | None], wish: Wish, ticket: Ticket, alternatives: int = 0
    ) -> tuple[list[str], list[list[str]]]:
        """Texts as they are wished for, and others of each."""
        try:
            return self.routes.translated(texts, codes, wish.target, ticket, html=wish.html, alternatives=alternatives)
        except NoWay as error:
            raise no_way(error) from None

    def languages(self) -> list[dict[str, Any]]:
        return [
            LanguageListed(
                code=outside(one),
                name=name_of(one),
                targets=sorted(map(outside, [*self.routes.targets(one), one])),
            ).model_dump()
            for one in self.routes.languages
        ]

    def settings(self) -> dict[str, Any]:
        first = outside(next(iter(self.routes.languages[1:] or self.routes.languages)))
        return {
            "apiKeys": self.keys_required,
            "charLimit": CHARACTERS,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": self.keys_required,
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": first, "name": name_of(ALIASES.get(first, first))},
            },
            "suggestions": False,
            "supportedFilesFormat": sorted(FORMATS),
        }


def one_text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if value in (None, ""):
        raise Failed(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise Failed(400, f"Invalid request: {name} must be a text")
    return value


def several(q: Any) -> tuple[list[str], bool]:
    """The texts to translate, and whether it was one alone."""
    texts = [q] if isinstance(q, str) else q
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise Failed(400, "Invalid request: q must be a text or a list of texts")
    if len(texts) > TEXTS:
        raise Failed(400, f"Invalid request: request ({len(texts)}) exceeds text limit ({TEXTS})")
    size = sum(map(len, texts))
    if size > CHARACTERS:
        raise Failed(400, f"Invalid request: request ({size}) exceeds text limit ({CHARACTERS})")
    return texts, isinstance(q, str)


def alternatives_of(value: Any) -> int:
    try:
        count = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise Failed(400, "Invalid request: alternatives must be a number") from None
    if not 0 <= count <= MOST_ALTERNATIVES:
        raise Failed(400, f"Invalid request: alternatives must be between 0 and {MOST_ALTERNATIVES}")
    return count


def key_of(request: Request, asked: dict[str, Any]) -> str | None:
    """The key that came with a request, as LibreTranslate's clients or as DeepL's send it."""
    key = asked.get("api_key")
    return key if isinstance(key, str) and key else request.headers.get("authorization", "").rpartition(" ")[2] or None


def client_of(request: Request, asked: dict[str, Any], gate: Gate | None) -> str:
    """Whose turn it is: that of a key, or of an address. Who needs a key and has none is refused."""
    key = key_of(request, asked)
    if gate is not None:
        return f"key {gate.check(key)}"
    return f"key {key}" if key else f"host {request.client.host if request.client else ''}"


def install(app: FastAPI, libre: Libre, turns: Turns, gate: Gate | None = None) -> None:
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])

    async def read(request: Request) -> tuple[dict[str, Any], str]:
        """What is asked for, and whose turn it is."""
        asked = await fields(request)
        return asked, client_of(request, asked, gate)

    @router.post(
        "/translate", response_model=TranslateAnswer, responses=TRANSLATED, openapi_extra=body_of(TranslateAsked)
    )
    async def translate(request: Request) -> Response:
        asked, client = await read(request)
        if wants_events(request):
            return await streamed(
                request, turns, lambda wanted, tell: translate_in_parts(libre, asked, Ticket(client, wanted), tell)
            )
        if libre.is_little(asked):
            made = await turns.take_here(request, lambda wanted: libre.awaited(asked, Ticket(client, wanted)))
            return as_json(request, made)
        return await turns.take(
            request, lambda wanted: as_json(request, libre.translate(asked, Ticket(client, wanted)))
        )

    @router.post("/detect", response_model=list[Detected], openapi_extra=body_of(DetectAsked))
    async def detect_language(request: Request) -> Response:
        asked, _ = await read(request)
        return await turns.take(request, lambda _: as_json(request, libre.detect(asked)))

    @router.get("/languages", response_model=list[LanguageListed])
    async def languages() -> Response:
        return JSONResponse(libre.languages())

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        return libre.settings()

    @router.get("/health", response_model=Health)
    async def health() -> Response:
        return JSONResponse({"status": "ok"})

    @router.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        return JSONResponse(app.openapi())

    # What is asked most is found first, and without FastAPI's own reading of a request, of which it has no need.
    app.add_route("/translate", translate, ["POST"], include_in_schema=False)
    app.include_router(router)

    @app.exception_handler(Unreadable)
    async def unreadable(request: Request, error: Unreadable) -> Response:
        return JSONResponse(body_for(request.url.path, "malformed", str(error)), 400)

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> Response:
        headers = {"Retry-After": "60"} if error.status == 429 else None
        return JSONResponse(body_for(request.url.path, "key", error.text), error.status, headers)

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> Response:
        said = body_for(request.url.path, "busy", f"Slowdown: {error}")
        return JSONResponse(said, 429, {"Retry-After": "1"})

    @app.exception_handler(Closed)
    async def closed(request: Request, error: Closed) -> Response:
        return JSONResponse(body_for(request.url.path, "stopping", str(error)), 503, {"Retry-After": "1"})
