"""How much of a long everyday sentence its translation keeps: `python -m benchmarks.long_sentences SEED`.

Each sentence has 8 to 16 clauses, and each clause names a town. The figures are the towns that translations name: of
the sentence as a whole, and clause by clause where the model finds that likelier.
"""

from __future__ import annotations

import random
import sys

import glassformer as gf
from glassformer.pipelines.text import sentence_translator

TOWNS = {
    "Berlin": "柏林", "Paris": "巴黎", "London": "伦敦", "Madrid": "马德里", "Boston": "波士顿", "Chicago": "芝加哥",
    "Amsterdam": "阿姆斯特丹", "Oslo": "奥斯陆", "Stockholm": "斯德哥尔摩", "Budapest": "布达佩斯", "Dublin": "都柏林",
    "Helsinki": "赫尔辛基", "Toronto": "多伦多", "Hamburg": "汉堡", "Istanbul": "伊斯坦布尔", "Washington": "华盛顿",
}  # fmt: skip
CLAUSES = {
    "en": (
        "my sister lives in {}", "he works in {}", "our parents stayed in {}", "the doctor was born in {}",
        "she studied in {}", "we spent a whole winter in {}", "nobody wants to go to {}",
        "I bought a small house in {}", "he lost his passport in {}", "they got married in {}",
        "I have never been to {}", "the train goes to {}",
    ),
    "de": (
        "meine Schwester wohnt in {}", "er arbeitet in {}", "unsere Eltern blieben in {}", "sie hat in {} studiert",
        "der Arzt wurde in {} geboren", "wir haben einen Winter in {} verbracht", "niemand will nach {} fahren",
        "ich habe in {} ein Haus gekauft", "er hat in {} seinen Pass verloren", "ich war noch nie in {}",
    ),
    "zh": (
        "我妹妹住在{}", "他在{}工作", "我们的父母留在{}", "医生出生在{}", "她在{}学习", "没有人想去{}",
        "我在{}买了一座房子", "他在{}丢了护照", "他们在{}结婚", "我从来没有去过{}", "火车开往{}",
    ),
}  # fmt: skip
JOINTS = {"en": (", and ", ", but ", "; "), "de": (", und ", ", aber ", "; "), "zh": ("，", "，但是", "；")}
DIRECTIONS = (("en", "de"), ("de", "en"), ("en", "zh"), ("zh", "en"))


def draw_sentence(rng: random.Random, language: str) -> tuple[str, list[str]]:
    """A sentence, and the towns in it."""
    towns = rng.sample(sorted(TOWNS), rng.randint(8, 16))
    text = ""
    for town in towns:
        clause = rng.choice(CLAUSES[language]).format(TOWNS[town] if language == "zh" else town)
        text += (rng.choice(JOINTS[language]) if text else "") + clause
    return text[0].upper() + text[1:] + ("。" if language == "zh" else "."), towns


def count_towns(translations: list[str], towns: list[list[str]], target: str) -> int:
    return sum(
        (TOWNS[town] if target == "zh" else town) in text
        for text, some in zip(translations, towns, strict=True)
        for town in some
    )


def main(seed: int, count: int = 60) -> None:
    long = sentence_translator.LONG
    for source, target in DIRECTIONS:
        rng = random.Random(f"{seed} {source} {target}")
        sentences, towns = (list(x) for x in zip(*(draw_sentence(rng, source) for _ in range(count)), strict=True))
        translator = gf.TextTranslator(
            gf.Translator.load(f"en-{'zh' if 'zh' in (source, target) else 'de'}", to=target)
        )
        counts = {}
        for name, least in (("as a whole", 10**6), ("as texts", long)):
            sentence_translator.LONG = least
            counts[name] = count_towns(translator.translate(sentences), towns, target)
        whole = sum(map(len, towns))
        print(f"{source}-{target}: of {whole} towns", ", ".join(f"{n} {name}" for name, n in counts.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]))
