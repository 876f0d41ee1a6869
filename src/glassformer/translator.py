"""Sentence in, sentence out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch

from glassformer import bundle
from glassformer.decode import Hypothesis, generate
from glassformer.errors import ConfigError, InputError
from glassformer.model import EncoderDecoder

BATCH_TOKENS = 4096
STRIDE = 16  # a source counts as so many tokens, or the next multiple: each row costs a vocabulary of scores
GROWTH = 2  # a translation may be this many times as long as its source, and SLACK tokens more
SLACK = 20
SHORTEST = 8  # tokens; in fewer, not every single character can be spelt

# Where a text that is too long may be cut: after sentences, else after clauses, else between words.
CUTS = (
    re.compile(r"""(?<=[.!?…؟।])["'»”’)\]]*\s+|(?<=[。！？])[。！？”’」』）]*\s*|\n\s*"""),
    re.compile(r"(?<=[,;:،؛—–])\s+|(?<=[，；：、])\s*"),
    re.compile(r"\s+"),
)
WIDE_MARKS = "。！？，；：、"  # no space follows them, where one follows the mark they are translated to
UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]")


class Text(Protocol):
    """What a translator asks of a tokenizer; ids come with whatever marks the model's sources end with."""

    def encode_source(self, texts: Sequence[str]) -> list[list[int]]: ...

    def decode_target(self, batch: Iterable[Sequence[int]]) -> list[str]: ...

    def source_pieces(self, ids: Sequence[int]) -> list[str]: ...

    def target_pieces(self, ids: Sequence[int]) -> list[str]: ...


@dataclass(frozen=True)
class Translation:
    """A target, its score (the log-probability over length ** length_penalty) and its tokens.

    A text too long for the model is translated in `parts`. Its score is then the mean of theirs, each counted by the
    tokens of its source: the total log-probability cannot be told from scores that are divided by length.
    """

    text: str
    score: float
    tokens: list[str]
    parts: int = 1


@dataclass(frozen=True)
class Part:
    """A stretch of a text that the model can take; `spaced` if white space stood before it."""

    text: str
    ids: list[int]
    spaced: bool = False


class Translator:
    """A model with its tokenizer. `t("one sentence")` gives its translation; `t.translate` takes many.

    Nothing is kept from call to call but the tokenizer's memory of words, so threads may share a translator.
    """

    def __init__(self, model: EncoderDecoder, tokenizer: Text, device: str | torch.device = "cpu") -> None:
        self.device = pick_device(device)
        self.model, self.tokenizer = model.to(self.device).eval(), tokenizer

    @classmethod
    def load(cls, folder: str | Path, device: str | torch.device = "cpu") -> Translator:
        """A folder that `glassformer train` has made, or a local Hugging Face folder of a Marian model."""
        device, folder = pick_device(device), Path(folder)
        if not bundle.is_bundle(folder) and (folder / "config.json").is_file():
            from glassformer.pretrained.marian_text import load_marian

            return cls(*load_marian(folder), device)
        loaded = bundle.load(folder)
        return cls(loaded.model, loaded.tokenizer, device)

    def __call__(self, text: str) -> str:
        return self.translate([text])[0][0].text

    def translate(
        self,
        texts: Sequence[str],
        beam: int = 1,
        nbest: int = 1,
        length_penalty: float = 1.0,
        max_length: int | None = None,
        batch_tokens: int = BATCH_TOKENS,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[Translation]]:
        """The `nbest` best translations of each text, in the order given; an empty text stays empty.

        A text of more than `max_length` tokens (the model's own limit, if that is lower or none is given) is split at
        sentence ends, else at clauses, else at spaces, else anywhere; `progress` is told how many texts are done.
        """
        check_texts(texts)
        if not 1 <= nbest <= beam:
            raise ConfigError(f"nbest={nbest} must lie between 1 and beam={beam}; widen the beam")
        if batch_tokens < 1:
            raise ConfigError(f"batch_tokens={batch_tokens} must be at least 1")
        split = self.split(texts, self.limit(max_length))
        jobs = [(i, k) for i, parts in enumerate(split) for k in range(len(parts))]
        # Parts of like length share a batch, so that little of it is padding.
        jobs.sort(key=lambda job: -len(split[job[0]][job[1]].ids))
        written: list[list[list[Hypothesis]]] = [[[] for _ in parts] for parts in split]
        left = [len(parts) for parts in split]
        done = left.count(0)
        for batch in batches([len(split[i][k].ids) for i, k in jobs], batch_tokens // beam):
            rows = [jobs[n] for n in batch]
            best = self.write([split[i][k].ids for i, k in rows], beam, nbest, length_penalty)
            for (i, k), hypotheses in zip(rows, best, strict=True):
                written[i][k] = hypotheses
                left[i] -= 1
                done += left[i] == 0
            if progress is not None:
                progress(done)
        return [self.assemble(parts, found, nbest) for parts, found in zip(split, written, strict=True)]

    def limit(self, max_length: int | None = None) -> int:
        """The most source tokens translated at once."""
        if max_length is not None and max_length < SHORTEST:
            raise InputError(f"max_length={max_length} is too short to hold every character; give {SHORTEST} or more")
        own = self.model.config.max_length
        return own if max_length is None else min(max_length, own)

    def split(self, texts: Sequence[str], limit: int) -> list[list[Part]]:
        """Each text as parts of at most `limit` tokens: most often one, none for white space alone."""
        encode = self.tokenizer.encode_source
        found: list[list[Part]] = []
        for text, ids in zip(texts, encode(texts), strict=True):
            if not ids or not text.strip():
                found.append([])
            elif len(ids) <= limit:
                found.append([Part(text, ids)])
            else:
                found.append(cut(text, limit, encode))
        return found

    def write(self, sources: list[list[int]], beam: int, nbest: int, length_penalty: float) -> list[list[Hypothesis]]:
        """The best targets of one batch of sources."""
        width = max(map(len, sources))
        src = torch.tensor([ids + [0] * (width - len(ids)) for ids in sources])
        mask = torch.arange(width) < torch.tensor([[len(ids)] for ids in sources])
        return generate(
            self.model,
            src.to(self.device),
            mask.to(self.device),
            beam=beam,
            nbest=nbest,
            length_penalty=length_penalty,
            max_new_tokens=self.room(width),
        )

    def room(self, length: int) -> int:
        """The longest target tried for a source of `length` tokens; the start token needs a position too."""
        return min(GROWTH * counted(length) + SLACK, self.model.config.max_length - 1)

    def assemble(self, parts: list[Part], written: list[list[Hypothesis]], nbest: int) -> list[Translation]:
        """A text's translations from those of its parts, the best with the best, the second with the second."""
        if not parts:
            return [Translation("", 0.0, [])] * nbest
        found = []
        for ranked in zip(*written, strict=True):
            texts = self.tokenizer.decode_target([h.ids for h in ranked])
            text, weight = texts[0], sum(len(part.ids) for part in parts)
            for before, part, more in zip(parts, parts[1:], texts[1:], strict=False):
                text += seam(text, more, part.spaced or before.text[-1] in WIDE_MARKS) + more
            score = sum(h.score * len(part.ids) for h, part in zip(ranked, parts, strict=True)) / weight
            tokens = [piece for h in ranked for piece in self.tokenizer.target_pieces(h.ids)]
            found.append(Translation(text, ranked[0].score if len(parts) == 1 else score, tokens, len(parts)))
        return found


def check_texts(texts: Sequence[str]) -> None:
    if isinstance(texts, str | bytes):
        raise InputError("translate() takes a list of texts, not one string; write translate([text]), or call t(text)")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"texts[{i}] is a {type(text).__name__}; every text must be a string")


