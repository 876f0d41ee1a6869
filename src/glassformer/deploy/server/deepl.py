"""As much of DeepL's interface, version 2, as its official client needs to translate texts.

POST /v2/translate   text (one or several), target_lang, source_lang, tag_handling (html or xml)
GET  /v2/languages   which there are; type=target: into which
GET  /v2/usage       the characters that this server has translated

What is wrong is said as {"message": "..."}. A key in `Authorization: DeepL-Auth-Key ...` says whose turn it is.
"""

from __future__ import annotations

import threading
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from glassformer.common.errors import ConfigError
from glassformer.deploy.server.admission import Turns, Wanted
from glassformer.deploy.server.errors import Refused, printable
from glassformer.deploy.server.fields import fields
from glassformer.deploy.server.keys import Gate
from glassformer.deploy.server.libre import CHARACTERS, TEXTS, client_of
from glassformer.deploy.server.libre_forms import body_of, errors_as
from glassformer.deploy.server.request_state import Ticket
from glassformer.deploy.server.responses import as_json
from glassformer.deploy.server.routes import NoWay, Routes
from glassformer.pipelines.language.language import code_of, detect, name_of

NAMED = {"zh": "ZH-HANS"}  # as a target


class Translated(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int


class TranslateAnswer(BaseModel):
    translations: list[Translated]


class TranslateAsked(BaseModel):
    text: list[str] | str
    target_lang: str
    source_lang: str = ""
    tag_handling: str = ""


class LanguageListed(BaseModel):
    language: str
    name: str
    supports_formality: bool = False


class Usage(BaseModel):
    character_count: int


class Message(BaseModel):
    message: str


class DeepL:
    """What the addresses do, without the web."""

    def __init__(self, routes: Routes) -> None:
        self.routes, self.counted = routes, 0
        self._lock = threading.Lock()

    def language(self, asked: dict[str, Any], name: str) -> str | None:
        given = asked.get(name)
        if given in (None, ""):
            return None
        try:
            return code_of(str(given), self.routes.languages)
        except ConfigError as error:
            raise bad(f"Value for '{name}' not supported: {printable(str(error))}") from None

    def translate(self, asked: dict[str, Any], ticket: Ticket) -> dict[str, Any]:
        texts = [asked["text"]] if isinstance(asked.get("text"), str) else asked.get("text")
        if not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
            raise bad("Parameter 'text' not specified: a text, or a list of texts")
        size = sum(map(len, texts))
        if len(texts) > TEXTS or size > CHARACTERS:
            raise bad(f"at most {TEXTS:,} texts and {CHARACTERS:,} characters are taken at once")
        target, source = self.language(asked, "target_lang"), self.language(asked, "source_lang")
        if target is None:
            raise bad("Parameter 'target_lang' not specified")
        tags = asked.get("tag_handling") or ""
        if tags not in ("", "html", "xml"):
            raise bad("Value for 'tag_handling' not supported: html or xml")
        codes = [source or detect(text, self.routes.languages).code for text in texts]
        try:
            made, _ = self.routes.translated(texts, codes, target, ticket, html=bool(tags))
        except NoWay as error:
            raise bad(str(error)) from None
        with self._lock:
            self.counted += size
        return TranslateAnswer(
            translations=[
                Translated(detected_source_language=(code or target).upper(), text=one, billed_characters=len(text))
                for code, one, text in zip(codes, made, texts, strict=True)
            ]
        ).model_dump()

    def languages(self, targets: bool) -> list[dict[str, Any]]:
        return [
            LanguageListed(
                language=NAMED.get(one, one.upper()) if targets else one.upper(), name=name_of(one)
            ).model_dump()
            for one in self.routes.languages
        ]


def bad(text: str) -> Refused:
    return Refused(400, "deepl", text)


def install(app: FastAPI, deepl: DeepL, turns: Turns, gate: Gate | None = None) -> None:
    router = APIRouter(prefix="/v2", responses=errors_as(Message), tags=["DeepL"])

    @router.post("/translate", response_model=TranslateAnswer, openapi_extra=body_of(TranslateAsked))
    async def translate(request: Request) -> Response:
        asked = await fields(request)
        client = client_of(request, asked, gate)

        def run(wanted: Wanted) -> Response:
            return as_json(request, deepl.translate(asked, Ticket(client, wanted)))

        return await turns.take(request, run)

    @router.get("/languages", response_model=list[LanguageListed])
    async def languages(request: Request) -> Response:
        return JSONResponse(deepl.languages((await fields(request)).get("type") == "target"))

    @router.get("/usage", response_model=Usage)
    async def usage(request: Request) -> Response:
        client_of(request, {}, gate)
        return JSONResponse(Usage(character_count=deepl.counted).model_dump())

    app.include_router(router)
