"""What if a part were missing? The same sentence before and after a change, and the difference that it makes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from glassformer.common.arguments import checked
from glassformer.common.errors import InputError, one_of
from glassformer.common.files import without_nan
from glassformer.explain import decoding
from glassformer.explain.interventions import CHANGE_KINDS
from glassformer.explain.subject import Sentence, Subject, Traced
from glassformer.explain.trace import Trace, TraceOptions, prepare, run


@dataclass(frozen=True)
class Difference:
    """`forced`: for each token of the first run's output, or the best candidate of each place of its answer, the
    log-probability before and after the change."""

    output_before: str | None
    output_after: str | None
    forced: list[dict[str, Any]]

    @property
    def same_output(self) -> bool:
        return self.output_before == self.output_after

    @property
    def total_before(self) -> float:
        return sum(float(row["before"]) for row in self.forced)

    @property
    def total_after(self) -> float:
        return sum(float(row["after"]) for row in self.forced)

    @property
    def largest(self) -> dict[str, Any] | None:
        """The token whose log-probability the change moved most."""
        return max(self.forced, key=lambda row: abs(row["difference"]), default=None)

    def as_dict(self) -> dict[str, Any]:
        outputs = {name: getattr(self, name) for name in ("output_before", "output_after", "same_output", "forced")}
        totals = {"total_before": self.total_before, "total_after": self.total_after}
        difference = self.total_after - self.total_before
        return outputs | totals | {"total_difference": difference, "largest": self.largest}


@dataclass(frozen=True)
class WhatIf:
    """The traces before and after a change, and their `difference`; `as_dict` gives it all, fit for JSON."""

    before: Trace
    after: Trace
    difference: Difference

    def as_dict(self) -> dict[str, Any]:
        return {
            "before": self.before.manifest(),
            "after": self.after.manifest(),
            "difference": without_nan(self.difference.as_dict()),
        }


@checked
def what_if(
    subject: Traced,
    sentence: Sentence,
    changes: Iterable[Mapping[str, Any]],
    target: Sentence | None = None,
    **options: Unpack[TraceOptions],
) -> WhatIf:
    """Trace a sentence twice, as it is and with `changes`; the other arguments are those of `trace`.

        what_if(t, "twenty-one", [{"kind": "remove_head", "stack": "decoder", "layer": 0, "head": 1}])

    Each change is a dictionary with its `kind`: remove_head, remove_layer, remove_mask, remove_cross,
    remove_positions, remove_scale, swap_token, prefix or temperature. The model itself stays as it is.
    """
    changes = changes if isinstance(changes, Mapping | str) else list(changes)
    if not changes:
        kinds = one_of(CHANGE_KINDS)
        raise InputError(f"what_if needs a change, such as changes=[{{'kind': 'remove_scale'}}]; kinds: {kinds}")
    given = Subject(subject)
    plain, changed = (prepare(given, sentence, target, made, **options) for made in ((), changes))
    before, after = run(plain), run(changed)
    pieces, then = given.pieces(before.written.chosen, source=False), list[float]()
    now = [float(step["chosen_log_probability"]) for step in before.steps]
    if before.answer is not None:
        pieces = [str(place["top"][0]["piece"]) for place in before.answer["places"]]
        now, then = (decoding.answer_log_probabilities(before.answer, one.log_probs) for one in (before, after))
    elif before.written.chosen:
        logits = decoding.step_logits(changed.model, changed.src, changed.mask, before.written)
        log_probs = decoding.log_probabilities(logits, changed.options.temperature)
        then = decoding.chosen_log_probabilities(log_probs, before.written)
    rows = [
        {"step": i, "piece": piece, "before": first, "after": later, "difference": later - first}
        for i, (piece, first, later) in enumerate(zip(pieces, now, then, strict=True))
    ]
    return WhatIf(before, after, Difference(before.said, after.said, rows))
