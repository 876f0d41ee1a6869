"""Scores with intervals: of translations (BLEU, chrF, exact match), of texts, of filled gaps and of labels."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from glassformer.common.arguments import check_texts
from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of

RESAMPLES = 1000
Z_95 = 1.96  # deviations to either side that hold 95 %


@dataclass(frozen=True)
class Scores:
    """Figures in percent; `*_interval` is half the width of the 95 % confidence interval, by bootstrap."""

    sentences: int
    bleu: float
    bleu_interval: float | None
    bleu_signature: str
    chrf: float
    chrf_interval: float | None
    chrf_signature: str
    exact: float
    exact_interval: float

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        def near(value: float | None) -> str:
            return "" if value is None else f" ± {value:.1f}"

        return (
            f"BLEU {self.bleu:.2f}{near(self.bleu_interval)}   chrF {self.chrf:.2f}{near(self.chrf_interval)}   "
            f"exact match {self.exact:.1f} %{near(self.exact_interval)}   ({self.sentences:,} sentences)"
        )


def score(
    outputs: Iterable[str],
    references: Iterable[str],
    tokenize: str = "13a",
    lowercase: bool = False,
    interval: bool = True,
) -> Scores:
    """Compare translations with their references, one each."""
    from sacrebleu.metrics.chrf import CHRF

    outputs, references = check_texts(outputs, "outputs"), check_texts(references, "references")
    if len(outputs) != len(references):
        raise DataError(f"{len(outputs)} translations but {len(references)} references; they must pair line by line")
    if not outputs:
        raise DataError("there is nothing to score: the file is empty")
    bleu = with_float_scores(make_bleu(tokenize, lowercase))
    chrf = with_float_scores(CHRF())
    resamples = RESAMPLES if interval and len(outputs) > 1 else 1
    b = bleu.corpus_score(outputs, [references], n_bootstrap=resamples)
    c = chrf.corpus_score(outputs, [references], n_bootstrap=resamples)
    hits = sum(a == b for a, b in zip(outputs, references, strict=True)) / len(outputs)
    return Scores(
        sentences=len(outputs),
        bleu=float(b.score),
        bleu_interval=float(b._ci) if resamples > 1 else None,
        bleu_signature=str(bleu.get_signature()),
        chrf=float(c.score),
        chrf_interval=float(c._ci) if resamples > 1 else None,
        chrf_signature=str(chrf.get_signature()),
        exact=100 * hits,
        exact_interval=100 * Z_95 * (hits * (1 - hits) / len(outputs)) ** 0.5,
    )


def make_bleu(tokenize: str, lowercase: bool = False) -> Any:
    """sacrebleu's BLEU with one of its tokenizers, of which some need a package or a download of their own."""
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        near = did_you_mean(tokenize, BLEU.TOKENIZERS)
        raise ConfigError(f"tokenize = {tokenize!r} is not one of sacrebleu's {one_of(BLEU.TOKENIZERS)}{near}")
    try:
        # Without a tokenizer of its own, the text is meant to be tokenised; sacrebleu need not warn of it.
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    except Exception as error:  # a package that is not there, a download that fails
        reason = " ".join(str(error).split())
        raise ConfigError(f"sacrebleu's tokenizer `{tokenize}` cannot be used here: {reason}") from None


def with_float_scores(metric: Any) -> Any:
    """Let a metric give plain floats: where some resamples score 0, sacrebleu fails to average its mixed numbers."""
    compute = metric._compute_score_from_stats

    def as_float(stats: Any) -> Any:
        found = compute(stats)
        found.score = float(found.score)
        return found

    metric._compute_score_from_stats = as_float
    return metric


@dataclass(frozen=True)
class BaseScores:
    """Scores of a model that does not translate: figures in percent, but for perplexity and bits."""

    measured: str  # how, in words

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class TextScores(BaseScores):
    """Of a decoder: how well it foresees texts."""

    texts: int
    tokens: int
    bytes: int
    loss: float  # nats a token
    perplexity: float
    bits_per_byte: float
    least: float | None = None  # nats a token that the source's own law costs, where it is known

    @classmethod
    def of(
        cls, log_probabilities: Sequence[float], tokens: int, texts: Sequence[str], least: float | None = None
    ) -> TextScores:
        size, total = sum(len(text.encode("utf-8", "replace")) for text in texts), -math.fsum(log_probabilities)
        if not tokens or not size:
            raise DataError("there is nothing to score: the texts are empty")
        how = "each token after those before it, a text's end counted as a token, and in its bytes as none"
        loss = total / tokens
        perplexity = math.exp(loss) if loss < 700 else math.inf
        best = None if least is None else least / tokens
        return cls(how, len(texts), tokens, size, loss, perplexity, total / math.log(2) / size, best)

    def __str__(self) -> str:
        return (
            f"perplexity {self.perplexity:.4g}   bits per byte {self.bits_per_byte:.4f}   {self.loss:.4f} nats a token"
            + ("" if self.least is None else f", {self.loss - self.least:.4f} above the source's own {self.least:.4f}")
            + f"   ({self.texts:,} texts, {self.tokens:,} tokens)"
        )


