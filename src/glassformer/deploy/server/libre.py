"""The interface of LibreTranslate, with the paths, fields, answers and errors that its clients know.

POST /translate          q (a text or several), source (or auto), target, format (text or html), alternatives
POST /detect             q: which language it is in
GET  /languages          from which languages into which
GET  /frontend/settings  what a page should know
GET  /health             whether it answers
GET  /spec               this interface, as OpenAPI
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from glassformer.data.protect import spans
from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import bad_request, error_responses, printable
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.requests import client_of, read_fields
from glassformer.deploy.server.responses import EVENT_STREAM, SendEvent, event_stream, json_response
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.pipelines.documents.formats import FORMATS
from glassformer.pipelines.language.language import confidence, detect_languages, language_name
from glassformer.pipelines.language.sentences import split_sentences
from glassformer.pipelines.text import TranslatedText

AUTO = "auto"
LIBRE_CODES = {"zh": "zh-Hans"}  # where LibreTranslate's code of a language differs from ours
ALIASES = {"zh-Hans": "zh", "zh-CN": "zh", "zh-hans": "zh", "zh-cn": "zh"}
MAX_ALTERNATIVES = 8
MAX_TEXTS, MAX_CHARACTERS = 5_000, 200_000  # in one request
MAX_QUICK = 500  # characters translated without a thread
MAX_TOGETHER = 4000  # characters of a stream translated together


class Detected(BaseModel):
    confidence: float
    language: str


class TranslateResponse(BaseModel):
    """A text for a text, a list for a list. The other fields are optional; `notes`, such as that a text was left as it
    is, come where there are any."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = None
    alternatives: list[str] | list[list[str]] | None = None
    notes: list[str] | list[list[str]] | None = None


class TranslateBody(BaseModel):
    q: str | list[str]
    source: str
    target: str
    format: str = "text"
    alternatives: int = 0
    api_key: str = ""


class DetectBody(BaseModel):
    q: str
    api_key: str = ""


class LibreLanguage(BaseModel):
    code: str
    name: str
    targets: list[str]


class ErrorResponse(BaseModel):
    error: str


class Health(BaseModel):
    status: str