def counted(length: int) -> int:
    return -(-length // STRIDE) * STRIDE


def batches(lengths: list[int], tokens: int) -> list[list[int]]:
    """The indices of falling `lengths` in batches of at most `tokens`.

    All lengths of a batch count alike, so all have the same room for their targets, whatever else is translated.
    """
    found: list[list[int]] = []
    for i, length in enumerate(lengths):
        width = counted(length)
        if found and counted(lengths[found[-1][0]]) == width and (len(found[-1]) + 1) * width <= tokens:
            found[-1].append(i)
        else:
            found.append([i])
    return found


Encode = Callable[[Sequence[str]], list[list[int]]]


def cut(text: str, limit: int, encode: Encode, level: int = 0, spaced: bool = False) -> list[Part]:
    """`text` as few parts of at most `limit` tokens, cut by CUTS[level] and, where that is not enough, the next."""
    if level == len(CUTS):
        return chop(text, limit, encode, spaced)
    pieces: list[tuple[str, bool]] = []
    start = 0
    for end in [*(mark.end() for mark in CUTS[level].finditer(text)), len(text)]:
        raw, start = text[start:end], end
        if raw.strip():
            pieces.append((raw.strip(), spaced or raw[0].isspace()))
            spaced = False
        spaced = spaced or raw[-1:].isspace()
    packs: list[list[tuple[str, bool]]] = []
    room = -1
    for piece, ids in zip(pieces, encode([text for text, _ in pieces]), strict=True):
        if len(ids) <= room:
            packs[-1].append(piece)
            room -= len(ids)
        else:
            packs.append([piece])
            room = limit - len(ids)
    found: list[Part] = []
    packs.reverse()
    while packs:
        pack = packs.pop()
        (ids,) = encode([join(pack)])
        if len(ids) <= limit:
            found.append(Part(join(pack), ids, pack[0][1]))
        elif len(pack) > 1:  # together they make more tokens than one by one
            packs += [pack[len(pack) // 2 :], pack[: len(pack) // 2]]
        else:
            found += cut(pack[0][0], limit, encode, level + 1, pack[0][1])
    return found


def join(pieces: list[tuple[str, bool]]) -> str:
    return "".join(" " + text if i and spaced else text for i, (text, spaced) in enumerate(pieces))


def chop(text: str, limit: int, encode: Encode, spaced: bool) -> list[Part]:
    """A text too long and without any place to cut it, in pieces of even width."""
    width = max(1, min(limit - 2, len(text) // 2))  # most often a token a letter, one for the start, one for the end
    pieces = [text[i : i + width] for i in range(0, len(text), width)]
    found: list[Part] = []
    for i, (piece, ids) in enumerate(zip(pieces, encode(pieces), strict=True)):
        gap = spaced and i == 0
        if len(ids) <= limit or len(piece) == 1:
            found.append(Part(piece, ids[:limit], gap))
        else:
            found += chop(piece, limit, encode, gap)
    return found


def seam(left: str, right: str, spaced: bool) -> str:
    """What goes between two translated parts: nothing in scripts that are written without spaces."""
    if not left or not right or UNSPACED.match(left[-1]) or UNSPACED.match(right[0]):
        return ""
    return " " if spaced else ""


def pick_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        picked = torch.device(device)
        torch.empty(0, device=picked)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {str(device)!r} cannot be used ({reason}); try cpu, or auto") from None
    return picked
