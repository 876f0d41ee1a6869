"""Text that no person would write takes time in proportion to its length."""

from __future__ import annotations

import time

import pytest

from glassformer.pipelines.documents.segments import LINE_END, SENTENCE_END, join_lines
from glassformer.pipelines.language.invariants import Invariants
from glassformer.pipelines.language.measures import find_measures, mentioned_units
from glassformer.pipelines.language.normalize import find_rewrites, is_all_caps, normalize
from glassformer.pipelines.language.numbers import find_number_words, find_numbers, possible_number_words
from glassformer.pipelines.text.sentence_translator import BREAK, repetition

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyz ")


def in_each_language(*searches):
    """Call the searches with a text in each of our languages."""
    return lambda text: [search(text, language) for search in searches for language in ("en", "de", "zh")]


def check_invariants(text):
    for languages in (("en", "de"), ("zh", "en")):
        invariants = Invariants(text, languages, alphabet=ALPHABET)
        invariants.faults(invariants.source)
        invariants.misses_number_word(invariants.source)


FUNCTIONS = {
    "normalize": (in_each_language(normalize, is_all_caps), " |\t|´|a´|\u00a0|No. |w/o |NEVER |dont "),
    "rewrites": (
        lambda text: [find_rewrites(text, *pair) for pair in (("en", "zh"), ("de", "en"), ("zh", "en"))],
        "half past |1 |Jan. |点|3-|zehn vor |下午三点到|3 pm to | ",
    ),
    "measures": (
        in_each_language(find_measures, mentioned_units), "5 |$|1.|km |5 000 |$5|5元|Jahr|5-|a|5万",
    ),
    "numbers": (in_each_language(find_numbers), ":00|1:00|1 000 "),
    "number words": (
        in_each_language(find_number_words, possible_number_words),
        "two hundred and |one |twenty-|zwanzig |hundertund|eine Million |十百",
    ),
    "invariants": (check_invariants, "😀 |a😀|forty 5 km |$5k |Éa |5万|1 million |THE 20 € "),
    "lines": (
        lambda text: [join_lines(text), *(pattern.sub(" ", text) for pattern in (LINE_END, SENTENCE_END, BREAK))],
        "\t| |.|\u00a0| \n|。\n|.\"|. ",
    ),
    "repetition": (lambda text: repetition([*text]), "ab"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "unit"), [(name, unit) for name, (_, units) in FUNCTIONS.items() for unit in units.split("|")]
)
def test_time_grows_with_the_length(name, unit):
    function, _ = FUNCTIONS[name]
    function("5 km")  # patterns are compiled once

    def seconds(length):
        begin = time.process_time()
        function((unit * length)[:length])
        return time.process_time() - begin

    assert seconds(20_000) < 40 * (seconds(2_000) + 0.01)  # ten times as long; the square would be a hundred