ERRORS = error_responses(400, 403, 408, 413, 429, 503, 504, model=ErrorResponse)
EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The translation. With `Accept: text/event-stream`, events as they come about: `part` for each "
        "finished paragraph, in order, with `index` (of its text) and `translatedText`, which joined are the "
        "translation; then `done` with the whole answer; `error` where it ends before.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def request_body(model: type[BaseModel], *media: str) -> dict[str, Any]:
    """The body of a route that reads its fields itself, for OpenAPI; JSON or a form by default."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    kinds = media or ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}


class TranslateRequest(NamedTuple):
    """A checked request for a translation."""

    texts: list[str]
    single: bool  # one text, not a list
    codes: list[str | None]  # the language of each; None: nothing to translate
    detected: list[Detected]  # empty if the request names its source
    target: str
    html: bool
    alternatives: int

    def response(self, made: Sequence[TranslatedText], alternatives: list[list[str]]) -> dict[str, Any]:
        found: dict[str, Any] = {"translatedText": [one.text for one in made]}
        if self.detected:
            found["detectedLanguage"] = [one.model_dump() for one in self.detected]
        if self.alternatives:
            found["alternatives"] = alternatives
        if any(one.notes for one in made):
            found["notes"] = [[note.text for note in one.notes] for one in made]
        return {name: values[0] for name, values in found.items()} if self.single else found


class Paragraph(NamedTuple):
    text_index: int  # in the request
    code: str | None
    text: str


class LibreApi:
    """The answers of LibreTranslate's routes, as plain functions of the fields."""

    def __init__(self, service: TranslationService, keys_required: bool = False) -> None:
        self.service, self.keys_required = service, keys_required

    def language(self, given: Any) -> str:
        """The code of a served language."""
        code = ALIASES.get(given, given) if isinstance(given, str) else None
        if code not in self.service.languages:
            raise bad_request(f"{printable(str(given))[:60]} is not supported")
        return str(code)

    def check_route(self, source: str, target: str) -> None:
        if source != target and not self.service.route(source, target):
            named = [f"{language_name(code)} ({libre_code(code)})" for code in (source, target)]
            raise bad_request(f"{named[1]} is not available as a target language from {named[0]}")

    def detect_each(self, texts: list[str], target: str | None = None) -> list[tuple[str | None, Detected]]:
        """The language of each text, None for a text without words."""
        found: list[tuple[str | None, Detected]] = []
        for text, (code, _) in zip(texts, detect_languages(texts, self.service.languages, target), strict=True):
            percent = 100 * confidence(text, code) if code else 0.0
            shown = libre_code(code or self.service.languages[0])
            found.append((code, Detected(confidence=round(percent, 2), language=shown)))
        return found

    def detect(self, fields: dict[str, Any]) -> list[dict[str, Any]]:
        (_, found), *_ = self.detect_each([text_field(fields, "q")])
        return [found.model_dump()]

    def parse(self, fields: dict[str, Any]) -> TranslateRequest:
        if fields.get("q") in (None, "", []):
            raise bad_request("Invalid request: missing q parameter")
        texts, single = text_list(fields["q"])
        source, target = text_field(fields, "source"), self.language(text_field(fields, "target"))
        form, count = fields.get("format") or "text", alternatives_field(fields.get("alternatives"))
        if form not in ("text", "html"):
            raise bad_request(f"{printable(str(form))[:60]} format is not supported")
        pairs = self.detect_each(texts, target) if source == AUTO else []
        codes = [code for code, _ in pairs] or [self.language(source)] * len(texts)
        for code in set(codes) - {None}:
            self.check_route(str(code), target)
        return TranslateRequest(texts, single, codes, [one for _, one in pairs], target, form == "html", count)

    def translate(self, fields: dict[str, Any], state: RequestState) -> dict[str, Any]:
        parsed = self.parse(fields)
        texts, codes, count = parsed.texts, parsed.codes, parsed.alternatives
        made = self.service.translate(texts, codes, parsed.target, state, html=parsed.html, alternatives=count)
        return parsed.response(*made)

    def translate_stream(self, fields: dict[str, Any], state: RequestState, send: SendEvent) -> None:
        """An event for each paragraph, then one with the response that a request without events gets."""
        parsed = self.parse(fields)
        parts = [
            Paragraph(index, code, part)
            for index, (text, code) in enumerate(zip(parsed.texts, parsed.codes, strict=True))
            for part in ([text] if parsed.html or code is None else paragraphs(text, code))
        ]
        for group in growing_groups(parts):
            state.check()
            texts, codes = [one.text for one in group], [one.code for one in group]
            made, _ = self.service.translate(texts, codes, parsed.target, state, html=parsed.html)
            for part, one in zip(group, made, strict=True):
                send("part", {"index": part.text_index, "translatedText": one.text})
        send("done", self.translate(fields, state))  # the queue remembers the sentences

    def is_quick(self, fields: dict[str, Any]) -> bool:
        """Whether only the models take time: they are loaded, and one short plain text has one known language."""
        text, plain = fields.get("q"), fields.get("format") in (None, "", "text") and not fields.get("alternatives")
        short = isinstance(text, str) and len(text) <= MAX_QUICK
        return self.service.loaded and plain and short and fields.get("source") != AUTO

    async def translate_async(self, fields: dict[str, Any], state: RequestState) -> dict[str, Any]:
        """What `translate` returns for a quick request, without a thread."""
        parsed = self.parse(fields)
        (text,), (code,) = parsed.texts, parsed.codes
        assert code is not None
        made = await self.service.translate_async(text, code, parsed.target, state)
        return parsed.response([made], [[]])

    def languages(self) -> list[dict[str, Any]]:
        targets = self.service.targets
        return [
            {"code": libre_code(one), "name": language_name(one), "targets": sorted(map(libre_code, targets(one)))}
            for one in self.service.languages
        ]

    def settings(self) -> dict[str, Any]:
        first = next(iter(self.service.languages[1:] or self.service.languages))
        return {
            "apiKeys": self.keys_required,
            "charLimit": MAX_CHARACTERS,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": self.keys_required,
            "language": {
                "source": {"code": AUTO, "name": "Auto Detect"},
                "target": {"code": libre_code(first), "name": language_name(first)},
            },
            "suggestions": False,
            "supportedFilesFormat": sorted(FORMATS),
        }


