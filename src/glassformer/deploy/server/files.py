"""Documents by the interface of LibreTranslate: a client sends one, and fetches its translation.

POST /translate_file        file, source (or auto), target: where the translation can be fetched
GET  /download_file/{name}  the translation

The uploaded file's name gives the format and the name of the translation. It is never used as a path.
"""

from __future__ import annotations

import mimetypes
import os
import re
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Annotated, Any, NamedTuple, cast
from urllib.parse import quote

from fastapi import APIRouter, FastAPI, Path, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from glassformer.common.errors import DataError
from glassformer.deploy.server.admission import AdmissionControl, RequestState
from glassformer.deploy.server.errors import RequestError, bad_request
from glassformer.deploy.server.keys import ApiKeys
from glassformer.deploy.server.libre import AUTO, ERRORS, LibreApi, libre_code, request_body, text_field
from glassformer.deploy.server.requests import Upload, client_of, read_fields
from glassformer.deploy.server.responses import chunked_response
from glassformer.pipelines.documents.formats import FORMATS
from glassformer.pipelines.documents.sandbox import translate_in_sandbox
from glassformer.pipelines.language.language import detect_language
from glassformer.pipelines.text import TextTranslator

DETECT_BYTES = 8000  # of a document, read to detect its language
CHUNK_CHARACTERS = 20_000  # of one document in the queue at a time
MAX_WAITING, CONCURRENCY = 32, 4  # documents
MAX_NAME = 80  # characters
MAX_FILES, MAX_BYTES, KEEP_SECONDS = 500, 64_000_000, 1800.0  # translations that wait to be fetched
# No browser should show a download as a page of this server.
DOWNLOAD_HEADERS = {"Content-Security-Policy": "sandbox; default-src 'none'", "Cache-Control": "no-store"}

# For OpenAPI only: any other name is answered with 404.
FileName = Annotated[str, Path(json_schema_extra={"pattern": r"^[A-Za-z0-9_-]{32}\.[A-Za-z0-9_.-]{1,200}$"})]


class TranslateFileResponse(BaseModel):
    translatedFileUrl: str


class TranslateFileBody(BaseModel):
    file: bytes
    source: str
    target: str
    api_key: str = ""


class Download(NamedTuple):
    name: str  # for the client
    content: bytes
    client: str
    expires: float


