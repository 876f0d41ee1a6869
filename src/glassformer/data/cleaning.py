"""Cleaning a corpus of pairs, or of text in one language: rules leave out what teaches something wrong.

Each rule says of one pair whether it goes. What each removes is counted, with examples. The work is done in chunks: a
stopped run goes on behind the last one that is written.
"""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import lzma
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

from glassformer.common.errors import ConfigError, DataError, check_choice, check_names
from glassformer.common.files import read_json, write_text
from glassformer.common.strings import HAN, KANA_HANGUL
from glassformer.data.corpus import Corpus, Pair
from glassformer.data.lexical import Array, LexicalModel, learn
from glassformer.data.preparation import corpus_state, file_state, map_in_order
from glassformer.data.readers import read_lines, read_pairs, zstd

VERSION = 1
CHUNK = 20_000
SAMPLE = 60_000  # pairs that are looked at before the first is judged
REPORT, HASHES = "report.json", "hashes.partial"
WIDE = 3  # letters that one character of Chinese, Japanese or Korean stands for
SLACK = 15  # letters the longer side may have beyond the ratio, since short texts vary more
FAR = 10.0  # by how much another language must be likelier, in the library's logarithms
NEIGHBOURS = (  # languages that a side may be in by mistake
    "en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "pl", "cs", "hu", "tr", "el", "ru", "uk", "ar", "ja",
    "ko", "zh", "ca", "ro", "fi", "sk", "sl", "lt", "lv", "et", "bg", "hr",
)  # fmt: skip
LOOKED_AT = 50  # words of a text whose language is in doubt
COMMON = 300  # words of a language that show it
SURE = 60  # of them, as long as part of a side may be in another
GRAM = 8  # words in a row that are looked for in held-out text
FEW = 4  # words of a text that says something of its own
NOISE = 0.9  # the share of wrongly paired sentences that lies below a threshold of alignment, at most

_DROPPED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u200b\ufeff]")
_WORD = re.compile(rf"[{HAN}]|\d+|[^\W\d_{HAN}]+")
_WIDE = re.compile(f"[{HAN}{KANA_HANGUL}]")
_BROKEN = re.compile("\ufffd|Ã[\u0080-\u00bf¤¶¼Ÿ„–œ]|â€[œ\u009d\u009c™“”¦\u0093\u0094\u0099]")
_DIGIT = re.compile(r"\d")
_NUMBER = re.compile(r"(?<!\d)\d{1,3}(?:[ .,'’]\d{3})+(?!\d)|(?<![.,:])\d+[.,:]\d+(?![.,:]?\d)|\d+")
_IDLE = re.compile(r"&#\w+;|[.,:]00(?!\d)|(?<=[.,:][1-9])0(?!\d)")  # of numbers: 9:00, 1.50
_SCALE = re.compile(r"(?i)\b(?:thousand|million|billion|trillion|tausend|milli|mio\b|mrd\b|bio\b)|\d[km]\b|[千万亿]")
_SPELT = re.compile(
    r"(?i)hundred|thousand|(?:twen|thir|for|fif|six|seven|eigh|nine)t(?:y|ie)|dozen|\bhalf|"
    r"hundert|tausend|[zß]ig(?:st|er|\b)|dutzend|\bhalb|[一二三四五六七八九十百千万亿]"
)
_MARKUP = re.compile(
    r"</?[A-Za-z][\w.-]*(?=[\s/>])|%(?:\d+\$)?[sdifu@](?![A-Za-z])|[$%]?\{\{?[\w.:$-]*\}\}?|\$\([\w.]+\)"
)
_MONEY = {
    "EUR": "€|EUR|euros?", "USD": r"(?:US)?\$|USD|(?:US-)?dollars?", "GBP": "£|GBP|pounds? sterling|pfund sterling",
    "JPY": "JPY|yen|日元", "CHF": "CHF|franken|francs?", "CNY": "CNY|RMB|yuan|人民币", "INR": "₹|INR|rupees?|rupien?",
}  # fmt: skip
_AMOUNTS = {
    unit: re.compile(rf"(?i)(?<!\w)(?:{forms}) ?\d|\d(?: ?(?:million|billion|mio\.?|mrd\.?))? ?(?:{forms})(?!\w)")
    for unit, forms in _MONEY.items()
}
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’“»«)\]]*$")
_CUT = re.compile(  # it ends at an abbreviation, an initial or an ordinal number
    r"(?<!\w)(?:\w|\d\d|[a-zäöü]{1,3}\. ?\w|bzw|ca|usw|etc|Nr|No|Dr|Prof|St|Mr|Mrs|Ms|Jr|Sr|vs|Chr|geb|gest|Jh|Mio|Mrd|"
    r"evtl|ggf|inkl|max|min|Abb|Bd|vgl|sog|lat|griech|engl|franz|ital|span|russ|dt|amerik|österr|[Hh]l|Inc|Ltd|Co|cf|al|"
    r"approx|Jan|Feb|Aug|Sept|Okt|Oct|Nov|Dez|Dec|Vol|Fig|pp|Gen|Col|Lt|Capt|Sgt|Rev|Gov|Sen)\.$"
)