def libre_code(code: str) -> str:
    return LIBRE_CODES.get(code, code)


def text_field(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name)
    if value in (None, ""):
        raise bad_request(f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise bad_request(f"Invalid request: {name} must be a text")
    return value


def text_list(q: Any) -> tuple[list[str], bool]:
    """The texts to translate, and whether the request has a single one."""
    texts = [q] if isinstance(q, str) else q
    if not isinstance(texts, list) or not all(isinstance(one, str) for one in texts):
        raise bad_request("Invalid request: q must be a text or a list of texts")
    for size, limit in ((len(texts), MAX_TEXTS), (sum(map(len, texts)), MAX_CHARACTERS)):
        if size > limit:
            raise bad_request(f"Invalid request: request ({size}) exceeds text limit ({limit})")
    return texts, isinstance(q, str)


def alternatives_field(value: Any) -> int:
    try:
        count = int(value or 0)
    except (TypeError, ValueError, OverflowError):
        raise bad_request("Invalid request: alternatives must be a number") from None
    if not 0 <= count <= MAX_ALTERNATIVES:
        raise bad_request(f"Invalid request: alternatives must be between 0 and {MAX_ALTERNATIVES}")
    return count


def paragraphs(text: str, language: str) -> list[str]:
    """A text cut at line ends, but not within protected spans. No sentence goes beyond a line, so the translations of
    the parts, joined, are the translation of the text."""
    parts = [""]
    for piece in split_sentences(text, language, spans(text)):
        parts[-1] += piece.text
        if piece.gap and "\n" in piece.text:
            parts.append("")
    return [part for part in parts if part] or [text]


def growing_groups(parts: list[Paragraph]) -> Iterator[list[Paragraph]]:
    """One part, so that the first event comes early, then two, four, and so on, up to `MAX_TOGETHER` characters."""
    at, count = 0, 1
    while at < len(parts):
        end, size = at, 0
        while end < min(len(parts), at + count) and (end == at or size + len(parts[end].text) <= MAX_TOGETHER):
            size += len(parts[end].text)
            end += 1
        yield parts[at:end]
        at, count = end, 2 * count


def add_libre_routes(app: FastAPI, api: LibreApi, admission: AdmissionControl, api_keys: ApiKeys | None) -> None:
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])

    @router.post(
        "/translate", response_model=TranslateResponse, responses=EVENTS, openapi_extra=request_body(TranslateBody)
    )
    async def translate(request: Request) -> Response:
        fields = await read_fields(request)
        client = client_of(request, fields, api_keys)
        if EVENT_STREAM in request.headers.get("accept", "").lower():
            return await event_stream(
                request, admission, lambda state, send: api.translate_stream(fields, state, send), client
            )
        if api.is_quick(fields):
            made = await admission.run_async(request, lambda state: api.translate_async(fields, state), client)
            return json_response(request, made)
        return await admission.run(request, lambda state: json_response(request, api.translate(fields, state)), client)

    @router.post("/detect", response_model=list[Detected], openapi_extra=request_body(DetectBody))
    async def detect(request: Request) -> Response:
        fields = await read_fields(request)
        client = client_of(request, fields, api_keys)
        return await admission.run(request, lambda _: json_response(request, api.detect(fields)), client)

    @router.get("/languages", response_model=list[LibreLanguage])
    async def languages() -> Response:
        return JSONResponse(api.languages())

    @router.get("/frontend/settings")
    async def settings() -> dict[str, Any]:
        return api.settings()

    @router.get("/health", response_model=Health)
    async def health() -> Response:
        return JSONResponse({"status": "ok"})

    @router.get("/spec", include_in_schema=False)
    async def spec() -> Response:
        return JSONResponse(app.openapi())

    # The busiest route comes first, and as a plain Starlette route: FastAPI's own parsing would cost time for nothing.
    app.add_route("/translate", translate, ["POST"], include_in_schema=False)
    app.include_router(router)
