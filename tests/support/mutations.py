"""Bytes that nearly are what they were: damaged, cut, repeated, and mixed with what parsers stumble over."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

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


EXTREMES = (None, True, -1, 0, 1, 3, 2**24, 2**31, 2**32, 2**63, 2**64, -0.5, 1e-300, 1e300, float("nan"))
OTHERS = (*EXTREMES, "", "x", "relu", "\ud800", "\0", [], {}, [[]], {"x": 1}, [0] * 9)


def json_mutations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Every other one is changed as bytes; the others are JSON still, with keys and values changed."""
    chance, values = random.Random(seed), json.loads(data)
    for changed in mutations(data, seed, count):
        yield changed if chance.random() < 0.5 else json.dumps(change_json(values, chance)).encode()


def change_json(values: Any, chance: random.Random) -> Any:
    """One to three values removed, replaced or added, those near the root as often as those of a long list."""
    values = copy.deepcopy(values)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        place = values
        keys = keys_of(place)
        while keys:
            key = chance.choice(keys)
            if not keys_of(place[key]) or chance.random() < 0.3:
                break
            place, keys = place[key], keys_of(place[key])
        if not keys:
            break
        kind = chance.choice(("remove", "extreme", "other", "sibling", "add"))
        if kind == "remove":
            del place[key]
        elif kind == "add" and isinstance(place, dict):
            place[chance.choice(("x", "", f"{key}_"))] = chance.choice(OTHERS)
        else:
            own = {"extreme": EXTREMES, "sibling": [place[other] for other in chance.sample(keys, 1)]}.get(kind, OTHERS)
            place[key] = copy.deepcopy(chance.choice(own))
    return values


def keys_of(values: Any) -> list[Any]:
    return [*values] if isinstance(values, dict) else [*range(len(values))] if isinstance(values, list) else []


def tensor_mutations(data: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Of a file of safetensors: its header changed as JSON or as bytes, its length, or the numbers behind it."""
    chance = random.Random(seed)
    size = int.from_bytes(data[:8], "little")
    length, header, body = data[:8], data[8 : 8 + size], data[8 + size :]
    for changed in json_mutations(header, seed, count):
        kind, at = chance.choice(("header", "header", "length", "flip", "span", "cut")), chance.randrange(len(body))
        if kind == "header":
            yield len(changed).to_bytes(8, "little") + changed + body
        elif kind == "length":
            yield change(length, chance) + header + body
        elif kind == "flip":
            yield length + header + body[:at] + bytes([body[at] ^ 1 << chance.randrange(8)]) + body[at + 1 :]
        elif kind == "span":
            span = chance.choice((b"\0", b"\xff", b"\x7f")) * chance.choice((1, 4, 64, 4096))
            yield length + header + (body[:at] + span + body[at + len(span) :])[: len(body)]
        else:
            yield data[: chance.randrange(len(data))] + chance.choice((b"", b"\0" * 8, body[:100]))
