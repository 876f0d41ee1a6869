"""The report of several lab runs: one HTML file with its figures inside, light and dark, and the words it uses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

from glassformer.labs.experiment import VERDICTS, Check, CheckOutcome, Verdict
from glassformer.labs.figures import Text
from glassformer.labs.run import LabRun, versions
from glassformer.labs.seeds import MergedCheck
from glassformer.labs.spread import format_number, format_spread

MARKS = {CheckOutcome.PASSED: "✓", CheckOutcome.FAILED: "✗", CheckOutcome.OPEN: "?"}
WORDS = {
    "claim": Text("Claim", "说法"),
    "prediction": Text("Prediction", "预期"),
    "measured": Text("Measured", "实测"),
    "numbers": Text("Numbers", "数据"),
    "checks": Text("Checks", "检验"),
    "change": Text("What would change it", "何时会变"),
    "verdict": Text("Verdict", "结论"),
    "value": Text("measured", "实测值"),
    "bounds": Text("expected", "应为"),
    "extent": Text("full extent", "最强形式"),
    "passed": Text("passed", "通过"),
    "failed": Text("failed", "未通过"),
    "open": Text("the seeds do not tell", "这些种子无法判定"),
    "seed": Text("seed {0}", "种子 {0}"),
    "seeds": Text("seeds {0} to {1}", "种子 {0} 至 {1}"),
    "seeds used": Text("seeds", "种子"),
    "seconds": Text("{0} s", "{0} 秒"),
    "to run": Text(
        "run one: glassformer lab {0}; all: glassformer lab --all",
        "运行一个：glassformer lab {0}；全部运行：glassformer lab --all",
    ),
    "to report": Text("figures and a report to read: add --out DIR", "需要图和可阅读的报告，请加上 --out DIR"),
    "reported": Text("the report: {0}", "报告：{0}"),
}


def phrase(word: str, language: str, *values: object) -> str:
    return WORDS[word].say(language, *values)


def format_seeds(seeds: Sequence[int], language: str) -> str:
    return phrase("seed", language, seeds[0]) if len(seeds) == 1 else phrase("seeds", language, seeds[0], seeds[-1])


def format_bounds(check: Check, language: str) -> str:
    """What a check's number has to be."""
    low, high = format_number(check.low), format_number(check.high)
    if check.low == check.high:
        return f"= {low}"
    if math.isfinite(check.low) and math.isfinite(check.high):
        return Text(f"{low} to {high}", f"{low} 至 {high}").say(language)
    return f"≥ {low}" if math.isfinite(check.low) else f"≤ {high}"


OUTCOMES = {CheckOutcome.PASSED: "holds", CheckOutcome.FAILED: "fails", CheckOutcome.OPEN: "open"}
TITLE = Text("What is said of Transformers, put to the test", "关于 Transformer 的常见说法，逐一验证")
LEDE = Text(
    "Each claim is an experiment on the model code that ships with glassformer, run with several seeds; a number is "
    "their mean with its 95% interval. A check passes where the whole interval lies within its bounds (a fact such as "
    "a count: where every seed does). Where a check of the claim's core fails, the claim does not hold; where only its "
    "full extent does not pass, it holds with limits.",
    "每条说法都对应一个实验，跑的就是 glassformer 自带的模型代码，用多个种子重复；数值为均值及其 95% 置信区间。"
    "整个区间落在范围内，检验才算通过（计数之类的事实则要求每个种子都符合）。核心检验未通过，则不成立；"
    "只有最强形式未通过，则为有条件成立。",
)
MADE = Text("How this was made", "本报告的由来")
COMMAND = Text("command", "命令")
CONTENTS = Text("Labs", "实验")