class DownloadStore:
    """Files in memory under unguessable keys. When it is full, the client with the most data loses its oldest file."""

    def __init__(
        self,
        max_files: int = MAX_FILES,
        max_bytes: int = MAX_BYTES,
        seconds: float = KEEP_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.max_files, self.max_bytes, self.seconds, self.clock = max_files, max_bytes, seconds, clock
        self._files: dict[str, Download] = {}  # the oldest first
        self._lock = threading.Lock()

    def add(self, name: str, content: bytes, client: str, suffix: str = "") -> str:
        """The key of the file, which ends in a readable `suffix`."""
        key = secrets.token_urlsafe(24) + suffix
        with self._lock:
            self._files[key] = Download(name, content, client, self.clock() + self.seconds)
            self._evict()
        return key

    def get(self, key: str) -> Download | None:
        with self._lock:
            self._evict()
            return self._files.get(key)

    def _evict(self) -> None:
        now = self.clock()
        self._files = {key: one for key, one in self._files.items() if one.expires > now}
        overhead = self.max_bytes // self.max_files  # so that many small files count as much data
        held: Counter[str] = Counter()
        for one in self._files.values():
            held[one.client] += len(one.content) + overhead
        while len(self._files) > self.max_files or self.size > self.max_bytes:
            client, _ = held.most_common(1)[0]
            key = next(key for key, one in self._files.items() if one.client == client)
            held[client] -= len(self._files.pop(key).content) + overhead

    @property
    def size(self) -> int:
        return sum(len(one.content) for one in self._files.values())

    def __len__(self) -> int:
        return len(self._files)


class ChunkedTranslator:
    """Puts one part of a long document into the queue at a time."""

    def __init__(self, translator: TextTranslator, state: RequestState) -> None:
        self.translator, self.state = translator, state

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        made: list[str] = []
        while len(made) < len(texts):
            self.state.check()
            end, size = len(made), 0
            while end < len(texts) and (size == 0 or size + len(texts[end]) <= CHUNK_CHARACTERS):
                size += len(texts[end]) + 1
                end += 1
            made += self.translator.translate(texts[len(made) : end])
        return made


class FilesApi:
    def __init__(self, libre: LibreApi) -> None:
        self.libre, self.store = libre, DownloadStore()

    def translate(self, fields: dict[str, Any], state: RequestState) -> str:
        """The key of the document's translation in the store."""
        file = fields.get("file")
        if not isinstance(file, Upload):
            raise bad_request("Invalid request: missing file parameter")
        source, target = text_field(fields, "source"), self.libre.language(text_field(fields, "target"))
        if not file.name:
            raise bad_request("Invalid request: empty file")
        name = safe_name(file.name)
        if name.suffix.lower() not in FORMATS:
            raise bad_request("Invalid request: file format not supported")
        beginning = file.content[:DETECT_BYTES].decode("utf-8", "ignore")
        service, content = self.libre.service, file.content
        code = detect_language(beginning, service.languages).code if source == AUTO else self.libre.language(source)
        if code is not None and code != target:  # a document in no language, or in the target's, stays as it is
            self.libre.check_route(code, target)
            by = ChunkedTranslator(service.translator(code, target, state), state)
            try:
                content = cast(bytes, translate_in_sandbox(content, name.suffix.lower(), by, state.check))
            except DataError as error:
                raise bad_request(f"Invalid request: {error}") from None
        translated = name.with_name(f"{name.stem}_{libre_code(target)}{name.suffix}")
        suffix = re.sub(r"[^A-Za-z0-9_.-]+", "_", str(translated)).lstrip("._-")
        return self.store.add(str(translated), content, state.client, f".{suffix}")


def safe_name(given: str) -> PurePosixPath:
    """The last part of an uploaded file's name, shortened, with something before its suffix."""
    last = re.split(r"[/\\]", given)[-1]
    stem, suffix = os.path.splitext("".join(letter for letter in last if letter.isprintable()).strip())
    if suffix == "" and stem.startswith("."):
        stem, suffix = "", stem[stem.rindex(".") :]
    return PurePosixPath((stem.strip(" .") or "document")[:MAX_NAME] + suffix[:MAX_NAME].rstrip("."))


def add_file_routes(app: FastAPI, api: FilesApi, api_keys: ApiKeys | None, timeout: float | None) -> None:
    router = APIRouter(responses=ERRORS, tags=["LibreTranslate"])
    admission = AdmissionControl(MAX_WAITING, CONCURRENCY, timeout)

    @router.post(
        "/translate_file",
        response_model=TranslateFileResponse,
        openapi_extra=request_body(TranslateFileBody, "multipart/form-data"),
    )
    async def translate_file(request: Request) -> Response:
        fields = await read_fields(request)
        client = client_of(request, fields, api_keys)
        key = await admission.run(request, lambda state: api.translate(fields, state), client)
        return JSONResponse({"translatedFileUrl": str(request.url_for("download_file", name=key))})

    @router.get("/download_file/{name}", responses={200: {"content": {"application/octet-stream": {}}}})
    async def download_file(name: FileName) -> Response:
        found = api.store.get(name)
        if found is None:
            raise RequestError(404, "unknown", "Invalid filename")
        ascii_name = f"translation{PurePosixPath(found.name).suffix}"
        disposition = f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(found.name, safe='')}"
        media = mimetypes.guess_type(ascii_name)[0] or "text/plain"
        return chunked_response(found.content, 200, media, DOWNLOAD_HEADERS | {"Content-Disposition": disposition})

    app.include_router(router)