@dataclass(frozen=True)
class Row:
    """A pair, or a text alone, and what the rules ask of it."""

    texts: tuple[str, ...]

    @cached_property
    def words(self) -> tuple[list[str], ...]:
        """In small letters, each run of digits a zero, and each Han character a word."""
        found = (_WORD.findall(text.casefold()) for text in self.texts)
        return tuple(["0" if word.isdecimal() else word for word in words] for words in found)

    @cached_property
    def keys(self) -> list[str]:
        """The same for texts that differ in capitals, marks and digits."""
        return [" ".join(words) or text for words, text in zip(self.words, self.texts, strict=True)]


@dataclass(frozen=True)
class CleanOptions:
    """What is cleaned, and how."""

    source: str  # language codes
    target: str | None = None  # none: text of one language
    rules: tuple[str, ...] = ()  # all but `sentence` if none
    max_ratio: float = 2.0  # of the sides' lengths, in letters
    min_characters: int = 1
    max_characters: int = 1000
    alignment: float = 0.05  # the share of pairs that the worst scores may cost
    held_out: tuple[str, ...] = ()  # files of text
    format: Literal["text", "tsv", "jsonl"] = "text"
    compress: Literal["none", "gz", "xz", "zst"] = "none"
    examples: int = 5

    def __post_init__(self) -> None:
        object.__setattr__(self, "rules", self.rules or tuple(name for name in RULES if name != "sentence"))
        check_names(self.rules, RULES)
        check_choice("format", self.format, ("text", "tsv", "jsonl"))
        check_choice("compress", self.compress, tuple(COMPRESS))
        if not (self.max_ratio >= 1 and 0 <= self.alignment < 1 and 1 <= self.min_characters <= self.max_characters):
            raise ConfigError(
                f"max_ratio={self.max_ratio} is at least 1, alignment={self.alignment} a share, "
                f"min_characters={self.min_characters} from 1 to max_characters={self.max_characters}"
            )

    @property
    def languages(self) -> tuple[str, ...]:
        return (self.source,) if self.target is None else (self.source, self.target)


def normalize(text: str) -> str:
    return " ".join(_DROPPED.sub("", unicodedata.normalize("NFC", text)).split())


def empty(row: Row, cleaner: Cleaner) -> bool:
    return not all(any(letter.isalnum() for letter in text) for text in row.texts)


def encoding(row: Row, cleaner: Cleaner) -> bool:
    """UTF-8 read as Latin-1, or characters lost."""
    return any(not text.isascii() and _BROKEN.search(text) for text in row.texts)


def length(row: Row, cleaner: Cleaner) -> bool:
    least, most = cleaner.options.min_characters, cleaner.options.max_characters
    return not all(least <= len(text) <= most for text in row.texts)


def ratio(row: Row, cleaner: Cleaner) -> bool:
    shorter, longer = sorted(len(text) + (WIDE - 1) * len(_WIDE.findall(text)) for text in row.texts)
    return longer + SLACK > cleaner.options.max_ratio * (shorter + SLACK)


def sentence(row: Row, cleaner: Cleaner) -> bool:
    """Does not begin and end as a sentence does, or ends at an abbreviation."""
    return any(
        text[:1].islower() or not _SENTENCE_END.search(text) or bool(_CUT.search(text[-20:])) for text in row.texts
    )


def copied(row: Row, cleaner: Cleaner) -> bool:
    """Nearly all words of the target are the source's; names and commands of a few words may be."""
    known = {*row.words[0], "0"}
    target = [word for word in row.words[1] if word != "0"]
    return len(target) >= FEW and sum(word in known for word in target) >= 0.9 * len(target)


