"""`glassformer score`: how likely a model finds translations that are given to it."""

from __future__ import annotations

import math
import sys
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import (
    Device,
    LengthPenalty,
    Offline,
    Precision,
    Revision,
    Rule,
    Source,
    To,
    find_model,
    to_json,
)
from glassformer.common.errors import InputError

CHUNK = 512  # lines scored together


def score(
    model: Annotated[
        str, Argument(help="A folder that glassformer train has made, a Marian folder, or a name of the hub.")
    ],
    src: Annotated[Path, Option(help="A file of source sentences, one a line (gzip and xz too).")],
    tgt: Annotated[Path, Option(help="Their translations, line by line.")],
    to: To = None,
    source: Source = None,
    length_penalty: LengthPenalty = 1.0,
    length_rule: Rule = "average",
    batch_tokens: Annotated[int, Option(help="Tokens in a batch.")] = 4096,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line, and one for all at the end.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Score given translations: for each line the score that `glassformer translate` would give this output.

    With --json each line gives {"log_probability": ..., "tokens": ..., "score": ...}, the end mark counted among the
    tokens, and the last line {"lines": ..., "tokens": ..., "log_probability": ..., "perplexity": ...} of them all.
    Without it the perplexity goes to standard error.
    """
    from glassformer.common.report import Report
    from glassformer.data import Corpus, read_pairs
    from glassformer.decode import LengthRule
    from glassformer.pipelines.translator import TooLong, Translator

    report = Report()
    rule = LengthRule(length_penalty, cast(Any, length_rule))
    corpus = Corpus(src=src, tgt=tgt)
    lines = sum(1 for _ in read_pairs(corpus))  # files that do not pair up are refused before any work
    translator = Translator.load(
        find_model(model, revision, offline), device, cast(Any, precision), to=to, source=source
    )
    pairs = read_pairs(corpus)
    done = tokens = 0
    total = 0.0
    while chunk := list(islice(pairs, CHUNK)):
        try:
            found = translator.likelihoods(
                [one for one, _ in chunk], [one for _, one in chunk], batch_tokens=batch_tokens
            )
        except TooLong as error:
            file = src if error.name == "texts" else tgt
            raise InputError(f"{file}, line {done + error.index + 1}: {error.reason}") from None
        report.clear()
        for one in found:
            values = {"log_probability": one.log_probability, "tokens": one.tokens, "score": one.score(rule)}
            print(to_json(values) if as_json else f"{values['score']:.6f}")
            total, tokens = total + one.log_probability, tokens + one.tokens
        sys.stdout.flush()
        done += len(chunk)
        report.show(f"scored: {done:,} of {lines:,} lines")
    report.clear()
    perplexity = math.exp(-total / tokens) if tokens and math.isfinite(total) else math.inf
    if as_json:
        summary = {"lines": done, "tokens": tokens, "log_probability": total, "perplexity": perplexity}
        print(to_json(summary), flush=True)
    else:
        report.say(f"perplexity {perplexity:.4f} ({tokens:,} tokens in {done:,} lines)")
