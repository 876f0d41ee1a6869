"""The choices of a setting as a table, made from what the trace tells of them."""

from __future__ import annotations

from collections.abc import Mapping

from glassformer.explain import formulas

SETTINGS: dict[str, Mapping[str, formulas.Part]] = {"activation": formulas.ACTIVATIONS, "norm_type": formulas.NORMS}
HEADS = {"en": ("choice", "computes", "in words"), "zh": ("选项", "计算", "说明")}


def table(setting: str, language: str) -> str:
    if setting not in SETTINGS:
        raise LookupError(f"no table of choices is made for `{setting}`, only for {', '.join(SETTINGS)}")
    rows = [HEADS[language], ("---",) * 3]
    rows += [(f"`{name}`", f"`{part.formula}`", part.why.say(language)) for name, part in SETTINGS[setting].items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