def language(row: Row, cleaner: Cleaner) -> bool:
    """Some side is surely in another language: the library is asked where common words do not tell."""
    for side, (code, words) in enumerate(zip(cleaner.options.languages, row.words, strict=True)):
        seen = [sum(word in common for word in words) for common in cleaner.common]
        if seen and seen[side] > len(words) // 10 and seen[side] >= 3 * (sum(seen) - seen[side]):
            continue
        shared = {"0"}.union(*(others for other, others in enumerate(row.words) if other != side))  # names, code
        own = [word for word in words if word not in shared]
        if len(own) >= FEW:
            scores: dict[str, float] = dict(cleaner.identifier.rank(" ".join(own[:LOOKED_AT])))
            if max(scores.values()) - scores.get(code, np.inf) > FAR:
                return True
    return False


def numbers(row: Row, cleaner: Cleaner) -> bool:
    source, target = (digits(text) for text in row.texts)
    if source == target:
        return False
    lost, added = list((source - target).elements()), list((target - source).elements())
    if "".join(lost) == "".join(added):  # with other marks
        return False
    if any(map(_SCALE.search, row.texts)) and sorted(n.rstrip("0") for n in lost) == sorted(
        n.rstrip("0") for n in added
    ):
        return False
    both = zip(sorted(map(int, lost)), sorted(map(int, added)), strict=False)
    if len(lost) == len(added) and all(abs(one - other) in (0, 12, 120, 1200, 1900) for one, other in both):
        return False  # hours of the afternoon, and decades
    if not (lost and added) and _SPELT.search(row.texts[bool(lost)]):
        return False
    large = [n for n in lost + added if int(n) > 20 and not (n.endswith("0") and int(n) <= 100) and n != "1000"]
    return bool(large or (lost and added))  # a small one may be a word on the other side


def digits(text: str) -> Counter[str]:
    """Numbers without their marks and leading zeros."""
    if not _DIGIT.search(text):
        return Counter()
    found = (re.sub(r"\D", "", number).lstrip("0")[:18] for number in _NUMBER.findall(_IDLE.sub("", text)))
    return Counter(number if number.isascii() else str(int(number)) for number in found if number)


def currency(row: Row, cleaner: Cleaner) -> bool:
    if not any(_DIGIT.search(text) for text in row.texts):
        return False
    source, target = ({unit for unit, form in _AMOUNTS.items() if form.search(text)} for text in row.texts)
    return bool(source and target and source != target)


def markup(row: Row, cleaner: Cleaner) -> bool:
    source, target = (Counter(_MARKUP.findall(text)) for text in row.texts)
    return source != target


def held_out(row: Row, cleaner: Cleaner) -> bool:
    """The line, or much of it, is in held-out text; a short one only if both sides are."""
    lines, grams = cleaner.kept_back
    if not lines:
        return False
    there = [key in lines for key in row.keys]
    if all(there) or any(is_there and len(words) >= FEW for is_there, words in zip(there, row.words, strict=True)):
        return True
    for words in row.words:
        tried = range(0, len(words) - GRAM + 1, 2)
        hits = sum(" ".join(words[start : start + GRAM]) in grams for start in tried)
        if hits and hits >= min(len(tried) / 2, 4):
            return True
    return False


Rule = Callable[[Row, "Cleaner"], bool]
RULES: dict[str, Rule | None] = {  # None: judged in a chunk, or over all
    "empty": empty, "encoding": encoding, "length": length, "sentence": sentence, "ratio": ratio, "copied": copied,
    "language": language, "numbers": numbers, "currency": currency, "markup": markup, "held-out": held_out,
    "alignment": None, "duplicate": None, "near-duplicate": None,
}  # fmt: skip
OF_PAIRS = {"ratio", "copied", "numbers", "currency", "markup", "alignment"}
DOUBLES = ("duplicate", "near-duplicate")


def hash_texts(texts: Sequence[str]) -> int:
    data = "\t".join(texts).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest())