def html(runs: Sequence[LabRun], figures: Mapping[str, str], language: str, command: str) -> str:
    """The page of these runs; `figures` are SVG by the lab's name, `command` makes the page again."""
    body = [*opening(runs, language)]
    for one in runs:
        body += article(one, figures[one.lab.name], language)
    seeds = ", ".join(str(seed) for seed in sorted({seed for one in runs for seed in one.seeds}))
    facts = {COMMAND.say(language): command, phrase("seeds used", language): seeds} | versions()
    body += [
        f"<footer><h2>{escape(MADE.say(language))}</h2><dl>",
        *(f"<dt>{escape(name)}</dt><dd><code>{escape(text)}</code></dd>" for name, text in facts.items()),
        "</dl></footer>",
    ]
    title = escape(TITLE.say(language))
    style = Path(__file__).with_name("report.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="{"zh-Hans" if language == "zh" else "en"}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title} · glassformer</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def badge(verdict: Verdict, language: str, count: int | None = None) -> str:
    shown = f"{count or ''} {VERDICTS[verdict].say(language)}".strip()
    return f'<span class="badge {verdict.name.lower()}">{escape(shown)}</span>'


def opening(runs: Sequence[LabRun], language: str) -> Iterator[str]:
    yield f"<header><h1>{escape(TITLE.say(language))}</h1><p class='lede'>{escape(LEDE.say(language))}</p></header>"
    if len(runs) < 2:
        return
    counts = Counter(one.finding.verdict for one in runs)
    badges = "".join(badge(verdict, language, counts[verdict]) for verdict in VERDICTS if counts[verdict])
    yield f"<p class='tally'>{badges}</p><nav aria-label='{escape(CONTENTS.say(language))}'><ol>"
    for one in runs:
        title = escape(one.lab.title.say(language))
        yield f'<li><a href="#{one.lab.name}">{title}</a>{badge(one.finding.verdict, language)}</li>'
    yield "</ol></nav>"


def article(one: LabRun, figure: str, language: str) -> Iterator[str]:
    lab, finding = one.lab, one.finding

    def part(word: str, text: Text, kind: str = "") -> str:
        return f"<section><h3>{escape(phrase(word, language))}</h3><p{kind}>{escape(text.say(language))}</p></section>"

    yield f'<article id="{lab.name}">'
    yield f"<header><h2>{escape(lab.title.say(language))}</h2>{badge(finding.verdict, language)}</header>"
    yield part("claim", lab.claim, ' class="claim"')
    yield f'<div class="sides">{part("prediction", lab.prediction)}'
    yield f"{part('measured', finding.summary, ' class=summary')}</div>"
    caption = finding.figure.caption.say(language)
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    yield f'<figure><div class="frame" tabindex="0">{figure}</div>{below}</figure>'
    yield f'<section><h3>{escape(phrase("checks", language))}</h3><div class="scroll"><table class="checks">'
    yield "<thead><tr><th></th><th></th>"
    yield "".join(
        f'<th class="num" scope="col">{escape(WORDS[word].say(language))}</th>' for word in ("value", "bounds")
    )
    yield "</tr></thead><tbody>"
    yield from (row(check, language) for check in finding.checks)
    yield f"</tbody></table></div></section><section><h3>{escape(phrase('numbers', language))}</h3>"
    yield '<div class="scroll"><table class="numbers"><tbody>'
    for name, value in finding.named_numbers(language).items():
        yield f'<tr><td>{escape(name)}</td><td class="num" data-value="{value.mean!r}">{format_spread(value)}</td></tr>'
    yield "</tbody></table></div></section>"
    yield part("change", lab.change)
    spent = phrase("seconds", language, f"{one.seconds:.1f}")
    yield (
        f"<p class='faint'><code>glassformer lab {lab.name} --seed {one.seeds[0]} --seeds {len(one.seeds)}</code> · "
        f"{escape(format_seeds(one.seeds, language))} · {escape(spent)}</p></article>"
    )


def row(merged: MergedCheck, language: str) -> str:
    kind, mark = OUTCOMES[merged.outcome], MARKS[merged.outcome]
    extent = f' <span class="extent">· {escape(phrase("extent", language))}</span>' if merged.check.extent else ""
    return (
        f'<tr><td class="mark {kind}" aria-label="{escape(phrase(merged.outcome, language))}">{mark}</td>'
        f'<td>{escape(merged.check.text.say(language))}{extent}</td><td class="num">{format_spread(merged.spread)}</td>'
        f'<td class="num">{escape(format_bounds(merged.check, language))}</td></tr>'
    )
