"""What is asked and answered at the addresses of LibreTranslate, as OpenAPI describes it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Detected(BaseModel):
    confidence: float
    language: str


class TranslateAnswer(BaseModel):
    """A text for a text, a list for a list; the last two where they were asked for."""

    translatedText: str | list[str]
    detectedLanguage: Detected | list[Detected] | None = None
    alternatives: list[str] | list[list[str]] | None = None


class TranslateAsked(BaseModel):
    q: str | list[str]
    source: str
    target: str
    format: str = "text"
    alternatives: int = 0
    api_key: str = ""


class DetectAsked(BaseModel):
    q: str
    api_key: str = ""


class LanguageListed(BaseModel):
    code: str
    name: str
    targets: list[str]


class ErrorAnswer(BaseModel):
    error: str


class Health(BaseModel):
    status: str


def errors_as(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    """What may be answered instead, each said in this form."""
    said = {
        400: "The request cannot be answered.",
        403: "Not allowed.",
        408: "The request took too long to arrive.",
        413: "Too large.",
        429: "Too many are waiting.",
        503: "The server is stopping.",
        504: "It has taken longer than a request may.",
    }
    return {status: {"model": model, "description": text} for status, text in said.items()}


ERRORS = errors_as(ErrorAnswer)


TRANSLATED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The translation. With `Accept: text/event-stream`, events as they come about: `part` for each "
        "finished paragraph, in order, with `index` (of its text) and `translatedText`, which joined are the "
        "translation; then `done` with the whole answer; `error` where it ends before.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}


def body_of(model: type[BaseModel]) -> dict[str, Any]:
    """A body as JSON or as a form, for the description of the interface."""
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    kinds = ("application/json", "application/x-www-form-urlencoded")
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}