@dataclass(frozen=True)
class Cleaner:
    """The rules with what they know; judges a chunk, here or in another process."""

    options: CleanOptions
    kept_back: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())  # lines, and rows of words
    common: tuple[frozenset[str], ...] = ()  # words that show the language of each side
    model: LexicalModel | None = None
    threshold: float = -np.inf

    @cached_property
    def rules(self) -> dict[str, Rule | None]:
        chosen = [name for name in RULES if name in self.options.rules]
        return {name: RULES[name] for name in chosen if self.options.target or name not in OF_PAIRS}

    @cached_property
    def identifier(self) -> Any:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier

        made = LanguageIdentifier.from_model_file(MODEL_FILE)
        made.set_languages([code for code in {*NEIGHBOURS, *self.options.languages} if code in made.labels])
        return made

    def sift(self, pairs: Sequence[Pair]) -> tuple[list[Row], dict[str, list[Row]], int]:
        """The rows that every rule on single rows keeps, what the others took, and how many were normalised."""
        rows, gone, changed = list[Row](), dict[str, list[Row]](), 0
        for pair in pairs:
            given = pair if self.options.target else pair[1:]
            row = Row(tuple(map(normalize, given)))
            changed += row.texts != given
            broken = next((name for name, rule in self.rules.items() if rule and rule(row, self)), None)
            (gone.setdefault(broken, []) if broken else rows).append(row)
        return rows, gone, changed

    def __call__(self, pairs: list[Pair]) -> tuple[list[Row], Array, dict[str, list[Row]], int, int]:
        """The rows kept and their hashes (exact, near), what was removed, how many were read and normalised."""
        rows, gone, changed = self.sift(pairs)
        if self.model is not None:
            bad = self.model.score([row.words for row in rows]) < self.threshold
            gone["alignment"] = [row for row, out in zip(rows, bad, strict=True) if out]
            rows = [row for row, out in zip(rows, bad, strict=True) if not out]
        hashes = [(hash_texts(row.texts), hash_texts(row.keys)) for row in rows]
        bare = {name: [Row(row.texts) for row in some] for name, some in gone.items()}  # without what rules have cached
        return [Row(row.texts) for row in rows], np.array(hashes, np.uint64).reshape(-1, 2), bare, len(pairs), changed


@dataclass
class HashSet:
    """64-bit hashes in sorted runs, each at least twice as long as the next: 8 bytes for each."""

    runs: list[Array] = field(default_factory=list)

    def unseen(self, hashes: Array) -> Array:
        """Which are not there, nor twice among the given."""
        new = np.zeros(len(hashes), bool)
        new[np.unique(hashes, return_index=True)[1]] = True
        for run in self.runs:
            new &= run[np.minimum(np.searchsorted(run, hashes), len(run) - 1)] != hashes
        return new

    def add(self, hashes: Array) -> None:
        if len(hashes):
            self.runs.append(np.sort(hashes))
        while len(self.runs) > 1 and len(self.runs[-2]) < 2 * len(self.runs[-1]):
            self.runs.append(np.sort(np.concatenate([self.runs.pop(), self.runs.pop()])))


def study(corpus: Corpus, options: CleanOptions, progress: Callable[[str], None]) -> tuple[Cleaner, str]:
    """A cleaner that knows the corpus by a sample spread over all of it, and a note on the rule `alignment`."""
    sample, stride = list[Pair](), 1
    for number, pair in enumerate(read_pairs(corpus)):
        if number % stride == 0:
            sample.append(pair)
            if len(sample) == 2 * SAMPLE:
                sample, stride = sample[::2], 2 * stride
        if number % CHUNK == 0:
            progress(f"first look: {number:,}")
    cheap = [rule for rule in options.rules if rule not in ("language", "held-out")] or ["empty"]
    rows = Cleaner(dataclasses.replace(options, rules=tuple(cheap))).sift(sample)[0]
    if "language" in options.rules:
        first = Cleaner(options, common=common_words(rows, SURE))
        rows = [row for row in rows if not language(row, first)]
    cleaner = Cleaner(options, read_held_out(options.held_out), common_words(rows, COMMON))
    if "alignment" not in cleaner.rules:
        return cleaner, ""
    progress("learning which words translate which")
    pairs = [row.words for row in rows]
    model, fresh = learn([pair for number, pair in enumerate(pairs) if number % 5]), pairs[::5]
    if model is None:
        return cleaner, f"{len(pairs):,} pairs are too few to learn from; the rule does nothing"
    wrong = [(one[0], other[1]) for one, other in pairwise(fresh)]
    limits = np.nanquantile(model.score(fresh), options.alignment), np.nanquantile(model.score(wrong), NOISE)
    threshold = float(np.fmin(*limits))
    return dataclasses.replace(cleaner, model=model, threshold=threshold), f"log-likelihood ratio below {threshold:.3f}"


def common_words(rows: Sequence[Row], most: int) -> tuple[frozenset[str], ...]:
    """The words in the most lines of each side that are not among those of another."""
    sides = zip(*(row.words for row in rows), strict=True)
    counts = [Counter(word for words in side for word in {*words} - {"0"}) for side in sides]
    often = [{word for word, _ in count.most_common(most)} for count in counts]
    return tuple(frozenset(own.difference(*(other for other in often if other is not own))) for own in often)


def read_held_out(files: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    lines, grams = set[str](), set[str]()
    for file in files:
        for line in read_lines(Path(file)):
            row = Row(tuple(normalize(text) for text in line.split("\t")))
            lines.update(key for key in row.keys if key)
            for words in row.words:
                grams.update(" ".join(words[start : start + GRAM]) for start in range(len(words) - GRAM + 1))
    return frozenset(lines), frozenset(grams)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gz": lambda data: gzip.compress(data, mtime=0),
    "xz": lambda data: lzma.compress(data, preset=3),
    "zst": lambda data: zstd().compress(data, codec="zstd", asbytes=True),
}


