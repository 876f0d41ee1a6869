"""A number measured with several seeds: its mean, the 95% interval of that mean, and how both are written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

# Student's t: how many standard errors reach to either side of the mean, by one less than the number of seeds. Beyond
# thirty the last is taken, which makes the interval a little wide.
STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Spread:
    """The values of one number, a seed each. Other seeds would give another mean; the interval says how far off.

    It is the usual one of Student: mean ± t · s / √n. Of one seed there is no spread to see: the value stands alone.
    """

    values: Sequence[float]

    @property
    def mean(self) -> float:
        return fmean(self.values)

    @property
    def half(self) -> float:
        """Half the width of the interval."""
        n = len(self.values)
        if n == 1 or len(set(self.values)) == 1:
            return 0.0
        if not all(map(math.isfinite, self.values)):
            return math.nan
        return STUDENT[min(n - 1, len(STUDENT)) - 1] * stdev(self.values) / math.sqrt(n)

    @property
    def low(self) -> float:
        return self.mean - self.half

    @property
    def high(self) -> float:
        return self.mean + self.half

    def __format__(self, spec: str) -> str:
        """As a float is formatted, with the interval beside it where it can be seen: 0.27 ± 0.03, 27 ± 3%.

        `max` or `min` before the format gives the largest or the smallest of the values, which has no interval.
        """
        for name, pick in (("max", max), ("min", min)):
            if spec.startswith(name):
                return format(pick(self.values), spec.removeprefix(name))
        mean, half = format(self.mean, spec).replace("nan", "NaN"), format(self.half, spec)
        if not math.isfinite(self.half) or float(half.rstrip("%").replace(",", "")) == 0:
            return mean
        return f"{mean.removesuffix('%')} ± {half}"


def format_number(value: float, digits: int = 4) -> str:
    """A number in few signs: 0.25, 2,000, 3.1·10⁻⁵."""
    if not math.isfinite(value):
        return "–" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if 1e-3 <= abs(rounded) < 1e7:
        decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
        text = f"{value:,.{decimals}f}"
    else:
        mantissa, exponent = f"{value:.{min(digits, 3) - 1}e}".split("e")
        text = f"{strip_zeros(mantissa)}·10{str(int(exponent)).translate(SUPERSCRIPTS)}".removeprefix("1·")
        return text.replace("-1·", "-").replace("-", "−")
    return strip_zeros(text).replace("-", "−")


def format_spread(spread: Spread) -> str:
    """A mean with half its interval, both to the same place: 0.274 ± 0.031."""
    mean, half = spread.mean, spread.half
    if not math.isfinite(half) or half == 0 or not math.isfinite(mean):
        return format_number(mean)
    if half < 1e-3 or abs(mean) >= 1e7 or half >= 1e5:
        return f"{format_number(mean)} ± {format_number(half, 2)}"
    decimals = max(0, 1 - math.floor(math.log10(half)))  # two digits of the interval are all that can be known
    return f"{mean:,.{decimals}f} ± {half:,.{decimals}f}".replace("-", "−")


def strip_zeros(text: str) -> str:
    """Without zeros that say nothing."""
    return text.rstrip("0").rstrip(".") if "." in text else text
