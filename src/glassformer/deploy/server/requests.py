"""What a request holds: fields of JSON or a form, images as text, and the schemas of the page's API."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, Union
from urllib.parse import parse_qsl

import numpy as np
from fastapi import Request
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from glassformer.common.strings import Language
from glassformer.decode import Search
from glassformer.deploy.server.errors import RequestError, bad_request
from glassformer.deploy.server.keys import ApiKeys
from glassformer.explain.decoding import COLDEST, HOTTEST
from glassformer.explain.interventions import CHANGE_KINDS
from glassformer.labs.run import LARGEST_SEED
from glassformer.pipelines.classifier import ImageProcessor

MAX_FIELDS, MAX_FILES, MAX_FIELD_BYTES = 10_000, 8, 2_000_000  # of a form
IMAGE_PREFIX = "pixels:"  # then one byte for each channel of each pixel, row by row, in base64
STRICT = ConfigDict(strict=True, extra="forbid")
Index = Annotated[int, Field(ge=0, lt=2**31)]  # of a layer, a head, a token; the model checks its own bounds
Temperature = Annotated[float, Field(ge=COLDEST, le=HOTTEST, allow_inf_nan=False)]

# The types of a change's fields. `CHANGE_KINDS` says which kind has which, and which are optional.
TYPES: dict[str, Any] = {
    "stack": Literal["encoder", "decoder"],
    "layer": Index,
    "attention": Literal["self", "cross"],
    "head": Index,
    "mask": Literal["causal", "padding"],
    "position": Index,
    "piece": str,
    "id": Index,
    "pieces": Annotated[list[str], Field(max_length=256)],
    "ids": Annotated[list[Index], Field(max_length=256)],
    "value": Temperature,
}


class Upload(NamedTuple):
    """A file of a multipart form."""

    name: str
    content: bytes


async def read_fields(request: Request) -> dict[str, Any]:
    """The fields of JSON, a form, or the query. Values of a repeated name become a list; JSON keeps its types."""
    body = await request.body()
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and (kind == "application/json" or kind.endswith("+json")):
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise bad_request("Invalid JSON format")
        return found
    form = body.decode("utf-8", "replace") if kind == "application/x-www-form-urlencoded" else ""
    pairs: list[tuple[str, Any]] = []
    try:
        for text in (request.url.query, form):
            pairs += parse_qsl(text, keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="replace")
    except ValueError:
        raise bad_request(f"Invalid form: more than {MAX_FIELDS:,} fields") from None
    if kind == "multipart/form-data":
        try:
            async with request.form(max_files=MAX_FILES, max_fields=MAX_FIELDS, max_part_size=MAX_FIELD_BYTES) as parts:
                for name, part in parts.multi_items():
                    file = Upload(part.filename or "", await part.read()) if isinstance(part, UploadFile) else None
                    pairs.append((name, file or part))
        except HTTPException as error:
            raise bad_request(f"Invalid form: {error.detail}") from None
    fields: dict[str, list[Any]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in fields.items()}


def client_of(request: Request, fields: dict[str, Any], api_keys: ApiKeys | None) -> str:
    """Who shares the queue's turns: an API key's owner, or a host. With `api_keys`, a valid key is required."""
    key: str | None = fields.get("api_key")
    if not isinstance(key, str) or not key:
        key = request.headers.get("authorization", "").rpartition(" ")[2] or None  # as DeepL's clients send it
    host = request.client.host if request.client else ""
    if api_keys is not None:
        return f"key {api_keys.check(key, host)}"
    return f"key {key}" if key else f"host {host}"


def decode_image(text: str, processor: ImageProcessor) -> NDArray[Any]:
    """The image (N, N, C) of a text field."""
    shape = (processor.size, processor.size, processor.channels)
    try:
        data = base64.b64decode(text.removeprefix(IMAGE_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if not text.startswith(IMAGE_PREFIX) or len(data) != np.prod(shape):
        hint = f"send {np.prod(shape):,} bytes, in base64 after {IMAGE_PREFIX!r}: rows, pixels, channels {shape}"
        raise RequestError(422, "image", "the text is no image of this model's size", hint)
    return np.frombuffer(data, np.uint8).reshape(shape)


def encode_image(image: NDArray[np.uint8]) -> str:
    """An image (N, N, C) as a text field."""
    return IMAGE_PREFIX + base64.b64encode(np.ascontiguousarray(image).tobytes()).decode()


def change_model(kind: str) -> type[BaseModel]:
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    for name, optional in CHANGE_KINDS[kind].fields.items():
        fields[name] = (TYPES[name] | None, None) if optional else (TYPES[name], ...)
    return create_model(kind, __config__=STRICT, **fields)


# Built from a table, so no type checker can read it.
AnyChange: TypeAlias = Annotated[Union[tuple(map(change_model, CHANGE_KINDS))], Field(discriminator="kind")]  # type: ignore[valid-type]  # noqa: UP007


class SentenceRequest(BaseModel):
    model_config = STRICT

    text: str
    beam: int = 1
    direction: str | None = None  # a name of GET /api/model; the first by default

    @field_validator("beam")
    @classmethod
    def check_beam(cls, beam: int) -> int:
        return Search(beam=beam).beam


class ChangesRequest(SentenceRequest):
    padding: int = Field(0, ge=0)
    changes: list[AnyChange] = Field([], max_length=64)

    def plain_changes(self) -> list[dict[str, Any]]:
        """As the Python interface takes them."""
        return [change.model_dump(exclude_unset=True) for change in self.changes]


class TraceRequest(ChangesRequest):
    target: str | None = None
    prefix: list[int] = Field([], max_length=256)
    temperature: Temperature = 1.0


class WhatIfRequest(ChangesRequest):
    changes: list[AnyChange] = Field(min_length=1, max_length=64)


class LabRequest(BaseModel):
    model_config = STRICT

    seed: int = Field(0, ge=0, le=LARGEST_SEED)
    lang: Language = "en"
