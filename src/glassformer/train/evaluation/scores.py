"""How good translations are: BLEU and chrF with their signatures, exact match, and how sure each figure is."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from glassformer.common.errors import ConfigError, DataError, did_you_mean, one_of
from glassformer.common.strings import strings

RESAMPLES = 1000


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

    outputs, references = strings(outputs, "outputs"), strings(references, "references")
    if len(outputs) != len(references):
        raise DataError(f"{len(outputs)} translations but {len(references)} references; they must pair line by line")
    if not outputs:
        raise DataError("there is nothing to score: the file is empty")
    bleu = plain(bleu_by(tokenize, lowercase))
    chrf = plain(CHRF())
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
        exact_interval=100 * 1.96 * (hits * (1 - hits) / len(outputs)) ** 0.5,
    )


def bleu_by(tokenize: str, lowercase: bool = False) -> Any:
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


def plain(metric: Any) -> Any:
    """Let a metric give plain floats: where some resamples score 0, sacrebleu fails to average its mixed numbers."""
    compute = metric._compute_score_from_stats

    def as_float(stats: Any) -> Any:
        found = compute(stats)
        found.score = float(found.score)
        return found

    metric._compute_score_from_stats = as_float
    return metric
