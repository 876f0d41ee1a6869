"""What a request may hold: its fields, their types and their bounds."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias, Union

from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator

from glassformer.common.strings import Language
from glassformer.decode import Search
from glassformer.explain.decoding import COLDEST, HOTTEST
from glassformer.explain.interventions import CHANGE_KINDS
from glassformer.labs.run import LARGEST_SEED

STRICT = ConfigDict(strict=True, extra="forbid")
Place = Annotated[int, Field(ge=0, lt=2**31)]  # of a layer, a head, a token: the model's own sizes are checked later
Temperature = Annotated[float, Field(ge=COLDEST, le=HOTTEST, allow_inf_nan=False)]

# A change's fields by name; which kind has which, and which may be left out, is told by `CHANGE_KINDS`.
TYPES: dict[str, Any] = {
    "stack": Literal["encoder", "decoder"],
    "layer": Place,
    "attention": Literal["self", "cross"],
    "head": Place,
    "mask": Literal["causal", "padding"],
    "position": Place,
    "piece": str,
    "id": Place,
    "pieces": Annotated[list[str], Field(max_length=256)],
    "ids": Annotated[list[Place], Field(max_length=256)],
    "value": Temperature,
}


def change_model(kind: str) -> type[BaseModel]:
    fields: dict[str, Any] = {"kind": (Literal[kind], ...)}
    for name, optional in CHANGE_KINDS[kind].fields.items():
        fields[name] = (TYPES[name] | None, None) if optional else (TYPES[name], ...)
    return create_model(kind, __config__=STRICT, **fields)


# Made of a table, so no type checker can read it.
AnyChange: TypeAlias = Annotated[Union[tuple(map(change_model, CHANGE_KINDS))], Field(discriminator="kind")]  # type: ignore[valid-type]  # noqa: UP007


class Asked(BaseModel):
    """What every request about a sentence holds."""

    model_config = STRICT

    text: str
    beam: int = 1
    direction: str | None = None  # by its name; the first where none is given

    @field_validator("beam")
    @classmethod
    def check_beam(cls, beam: int) -> int:
        return Search(beam=beam).beam


class Changed(Asked):
    padding: int = Field(0, ge=0)
    changes: list[AnyChange] = Field([], max_length=64)

    def plain_changes(self) -> list[dict[str, Any]]:
        """As the Python interface takes them."""
        return [change.model_dump(exclude_unset=True) for change in self.changes]


class TraceAsked(Changed):
    target: str | None = None
    prefix: list[int] = Field([], max_length=256)
    temperature: Temperature = 1.0


class WhatIfAsked(Changed):
    changes: list[AnyChange] = Field(min_length=1, max_length=64)


class LabAsked(BaseModel):
    model_config = STRICT

    seed: int = Field(0, ge=0, le=LARGEST_SEED)
    lang: Language = "en"