@dataclass(frozen=True)
class GapScores(BaseScores):
    """Of an encoder that fills gaps: how often the hidden token is the likeliest, and how likely it is."""

    texts: int
    tokens: int
    accuracy: float
    accuracy_interval: float
    pseudo_perplexity: float
    determined: int | None = None  # gaps that the rest of the text leaves no choice for, where that is known
    determined_accuracy: float | None = None

    @classmethod
    def of(
        cls,
        log_probabilities: Sequence[float],
        right: Sequence[int],
        tokens: Sequence[int],
        determined: Sequence[bool] = (),
    ) -> GapScores:
        """`determined`: of each gap that the rest determines, whether it is filled right."""
        if not sum(tokens):
            raise DataError("there is nothing to score: the texts are empty")
        hits, counts = np.array(right, dtype=float), np.array(tokens, dtype=float)
        picks = np.random.RandomState(0).randint(0, len(counts), (RESAMPLES, len(counts)))
        spread = np.std(hits[picks].sum(1) / np.maximum(1, counts[picks].sum(1)))
        how = "each token hidden in turn, all others in sight; interval of 95 % by bootstrap over the texts"
        pseudo = math.exp(min(700.0, -math.fsum(log_probabilities) / sum(tokens)))
        only = (len(determined), 100 * sum(determined) / len(determined)) if determined else (None, None)
        share = 100 * hits.sum() / counts.sum()
        return cls(how, len(tokens), sum(tokens), share, 100 * Z_95 * float(spread), pseudo, *only)

    def __str__(self) -> str:
        found = (
            f"accuracy {self.accuracy:.1f} % ± {self.accuracy_interval:.1f}   pseudo-perplexity "
            f"{self.pseudo_perplexity:.4g}   ({self.texts:,} texts, {self.tokens:,} tokens)"
        )
        if self.determined_accuracy is None:
            return found
        return f"{found}   of the {self.determined:,} gaps that the rest determines {self.determined_accuracy:.1f} %"


@dataclass(frozen=True)
class LabelScores(BaseScores):
    """Of a classifier. Macro F1 is the mean over the labels that are there, rare and frequent ones alike; `labels` has
    for each its F1 and how often it is right."""

    items: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    macro_f1: float
    labels: dict[str, dict[str, float]]

    @classmethod
    def of(cls, told: Sequence[str], right: Sequence[str]) -> LabelScores:
        if len(told) != len(right):
            raise DataError(f"{len(told)} items but {len(right)} labels; there is one each")
        if not right:
            raise DataError("there is nothing to score: no item was given")
        both = list(zip(told, right, strict=True))
        seen, there, hit = Counter(told), Counter(right), Counter(a for a, b in both if a == b)
        table: dict[str, dict[str, float]] = {
            label: {"items": there[label], "f1": 100 * 2 * hit[label] / (seen[label] + there[label])}
            for label in sorted({*told, *right})
        }
        hits = hit.total()
        low, high = wilson_interval(hits, len(both))
        macro = sum(one["f1"] for one in table.values()) / len(table)
        how = (
            "the likeliest label of each; interval of 95 % by Wilson's formula; macro F1 over all labels given or told"
        )
        return cls(how, len(both), 100 * hits / len(both), 100 * low, 100 * high, macro, table)

    def __str__(self) -> str:
        return (
            f"accuracy {self.accuracy:.2f} % ({self.accuracy_low:.2f} to {self.accuracy_high:.2f})   macro F1 "
            f"{self.macro_f1:.2f} %   ({self.items:,} items, {len(self.labels)} labels)"
        )


def wilson_interval(hits: int, count: int) -> tuple[float, float]:
    """The interval of 95 % for a share, which is right for shares near 0 and 1 too."""
    share, square = hits / count, Z_95**2 / count
    middle = (share + square / 2) / (1 + square)
    half = Z_95 / (1 + square) * math.sqrt(share * (1 - share) / count + square / count / 4)
    return max(0.0, middle - half), min(1.0, middle + half)
