"""The demo as a newcomer meets it: how long it trains, how it does on unseen pairs, and on what people type first."""

from __future__ import annotations

import io
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from glassformer.data import read_pairs
from glassformer.data.corpus import Pair
from glassformer.pipelines.translator import Translator
from glassformer.train import Report, read_recipe, train

# The first seven are what people were seen to try. The rest was drawn at random, once, when the recipe stood.
FIRST_TRIES = dict(
    line.split(" = ")
    for line in """
21 = einundzwanzig
1999 = eintausendneunhundertneunundneunzig
2021 = zweitausendeinundzwanzig
$5 = 5 $
March 3 2021 = 3. März 2021
twenty one = einundzwanzig
twenty-one = einundzwanzig
17 = siebzehn
72 = zweiundsiebzig
97 = siebenundneunzig
8 = acht
361 = dreihunderteinundsechzig
220 = zweihundertzwanzig
607 = sechshundertsieben
1920 = eintausendneunhundertzwanzig
1967 = eintausendneunhundertsiebenundsechzig
1777 = eintausendsiebenhundertsiebenundsiebzig
8561 = achttausendfünfhunderteinundsechzig
3819 = dreitausendachthundertneunzehn
108418 = einhundertachttausendvierhundertachtzehn
512,554 = fünfhundertzwölftausendfünfhundertvierundfünfzig
$1 = 1 $
$50 = 50 $
€56 = 56 €
£623 = 623 £
$781 = 781 $
$1034 = 1.034 $
$73.97 = 73,97 $
November 23 1973 = 23. November 1973
September 25 2014 = 25. September 2014
December 8 2021 = 8. Dezember 2021
July 11 1970 = 11. Juli 1970
January 13 2003 = 13. Januar 2003
march 4 1959 = 4. März 1959
november 14 2030 = 14. November 2030
sixty one = einundsechzig
twenty four = vierundzwanzig
twenty two = zweiundzwanzig
sixty nine = neunundsechzig
five hundred and thirty two = fünfhundertzweiunddreißig
six hundred forty = sechshundertvierzig
five hundred and forty eight = fünfhundertachtundvierzig
six hundred sixty six = sechshundertsechsundsechzig
four thousand seven hundred and eighty two = viertausendsiebenhundertzweiundachtzig
eight thousand five hundred and thirty = achttausendfünfhundertdreißig
one thousand three hundred fifty two = eintausenddreihundertzweiundfünfzig
nineteen seventy one = neunzehnhunderteinundsiebzig
Thirty-three = dreiunddreißig
""".strip().splitlines()
)


@dataclass(frozen=True)
class Trained:
    """One training of the demo, and how it did."""

    seed: int
    seconds: float  # from nothing to the finished folder
    exact: float  # share of the test pairs that come out to the letter
    wrong: dict[str, str]  # first tries that do not, and what came out


def demos(
    seeds: Sequence[int], changes: Sequence[str] = (), report: Callable[[str], None] = lambda text: None
) -> list[Trained]:
    """Train the demo once for each seed, on the CPU, and try it."""
    found = []
    for seed in seeds:
        report(f"training with seed {seed}")
        recipe = read_recipe("numerals", (*changes, f"train.seed={seed}"))
        with tempfile.TemporaryDirectory(prefix="glassformer-demo-") as place:
            begin = time.monotonic()
            folder = train(recipe, Path(place) / "demo", device="cpu", report=Report(io.StringIO()))
            seconds = time.monotonic() - begin
            translator = Translator.load(folder)
        unseen = list(chain.from_iterable(map(read_pairs, recipe.data.test)))
        exact = 1 - len(mistakes(translator, unseen)) / len(unseen)
        found.append(Trained(seed, seconds, exact, mistakes(translator, FIRST_TRIES.items())))
    return found


def mistakes(translator: Translator, pairs: Iterable[Pair]) -> dict[str, str]:
    """The sources that are not translated to the letter, and what comes out."""
    sources, answers = zip(*pairs, strict=True)
    outputs = [best.text for (best,) in translator.translate(sources)]
    return {s: output for s, output, answer in zip(sources, outputs, answers, strict=True) if output != answer}
