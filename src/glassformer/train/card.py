"""The card of a translator that `glassformer make` has made, in English and in Chinese: what it is good at, how well it
does and how that was measured, how it was made, and what each corpus asks to be said of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from babel import Locale

from glassformer.common.files import write_text
from glassformer.pipelines.confidence import Confidence
from glassformer.train.evaluation.calibration import table

NAMES = {"en": "README.md", "zh": "README.zh-CN.md"}
SILENT = {"en": "The terms are not told.", "zh": "未说明许可。"}
UNMEASURED = {"en": "Not measured.", "zh": "未测量。"}
THESE = {"en": "the texts below", "zh": "下列文本"}
INTO = {"en": "Into {}:", "zh": "译成{}："}
NEXT = {
    "en": ("a smaller one learnt from all of it", "it went on learning from all of it"),
    "zh": ("由更小的模型学习全部数据", "同一个模型接着学习全部数据"),
}


def write_cards(
    folder: Path,
    pair: tuple[str, str],
    parameters: int,
    settings: Mapping[str, Any],
    counts: Mapping[str, int],
    terms: Mapping[str, str],
    confidence: Mapping[str, Confidence],
) -> None:
    """Write both cards into the folder of a model with its scores. `counts` are of the pairs or lines that were learnt
    of each corpus, `terms` what it asks to be said; the settings are those of train/make.toml."""
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    for language, file in NAMES.items():
        names, own = Locale.parse(language).languages, {"en": "", "zh": "_zh"}[language]
        told = {name: settings["model"].get(name + own, "") for name in ("good_at", "note", "licence")}
        told["good_at"] += " " if told["good_at"] and language == "en" else ""
        told["licence"] = told["licence"] or SILENT[language]
        goes_on = bool(settings["student"]["train"].get("start"))
        text = (Path(__file__).with_name(f"card.{language}.md")).read_text(encoding="utf-8")
        card = text.format(
            name="-".join(pair),
            a=names[pair[0]],
            b=names[pair[1]],
            millions=round(parameters / 1e6),
            hundreds=round(parameters / 1e4),
            weights=settings["model"]["weights"],
            purpose=settings["about"].get("purpose" + own) or THESE[language],
            rows="\n".join(
                f"| {name} | {one['bleu']:.2f} | {one['chrf']:.2f} | {one['sentences']:,} |"
                for name, one in scores.items()
            ),
            commands="\n".join(
                f"{name}\n  {one['command']}\n  {one['bleu_signature']}" for name, one in scores.items()
            ),
            confidence="\n\n".join(
                f"{INTO[language].format(names[to])}\n\n```text\n{table(known)}\n```"
                for to, known in confidence.items()
            ),
            first=settings["teacher"]["train"]["steps"],
            last=settings["student"]["train"]["steps"],
            then=NEXT[language][goes_on],
            counts="\n".join(f"| {name} | {count:,} |" for name, count in counts.items()),
            attributions="\n\n".join(
                f"### {name}\n\n```text\n{text or SILENT[language]}\n```" for name, text in terms.items()
            ),
            **told,
        )
        write_text(folder / file, card)
