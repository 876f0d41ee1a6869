"""What a client reads when a request cannot be answered: `{"error": {"code", "message", "hint", "values"}}`, and at the
addresses of LibreTranslate and of DeepL, as there, `{"error": "..."}` and `{"message": "..."}`."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from glassformer.common.errors import GlassformerError

# Addresses of other interfaces.
DEEPL = "/v2/"
LIBRE = ("/translate", "/download_file/", "/detect", "/languages", "/frontend/", "/health", "/spec")


def is_interface(path: str) -> bool:
    """Whether it is for other programs, and not the page's own."""
    return path.startswith((*LIBRE, DEEPL))


class Refused(Exception):
    """A request that is turned down. `code` and `values` let the page say it in its reader's language."""

    def __init__(self, status: int, code: str, message: str, hint: str = "", **values: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.hint, self.values = status, code, message, hint, values


def refusal(status: int, code: str, error: GlassformerError, **values: Any) -> Refused:
    """A mistake as the user is told it: what is wrong before the first semicolon, what to do about it after."""
    message, _, hint = printable(str(error)).partition("; ")
    return Refused(status, code, message, hint, **values)


class Left(Exception):
    """The client has gone: nobody waits for this answer."""


# What nobody has foreseen, and the log tells.
FAULT = ("fault", "something went wrong in the server", "its log says what")


def body(code: str, message: str, hint: str = "", values: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "hint": hint, "values": values or {}}}


def body_for(
    path: str, code: str, message: str, hint: str = "", values: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The body of an answer at this address."""
    whole = "; ".join(filter(None, (message, hint)))
    if path.startswith(DEEPL):
        return {"message": whole}
    if path.startswith(LIBRE):
        return {"error": whole}
    return body(code, message, hint, values)


def install(app: FastAPI) -> None:
    """Every way to fail ends in the same form."""

    @app.exception_handler(Refused)
    async def refused(request: Request, error: Refused) -> JSONResponse:
        headers = {"Retry-After": "1"} if error.status == 429 else None
        said = body_for(request.url.path, error.code, error.message, error.hint, error.values)
        return JSONResponse(said, error.status, headers)

    @app.exception_handler(Left)
    async def left(request: Request, error: Left) -> Response:
        return Response(status_code=499)  # nobody reads it

    @app.exception_handler(GlassformerError)
    async def mistaken(request: Request, error: GlassformerError) -> JSONResponse:
        return await refused(request, refusal(422, "refused", error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            return JSONResponse(
                body("malformed", "the body is not JSON", 'send an object such as {"text": "one"}'), 400
            )
        mistake = first.get("ctx", {}).get("error")
        if isinstance(mistake, GlassformerError):
            return await refused(request, refusal(422, "invalid", mistake))
        # The path and the reason; either may repeat what was sent, which may be of any size, or not even text.
        place = printable(".".join(str(part) for part in first["loc"] if part != "body"))
        reason = printable(first["msg"][:1].lower() + first["msg"][1:])
        return JSONResponse(
            body("invalid", f"{place or 'the body'}: {reason}", "GET /openapi.json lists every field"), 422
        )

    @app.exception_handler(HTTPException)
    async def missing(request: Request, error: HTTPException) -> JSONResponse:
        said = {
            400: ("malformed", "the body cannot be read", "send a JSON object"),
            404: ("unknown", "there is nothing at this address", "GET / is the page, GET /openapi.json the interface"),
            405: ("method", "this address does not take this method", "GET /openapi.json lists those it takes"),
        }
        code, message, hint = said.get(error.status_code, ("refused", str(error.detail), ""))
        said_here = body_for(request.url.path, code, message, hint)
        return JSONResponse(said_here, error.status_code, error.headers)


def printable(text: str) -> str:
    """Text that can be sent: half of a surrogate pair cannot."""
    return text[:600].encode("utf-8", "replace").decode()
