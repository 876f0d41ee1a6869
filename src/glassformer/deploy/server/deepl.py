"""As much of DeepL's interface, version 2, as its official client needs to translate texts.

POST /v2/translate   text (one or several), target_lang, source_lang, tag_handling (html or xml); `notes` may come back
GET  /v2/languages   which there are; type=target: into which
GET  /v2/usage       the characters that this server has translated

A key comes in the header `Authorization: DeepL-Auth-Key ...`.
"""

from __future__ import annotations

import threading
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from glassformer.common.errors import ConfigError
from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import bad_request, error_responses, printable
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.libre import MAX_CHARACTERS, MAX_TEXTS, request_body
from glassformer.deploy.server.requests import client_of, read_fields
from glassformer.deploy.server.responses import json_response
from glassformer.deploy.server.translation_service import TranslationService, UnsupportedPair
from glassformer.pipelines.language.language import detect_languages, language_code, language_name

TARGET_CODES = {"zh": "ZH-HANS"}  # where the code of a target is not that of the source
# What cannot be done is refused, but for these values: they are preferences.
REFUSED = {"formality": ("default", "prefer_more", "prefer_less"), "glossary_id": (), "ignore_tags": (), "style_id": ()}


class DeepLTranslation(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int
    notes: list[str] | None = None


class DeepLResponse(BaseModel):
    translations: list[DeepLTranslation]


class DeepLBody(BaseModel):
    text: list[str] | str
    target_lang: str
    source_lang: str = ""
    tag_handling: str = ""
    formality: str = "default"


class DeepLLanguage(BaseModel):
    language: str
    name: str
    supports_formality: bool = False


class Usage(BaseModel):
    character_count: int


class Message(BaseModel):
    message: str


class DeepLApi:
    """The answers of DeepL's routes, as plain functions of the fields."""

    def __init__(self, service: TranslationService) -> None:
        self.service, self.characters = service, 0
        self._lock = threading.Lock()

    def language(self, fields: dict[str, Any], name: str) -> str | None:
        value = fields.get(name)
        if value in (None, ""):
            return None
        try:
            return language_code(str(value), self.service.languages)
        except ConfigError as error:
            raise bad_request(f"Value for '{name}' not supported: {printable(str(error))}") from None

    def translate(self, fields: dict[str, Any], state: RequestState) -> dict[str, Any]:
        texts = [fields["text"]] if isinstance(fields.get("text"), str) else fields.get("text")
        if not isinstance(texts, list) or not texts or not all(isinstance(one, str) for one in texts):
            raise bad_request("Parameter 'text' not specified: a text, or a list of texts")
        size = sum(map(len, texts))
        if len(texts) > MAX_TEXTS or size > MAX_CHARACTERS:
            raise bad_request(f"at most {MAX_TEXTS:,} texts and {MAX_CHARACTERS:,} characters are taken at once")
        target, source = self.language(fields, "target_lang"), self.language(fields, "source_lang")
        if target is None:
            raise bad_request("Parameter 'target_lang' not specified")
        tags = fields.get("tag_handling") or ""
        if tags not in ("", "html", "xml"):
            raise bad_request("Value for 'tag_handling' not supported: html or xml")
        for name, allowed in REFUSED.items():
            if (value := fields.get(name)) not in (None, "", [], *allowed):
                takes = f"; give {' or '.join(allowed)}, or leave it out" if allowed else "; leave it out"
                raise bad_request(
                    f"Value for '{name}' not supported: {printable(str(value))[:60]} cannot be done{takes}"
                )
        guesses = detect_languages(texts, self.service.languages, target)
        codes = [source or guess.code for guess in guesses]
        try:
            made, _ = self.service.translate(texts, codes, target, state, html=bool(tags))
        except UnsupportedPair as error:
            raise bad_request(str(error)) from None
        with self._lock:
            self.characters += size
        translations = [
            {"detected_source_language": (code or target).upper(), "text": one.text, "billed_characters": len(text)}
            | ({"notes": [note.text for note in one.notes]} if one.notes else {})
            for code, one, text in zip(codes, made, texts, strict=True)
        ]
        return {"translations": translations}

    def languages(self, targets: bool) -> list[dict[str, Any]]:
        codes = TARGET_CODES if targets else {}
        return [
            {"language": codes.get(one, one.upper()), "name": language_name(one), "supports_formality": False}
            for one in self.service.languages
        ]


def add_deepl_routes(app: FastAPI, api: DeepLApi, admission: AdmissionControl, api_keys: ApiKeys | None) -> None:
    errors = error_responses(400, 403, 408, 413, 429, 503, 504, model=Message)
    router = APIRouter(prefix="/v2", responses=errors, tags=["DeepL"])

    @router.post("/translate", response_model=DeepLResponse, openapi_extra=request_body(DeepLBody))
    async def translate(request: Request) -> Response:
        fields = await read_fields(request)
        client = client_of(request, fields, api_keys)
        return await admission.run(request, lambda state: json_response(request, api.translate(fields, state)), client)

    @router.get("/languages", response_model=list[DeepLLanguage])
    async def languages(request: Request) -> Response:
        return JSONResponse(api.languages((await read_fields(request)).get("type") == "target"))

    @router.get("/usage", response_model=Usage)
    async def usage(request: Request) -> Response:
        client_of(request, {}, api_keys)
        return JSONResponse({"character_count": api.characters})

    app.include_router(router)
