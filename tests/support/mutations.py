"""Bytes that nearly are what they were: damaged, cut, repeated, and mixed with what parsers stumble over."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

TOKEN, NUMBER = re.compile(rb"\w+|\s+|[^\w\s]+"), re.compile(rb"\d+")
NUMBERS = [*b"-1 0 255 2147483648 18446744073709551616 1e999 NaN".split(), b"9" * 400, b"9" * 5000]
ODDITIES = [
    *b"<![ <!-- --> <? </ /> < > & &# { } [ ]( ' \" \\ ` ``` $$ * _ | # %% %s {{ }} : , ; =".split(b" "),
    *"\ufeff \u2028 \u202e \xa0 \x85 \U000e0041 é e\u0301 ﬃ ß İ ١٢٣ ² 漢字 👩\u200d👧".encode().split(b" "),
    *(b"\x00", b"\xff\xfe", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xe4", b"\xed\xa0\x80"),  # not UTF-8, or zero
    *(b"\r", b"\n", b"\r\n\r\n", b"\n\n", b"\t", b" ", b"\x0b\x0c\x1c"),
]


def mutations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Each is `data` after one to five changes; the same seed gives the same."""
    chance = random.Random(seed)
    for _ in range(count):
        changed = data
        for _ in range(chance.choice((1, 1, 2, 3, 5))):
            changed = change(changed, chance)
        yield changed


def change(data: bytes, chance: random.Random) -> bytes:
    at, start = chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)
    stop = start + chance.choice((1, 2, 5, 20, 100))
    before, span, after = data[:start], data[start:stop], data[stop:]
    kind = chance.choice(("flip", "remove", "cut", "repeat", "copy", "swap", "number", "insert", "insert"))
    if kind == "flip":
        return before + bytes(byte ^ 1 << chance.randrange(8) for byte in span[:1]) + span[1:] + after
    if kind == "remove":
        return before + after
    if kind == "cut":
        return before
    if kind == "repeat":
        return before + span * chance.choice((2, 3, 10, 100, 2000 // len(span or b" "))) + after
    if kind == "copy":
        return data[:at] + span + data[at:]
    if kind == "swap":
        tokens = TOKEN.findall(data) or [b""]
        i, k = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        tokens[i], tokens[k] = tokens[k], tokens[i]
        return b"".join(tokens)
    if kind == "number" and (numbers := [*NUMBER.finditer(data)]):
        one = chance.choice(numbers)
        return data[: one.start()] + chance.choice(NUMBERS) + data[one.end() :]
    return before + chance.choice(ODDITIES) * chance.choice((1, 1, 1, 2, 50, 1000)) + span + after
