"""Errors as responses.

The body is `{"error": {"code", "message", "hint", "values"}}`. The routes of LibreTranslate and DeepL keep the form of
their protocols: `{"error": "..."}` and `{"message": "..."}`.
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from glassformer.common.errors import GlassformerError

DEEPL = "/v2/"
LIBRE = ("/translate", "/download_file/", "/detect", "/languages", "/frontend/", "/health", "/spec")
FAULT = ("fault", "something went wrong in the server", "its log says what")
DESCRIPTIONS = {
    400: "The request cannot be answered.",
    403: "Not allowed.",
    404: "Not, or no longer, here.",
    408: "The request took too long to arrive.",
    409: "Another lab is running.",
    413: "Too large.",
    422: "The request cannot be answered; the reason is in `error`.",
    429: "Too many requests are waiting.",
    503: "The server is stopping.",
    504: "The request took longer than the server allows.",
}


class RequestError(Exception):
    """A request that cannot be answered. The page translates `code` and `values` into its reader's language."""

    def __init__(
        self, status: int, code: str, message: str, hint: str = "", retry_after: int = 1, **values: Any
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint, self.values = status, code, message, hint, values
        self.retry_after = retry_after  # seconds, with 429 and 503

    @classmethod
    def from_user_error(
        cls, error: GlassformerError, status: int = 422, code: str = "refused", **values: Any
    ) -> RequestError:
        """The part of the message before the first semicolon says what is wrong, the rest what to do about it."""
        message, _, hint = printable(str(error)).partition("; ")
        return cls(status, code, message, hint, **values)


def bad_request(message: str) -> RequestError:
    return RequestError(400, "malformed", message)


class ClientDisconnected(Exception):
    """The client has closed its connection."""


def is_program_route(path: str) -> bool:
    """Whether the route is meant for other programs, not for the page."""
    return path.startswith((*LIBRE, DEEPL))


def error_body(
    path: str, code: str, message: str, hint: str = "", values: dict[str, Any] | None = None
) -> dict[str, Any]:
    text = "; ".join(filter(None, (message, hint)))
    if path.startswith(DEEPL):
        return {"message": text}
    if path.startswith(LIBRE):
        return {"error": text}
    return {"error": {"code": code, "message": message, "hint": hint, "values": values or {}}}


def error_responses(*statuses: int, model: type[BaseModel] | None = None) -> dict[int | str, dict[str, Any]]:
    """The errors of a route, for OpenAPI."""
    body: dict[str, Any] = {"model": model} if model else {"content": {"application/json": {}}}
    return {status: {"description": DESCRIPTIONS[status], **body} for status in statuses}


def add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(RequestError)
    async def request_error(request: Request, error: RequestError) -> JSONResponse:
        headers = {"Retry-After": str(error.retry_after)} if error.status in (429, 503) else None
        body = error_body(request.url.path, error.code, error.message, error.hint, error.values)
        return JSONResponse(body, error.status, headers)

    @app.exception_handler(ClientDisconnected)
    async def disconnected(request: Request, error: ClientDisconnected) -> Response:
        return Response(status_code=499)

    @app.exception_handler(GlassformerError)
    async def user_error(request: Request, error: GlassformerError) -> JSONResponse:
        return await request_error(request, RequestError.from_user_error(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if first["type"] == "json_invalid":
            hint = 'send an object such as {"text": "one"}'
            found = RequestError(400, "malformed", "the body is not JSON", hint)
        elif isinstance(cause, GlassformerError):
            found = RequestError.from_user_error(cause, code="invalid")
        else:
            # Both may repeat what the client sent, of any size, and not always text.
            place = printable(".".join(str(part) for part in first["loc"] if part != "body"))
            reason = printable(first["msg"][:1].lower() + first["msg"][1:])
            found = RequestError(
                422, "invalid", f"{place or 'the body'}: {reason}", "GET /openapi.json lists every field"
            )
        return await request_error(request, found)

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> JSONResponse:
        known = {
            400: ("malformed", "the body cannot be read", "send a JSON object"),
            404: ("unknown", "there is nothing at this address", "GET / is the page, GET /openapi.json the interface"),
            405: ("method", "this address does not take this method", "GET /openapi.json lists those it takes"),
        }
        body = error_body(request.url.path, *known.get(error.status_code, ("refused", str(error.detail))))
        return JSONResponse(body, error.status_code, error.headers)


def printable(text: str) -> str:
    """The beginning of a text, without the lone surrogates that UTF-8 cannot encode."""
    return text[:600].encode("utf-8", "replace").decode()
