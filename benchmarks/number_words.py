"""How often the translators of the box say another number than their source says in words.

python -m benchmarks.number_words [SEED]: 120 sentences in each of five directions, translated by the model alone, and
as texts.
"""

from __future__ import annotations

import random
import sys

from num2words import num2words

from glassformer.pipelines.language.numbers import find_numbers, possible_number_words, spell_chinese
from glassformer.pipelines.polyglot import polyglot

FRAMES = {
    "en": ["I have {} friends in Berlin.", "The train arrives in {} minutes.", "Only {} of them were broken.",
           "{} students passed the exam, and the rest failed.", "The table contains {} rows and {} columns.",
           "She turned {} last week.", "The battery lasts {} hours.", "Chapter {} explains how it works."],
    "de": ["Ich habe {} Freunde in Berlin.", "Der Zug kommt in {} Minuten an.", "Nur {} davon waren kaputt.",
           "Die Tabelle hat {} Zeilen und {} Spalten.", "Sie wurde letzte Woche {}."],
    "zh": ["我有{}个朋友。", "火车{}分钟后到达。", "这本书有{}页。", "表格有{}行{}列。", "他买了{}本书。"],
}  # fmt: skip
DIRECTIONS = [("en", "de"), ("en", "zh"), ("de", "en"), ("zh", "en"), ("de", "zh")]
COUNT = 120


def numbers_in(text: str, language: str) -> set[int]:
    digits = {int(value) for one in find_numbers(text, language) for value in one.values if value.isdecimal()}
    return digits | set(possible_number_words(text, language))


def main(seed: int) -> None:
    draw = random.Random(seed)
    for source, target in DIRECTIONS:
        cases = []
        for _ in range(COUNT):
            frame = draw.choice(FRAMES[source])
            values = [
                draw.randrange(*draw.choice([(13, 100), (100, 1000), (1000, 10_000)])) for _ in range(frame.count("{}"))
            ]
            words = [spell_chinese(value) if source == "zh" else num2words(value, lang=source) for value in values]
            text = frame.format(*words)
            cases.append((text[0].upper() + text[1:], values))
        by = polyglot("cpu", "auto").translator(source, target)
        alone = [text for text, _ in cases]
        for one_way in by.translators:
            alone = [one[0].text for one in one_way.translator.translate(alone, beam=4)]
        made = by.translate([text for text, _ in cases])
        wrong = [
            sum(not numbers_in(text, target).issuperset(values) for text, (_, values) in zip(texts, cases, strict=True))
            for texts in (alone, made)
        ]
        print(f"{source} to {target}: the model alone {wrong[0]} of {COUNT} wrong, texts {wrong[1]}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
