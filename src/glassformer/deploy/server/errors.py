"""Errors as responses.

The body is `{"error": {"code", "message", "hint", "values"}}`. The routes of LibreTranslate and DeepL keep the form of
their protocols: `{"error": "..."}` and `{"message": "..."}`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from glassformer.common.errors import GlassformerError

DEEPL = "/v2/"
LIBRE = ("/translate", "/download_file/", "/detect", "/languages", "/frontend/", "/health", "/spec")
RETRY, CLOSE = {"Retry-After": "1"}, {"Connection": "close"}  # close: the rest of the request is not read
HEADERS = {408: CLOSE, 413: CLOSE, 429: RETRY, 431: CLOSE, 503: RETRY}
HTTP_ERRORS = {
    400: ("malformed", "the body cannot be read", "send a JSON object"),
    404: ("unknown", "there is nothing at this address", "GET / is the page, GET /openapi.json the interface"),
    405: ("method", "this address does not take this method", "GET /openapi.json lists those it takes"),
}


class RequestError(Exception):
    """A request that cannot be answered. The page translates `code` and `values` into its reader's language."""

    def __init__(self, status: int, code: str, message: str, hint: str = "", **values: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint, self.values = status, code, message, hint, values
        self.headers: Mapping[str, str] | None = HEADERS.get(status)

    @classmethod
    def from_user_error(
        cls, error: GlassformerError, status: int = 422, code: str = "refused", **values: Any
    ) -> RequestError:
        """The part of the message before the first semicolon says what is wrong, the rest what to do about it."""
        message, _, hint = printable(str(error)).partition("; ")
        return cls(status, code, message, hint, **values)

    def body(self, path: str) -> dict[str, Any]:
        text = "; ".join(filter(None, (self.message, self.hint)))
        if path.startswith(DEEPL):
            return {"message": text}
        if path.startswith(LIBRE):
            return {"error": text}
        return {"error": {"code": self.code, "message": self.message, "hint": self.hint, "values": self.values}}

    def response(self, path: str) -> JSONResponse:
        return JSONResponse(self.body(path), self.status, self.headers)


class ClientDisconnected(Exception):
    """The client has closed its connection."""


def bad_request(message: str) -> RequestError:
    return RequestError(400, "malformed", message)


def is_program_route(path: str) -> bool:
    """Whether the route is meant for other programs, not for the page."""
    return path.startswith((*LIBRE, DEEPL))


def error_responses(*statuses: int, model: type[BaseModel] | None = None) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    body: dict[str, Any] = {"model": model} if model else {"content": {"application/json": {}}}
    return {status: {"description": HTTPStatus(status).phrase, **body} for status in statuses}


def request_error(error: Exception, path: str) -> RequestError:
    """The error for the client. Only unforeseen errors are logged."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, GlassformerError):
        return RequestError.from_user_error(error)
    if isinstance(error, RequestValidationError):
        return validation_error(error)
    if isinstance(error, HTTPException):
        code, message, hint = HTTP_ERRORS.get(error.status_code, ("refused", str(error.detail), ""))
        found = RequestError(error.status_code, code, message, hint)
        found.headers = error.headers
        return found
    logging.getLogger("uvicorn.error").error("a request of %s failed", path, exc_info=error)
    return RequestError(500, "fault", "something went wrong in the server", "its log says what")


def validation_error(error: RequestValidationError) -> RequestError:
    first = error.errors()[0]
    cause = first.get("ctx", {}).get("error")
    if first["type"] == "json_invalid":
        return RequestError(400, "malformed", "the body is not JSON", 'send an object such as {"text": "one"}')
    if isinstance(cause, GlassformerError):
        return RequestError.from_user_error(cause, code="invalid")
    # Both may repeat what the client sent, of any size, and not always text.
    place = printable(".".join(str(part) for part in first["loc"] if part != "body"))
    reason = printable(first["msg"][:1].lower() + first["msg"][1:])
    return RequestError(422, "invalid", f"{place or 'the body'}: {reason}", "GET /openapi.json lists every field")


def add_error_handlers(app: FastAPI) -> None:
    async def respond(request: Request, error: Exception) -> Response:
        return request_error(error, request.url.path).response(request.url.path)

    for kind in (RequestError, GlassformerError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, respond)

    @app.exception_handler(ClientDisconnected)
    async def disconnected(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=499)


def printable(text: str) -> str:
    """The beginning of a text, without the lone surrogates that UTF-8 cannot encode."""
    return text[:600].encode("utf-8", "replace").decode()
