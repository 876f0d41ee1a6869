"""Where requests about a sentence are checked, and answered by the model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from glassformer.common.version import __version__
from glassformer.deploy.server.admission import Wanted
from glassformer.deploy.server.directions import Directions, Shown
from glassformer.deploy.server.errors import Refused
from glassformer.deploy.server.pictures import pixels
from glassformer.deploy.server.recent import RecentRuns, Run
from glassformer.deploy.server.requests import Asked, Changed, TraceAsked, WhatIfAsked
from glassformer.explain.subject import Sentence, Subject
from glassformer.explain.trace import Trace, TraceOptions, trace
from glassformer.explain.weights import facts
from glassformer.explain.what_if import what_if
from glassformer.pipelines import Classifier


@dataclass(frozen=True)
class Limits:
    """More than this is refused (`source_tokens`, `characters`) or capped (the others), and said."""

    source_tokens: int = 64
    beam: int = 8
    padding: int = 8
    new_tokens: int = 64
    continued: int = 24  # tokens written after a prompt, which seldom ends by itself
    characters: int = 2000
    waiting: int = 256  # requests that may wait for their turn


class Desk:
    """Where requests are checked and answered by the model, for as long as someone waits for the answer."""

    def __init__(self, directions: Directions, limits: Limits, handbook: bool, translates: bool = False) -> None:
        self.directions, self.limits = directions, limits
        self.handbook, self.translates = handbook, translates  # what else there is beside the page
        self.recent = RecentRuns()

    def check(self, text: str, by: Subject) -> int:
        """How many tokens a sentence has, or places an image, if it can be read."""
        limits = self.limits
        if by.reads_images:
            return len(by.places)
        if len(text) > limits.characters:
            message = f"the sentence has {len(text):,} characters, at most {limits.characters:,} are read"
            raise Refused(422, "long_text", message, "shorten it", limit=limits.characters)
        tokens = len(by.encoded(text)) if text.strip() else 0
        if tokens == 0:
            raise Refused(422, "empty", "the sentence is empty", "send some words as `text`")
        most = min(limits.source_tokens, by.max_source_length())
        if tokens > most:
            message = f"the sentence has {tokens} tokens, at most {most} can be shown"
            raise Refused(422, "long", message, "shorten it", tokens=tokens, limit=most)
        return tokens

    def capped(self, **asked: int) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        """The values to use, and those that are not what was asked for."""
        used = {name: min(value, getattr(self.limits, name)) for name, value in asked.items()}
        changed = {name: {"asked": asked[name], "used": used[name]} for name in asked if used[name] != asked[name]}
        return used, changed

    def options(self, asked: Changed, by: Shown, wanted: Wanted) -> tuple[TraceOptions, dict[str, dict[str, int]]]:
        """How a sentence is traced here, and what of that is not as asked for."""
        subject = Subject(by.served)
        most = self.limits.continued if subject.task == "continue" else self.limits.new_tokens
        tokens = self.check(asked.text, subject)
        used, capped = self.capped(beam=asked.beam, padding=asked.padding)
        return {
            "beam": used["beam"],
            "padding": used["padding"],
            "max_new_tokens": most if subject.max_target_length(tokens) > most else None,
            "name": by.model.name,
            "between_steps": wanted,
        }, capped

    def told(self, found: Trace, capped: dict[str, dict[str, int]], limit: int | None) -> dict[str, Any]:
        if limit is not None and not found.written.finished and len(found.written.chosen) >= limit:
            capped = capped | {"new_tokens": {"asked": limit, "used": limit}}
        return noted(capped)

    def trace(self, asked: TraceAsked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction)
        options, capped = self.options(asked, by, wanted)
        most = self.limits.new_tokens
        if asked.target is not None and len(Subject(by.served).target_ids(asked.target)) > most:
            raise Refused(422, "refused", f"the target has more than {most} tokens", "shorten it", limit=most)
        options |= {"prefix": asked.prefix, "temperature": asked.temperature}
        found = trace(by.served, given(asked.text, by), asked.target, changes=asked.plain_changes(), **options)
        self.recent.add(found)
        return found.manifest() | self.told(found, capped, options["max_new_tokens"])

    def what_if(self, asked: WhatIfAsked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction)
        options, capped = self.options(asked, by, wanted)
        found = what_if(by.served, given(asked.text, by), asked.plain_changes(), **options)
        for one in (found.before, found.after):
            self.recent.add(one)
        return found.as_dict() | self.told(found.after, capped, options["max_new_tokens"])

    def translate(self, asked: Asked, wanted: Wanted) -> dict[str, Any]:
        by = self.directions.shown(asked.direction).translator
        self.check(asked.text, Subject(by))
        used, capped = self.capped(beam=asked.beam)
        best = by.translate([asked.text], beam=used["beam"], between_steps=wanted)[0][0]
        return {"text": best.text, "score": best.score, "tokens": best.tokens} | noted(capped)

    def about(self, direction: str | None) -> dict[str, Any]:
        shown, known = self.directions.shown(direction), self.directions.known
        return {
            "model": facts(Subject(shown.served), shown.model.name),
            "about": asdict(shown.served.about),
            "direction": shown.direction.name,
            "directions": [one._asdict() for one in known.values()],
            "examples": [one._asdict() for one in shown.examples],
            "handbook": self.handbook,
            "limits": asdict(self.limits),
            "translates": self.translates,
            "version": __version__,
            "weights": shown.model.weights.manifest(),
        }

    def weights_blob(self, direction: str | None) -> bytes:
        return self.directions.shown(direction).model.blob

    def run(self, run: str) -> Run:
        found = self.recent.get(run)
        if found is None:
            hint = "POST the same request to /api/trace again"
            raise Refused(404, "forgotten", f"the run {run} is not, or no longer, in this server's memory", hint)
        return found


def given(text: str, by: Shown) -> Sentence:
    """What a model is to read: a text as it was sent, or the image that it tells."""
    reads = by.served
    return pixels(text, reads.sight) if isinstance(reads, Classifier) and reads.reads_images else text


def noted(capped: dict[str, dict[str, int]]) -> dict[str, Any]:
    """What was not done as asked, for people in `notes` and for the page in `capped`."""
    notes = [f"{name.replace('_', ' ')} capped at {one['used']}" for name, one in capped.items()]
    return {"notes": notes, "capped": capped}