def render(rows: Sequence[Row], options: CleanOptions) -> dict[str, str]:
    """What is written of a chunk, by the ends of the files' names."""
    if options.format == "jsonl":
        names = ("src", "tgt") if options.target else ("text",)
        lines = (json.dumps(dict(zip(names, row.texts, strict=True)), ensure_ascii=False) for row in rows)
        return {"jsonl": "".join(f"{line}\n" for line in lines)}
    if options.format == "tsv":
        return {"tsv": "".join("\t".join(row.texts) + "\n" for row in rows)}
    return {code: "".join(f"{row.texts[i]}\n" for row in rows) for i, code in enumerate(options.languages)}


def clean(
    corpus: Corpus,
    folder: str | Path,
    options: CleanOptions,
    workers: int | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> dict[str, Any]:
    """Write `train.LANGUAGE` and the report into `folder`, and return the report. What was begun there is gone on with.

    The result is the same, to the byte, however often it was stopped and with any number of workers.
    """
    folder = Path(folder)
    described = [VERSION, corpus_state(corpus), dataclasses.asdict(options), [*map(file_state, options.held_out)]]
    fingerprint = hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    state = read_json(folder / REPORT, "remove the folder")
    if state is None and any(folder.glob("train.*")):
        raise DataError(f"{folder} holds files of the same names; name another folder")
    if state and state.get("fingerprint") != fingerprint:
        raise DataError(f"{folder} was made of other files or with other options; remove it, or name another folder")
    if state and state["finished"]:
        return state
    cleaner, note = study(corpus, options, progress)
    ending = "" if options.compress == "none" else f".{options.compress}"
    names = {part: f"train.{part}{ending}" for part in render([], options)}
    if state is None:
        state = {"fingerprint": fingerprint, "alignment": note, "read": 0, "kept": 0, "normalised": 0, "bad": 0}
        state |= {"finished": False, "rules": {name: {"removed": 0, "examples": []} for name in cleaner.rules}}
        state["bytes"] = dict.fromkeys((HASHES, *names.values()), 0)
        write_json(folder / REPORT, state)
    for name, size in state["bytes"].items():  # what was written behind the last whole chunk is written again
        with (folder / name).open("ab") as file:
            file.truncate(size)
    seen = {name: HashSet() for name in DOUBLES if name in cleaner.rules}
    for name, column in zip(DOUBLES, np.fromfile(folder / HASHES, np.uint64).reshape(-1, 2).T, strict=True):
        if name in seen:
            seen[name].add(column)
    bad = Counter[str]()
    pairs = islice(read_pairs(corpus, bad), state["read"], None)
    jobs = iter(lambda: list(islice(pairs, CHUNK)), [])
    for rows, hashes, gone, read, changed in map_in_order(cleaner, jobs, workers):
        for name, known in seen.items():
            new = known.unseen(hashes[:, DOUBLES.index(name)])
            gone[name] = [row for row, keep in zip(rows, new, strict=True) if not keep]
            rows, hashes = [row for row, keep in zip(rows, new, strict=True) if keep], hashes[new]
        for name, known in seen.items():
            known.add(hashes[:, DOUBLES.index(name)])
        for name, removed in gone.items():
            rule = state["rules"][name]
            rule["removed"] += len(removed)
            shown = {tuple(texts) for texts in rule["examples"]} | {row.texts for row in removed}
            rule["examples"] = [list(texts) for texts in sorted(shown, key=hash_texts)[: options.examples]]
        state["read"], state["normalised"] = state["read"] + read, state["normalised"] + changed
        state["kept"] += len(rows)
        packed = {
            names[part]: COMPRESS[options.compress](text.encode()) for part, text in render(rows, options).items()
        }
        for name, data in {HASHES: hashes.tobytes(), **packed}.items():
            with (folder / name).open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            state["bytes"][name] += len(data)
        write_json(folder / REPORT, state)
        progress(f"{state['read']:,} read  {state['kept']:,} kept")
    write_json(folder / REPORT, state | {"finished": True, "bad": bad["bad"]})
    (folder / HASHES).unlink()
    return state | {"finished": True, "bad": bad["bad"]}


def write_json(path: Path, values: dict[str, Any]) -> None:
    write_text(path, json.dumps(values, indent=1, ensure_ascii=False) + "\n")
