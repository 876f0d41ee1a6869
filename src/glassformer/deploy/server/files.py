"""Documents by the interface of LibreTranslate: one is sent, and its translation fetched.

POST /translate_file        file, source (or auto), target: where the translation can be fetched
GET  /download_file/{name}  the translation

The name that a document comes with says what kind it is and what its translation is called; it is no path here.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from glassformer.common.errors import DataError
from glassformer.deploy.server.admission import Turns, Wanted
from glassformer.deploy.server.downloads import Shelf
from glassformer.deploy.server.fields import Upload, fields
from glassformer.deploy.server.keys import Gate
from glassformer.deploy.server.libre import AUTO, Failed, Libre, client_of, no_way, one_text, outside
from glassformer.deploy.server.libre_forms import ERRORS
from glassformer.deploy.server.request_state import Ticket
from glassformer.deploy.server.responses import sliced
from glassformer.deploy.server.routes import NoWay
from glassformer.pipelines.documents.formats import FORMATS
from glassformer.pipelines.documents.sandbox import translate_in_sandbox
from glassformer.pipelines.language.language import detect
from glassformer.pipelines.text import TextTranslator

OPENING = 8000  # bytes of a document that tell its language
TOGETHER = 20_000  # characters of one document that wait for the model at once
MOST_WAITING, AT_ONCE = 32, 4  # documents
LONGEST_NAME = 80
# What is fetched is shown by no browser as a page of this server.
SENT = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"}


# Said, not checked: whatever else is asked for is not here.
FileName = Annotated[str, Path(json_schema_extra={"pattern": r"^[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,200}$"})]


class TranslateFileAnswer(BaseModel):
    translatedFileUrl: str


ASKED = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file", "source", "target"],
                    "properties": {
                        "file": {"type": "string", "format": "binary"},
                        "source": {"type": "string"},
                        "target": {"type": "string"},
                        "api_key": {"type": "string"},
                    },
                }
            }
        },
    }
}


class Steadily:
    """A translator that has a part of a document waiting at a time, however long it is."""

    def __init__(self, translator: TextTranslator, ticket: Ticket) -> None:
        self.translator, self.ticket = translator, ticket

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        made: list[str] = []
        while len(made) < len(texts):
            self.ticket.check()
            end, size = len(made), 0
            while end < len(texts) and (size == 0 or size + len(texts[end]) <= TOGETHER):
                size += len(texts[end]) + 1
                end += 1
            made += self.translator.translate(texts[len(made) : end])
        return made


class Files:
    """What the addresses do, without the web."""

    def __init__(self, libre: Libre) -> None:
        self.libre, self.shelf = libre, Shelf()

    def translate(self, asked: dict[str, Any], ticket: Ticket) -> str:
        """The key of the document's translation."""
        file = asked.get("file")
        if not isinstance(file, Upload):
            raise Failed(400, "Invalid request: missing file parameter")
        source, target = one_text(asked, "source"), self.libre.language(one_text(asked, "target"))
        if not file.name:
            raise Failed(400, "Invalid request: empty file")
        name = plain_name(file.name)
        if name.suffix.lower() not in FORMATS:
            raise Failed(400, "Invalid request: file format not supported")
        code = self.detected(file.content) if source == AUTO else self.libre.language(source)
        try:
            made = self.made(file.content, name.suffix.lower(), code, target, ticket)
        except NoWay as error:
            raise no_way(error) from None
        except DataError as error:
            raise Failed(400, f"Invalid request: {error}") from None
        told = name.with_name(f"{name.stem}_{outside(target)}{name.suffix}")
        ending = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(told)).lstrip("._-")
        return self.shelf.add(str(told), made, ticket.client, f".{ending}")

    def detected(self, content: bytes) -> str | None:
        return detect(content[:OPENING].decode("utf-8", "ignore"), self.libre.routes.languages).code

    def made(self, content: bytes, suffix: str, code: str | None, target: str, ticket: Ticket) -> bytes:
        """The translation; what is in no language, or in that already, stays as it is."""
        if code in (None, target):
            return content
        assert code is not None
        if not self.libre.routes.way(code, target):
            raise NoWay(code, target)
        by = Steadily(self.libre.routes.translator(code, target, ticket), ticket)
        made = translate_in_sandbox(content, suffix, by, ticket.check)
        assert isinstance(made, bytes)
        return made


def plain_name(given: str) -> PurePosixPath:
    """What a file is called, of whatever its sender calls it; there is always something before its ending."""
    last = re.split(r"[/\\]", given)[-1]
    stem, suffix = os.path.splitext("".join(letter for letter in last if letter.isprintable()).strip())
    if suffix == "" and stem.startswith("."):
        stem, suffix = "", stem[stem.rindex(".") :]
    return PurePosixPath((stem.strip(" .") or "document")[:LONGEST_NAME] + suffix[:LONGEST_NAME].rstrip("."))


def install(app: FastAPI, files: Files, gate: Gate | None = None, seconds: float | None = None) -> None:
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])
    turns = Turns(MOST_WAITING, AT_ONCE, seconds)

    @router.post("/translate_file", response_model=TranslateFileAnswer, openapi_extra=ASKED)
    async def translate_file(request: Request) -> Response:
        asked = await fields(request)
        client = client_of(request, asked, gate)

        def run(wanted: Wanted) -> str:
            return files.translate(asked, Ticket(client, wanted))

        key = await turns.take(request, run)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=key))})

    @router.get("/download_file/{name}", responses={200: {"content": {"application/octet-stream": {}}}})
    async def download_file(name: FileName) -> Response:
        kept = files.shelf.get(name)
        if kept is None:
            raise Failed(404, "Invalid filename")
        ascii_name = f"translation{PurePosixPath(kept.name).suffix}"
        called = f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(kept.name, safe='')}"
        media = mimetypes.guess_type(ascii_name)[0] or "text/plain"
        return sliced(kept.content, 200, media, SENT | {"Content-Disposition": called})

    app.include_router(router)
