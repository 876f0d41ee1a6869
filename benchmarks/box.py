"""A whole translator, text to text, beside CTranslate2 with the same weights, tokenizer and beam, both in int8.

At each level of instructions that the machine can be held to, each contestant is a process of its own, held to that
level by its environment, and sleeps while the other runs. Both translate all texts, in batches as large as each likes
best, and then some of them one at a time. CTranslate2 ends a beam search once as many targets as beams are done; so we
end ours by the rule of Hugging Face, which is like it, unless told otherwise.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from benchmarks.decode import asked, ctranslate2_engine
from glassformer.common.errors import DataError, GlassformerError
from glassformer.data.readers import read_lines
from glassformer.decode.kernels import SWITCH, NoKernels, supported_levels
from glassformer.decode.search import Search, Stopping
from glassformer.pipelines.translator import Translator

US, THEM = "glassformer", "ctranslate2"
ALONE = 100  # texts that are also translated one at a time
BATCHES = (16, 32, 64)  # sentences that CTranslate2 may like best
TRIED = 128  # sentences to find that out with
LONGEST = 256  # tokens of a translation, as far as CTranslate2 is told

# What holds CTranslate2 to a level: its own kernels, and the libraries that multiply matrices for it.
HELD = {
    "amx": {"CT2_FORCE_CPU_ISA": "AVX512"},
    "vnni": {
        "CT2_FORCE_CPU_ISA": "AVX512",
        "MKL_ENABLE_INSTRUCTIONS": "AVX512_E1",
        "ONEDNN_MAX_CPU_ISA": "AVX512_CORE_VNNI",
    },
    "avxvnni": {
        "CT2_FORCE_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2_E1",
        "ONEDNN_MAX_CPU_ISA": "AVX2_VNNI",
    },
    "avx2": {"CT2_FORCE_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"},
    "neon": {},
}

SAMPLE = (
    "Where is the nearest station?",
    "I would like a cup of coffee, please.",
    "She has lived in Berlin for more than ten years.",
    "If it rains tomorrow, we will stay at home and read.",
    "Select the check box next to each file that you want to delete, and then select **Delete**.",
    "To install the package, run `pip install glassformer` in a terminal.",
    "The following table lists the properties that are available for each resource.",
    "You can use the [REST API](https://example.com/api) to create, update or remove an account.",
    "This error occurs when the server cannot be reached or the request takes too long.",
    "For more information, see the documentation of the `translate` command.",
)


@dataclass(frozen=True)
class Figure:
    """What one contestant did at one level."""

    level: str
    name: str
    sentences: float  # per second, all texts at once
    latency: float  # median seconds of one text alone


@dataclass(frozen=True)
class Comparison:
    """Ours to theirs at one level: above 1 we are faster."""

    level: str
    ours: Figure
    theirs: Figure
    speed: float
    latency: float
    equal: float  # share of texts with the same translation


def texts_of(folder: Path | None, language: str) -> list[str]:
    """The sources of a test set: test.en in `folder`, compressed or not; without a folder a few of our own."""
    if folder is None:
        return list(SAMPLE)
    for end in ("", ".xz", ".gz"):
        if (file := folder / f"test.{language}{end}").is_file():
            return list(read_lines(file))
    raise DataError(f"{folder} holds no test.{language}, test.{language}.xz or test.{language}.gz to translate")


def levels() -> list[str]:
    """What this machine can be held to, the most first."""
    try:
        return [level.name for level in supported_levels()]
    except NoKernels as reason:
        raise GlassformerError(f"there is nothing to hold this machine to: {reason}") from None


def loaded(model: str, to: str | None) -> Translator:
    return Translator.load(model, precision="int8", to=to)


def ours(model: str, to: str | None, search: Search) -> Callable[[Sequence[str]], list[str]]:
    translator = loaded(model, to)
    return lambda texts: [best[0].text if best else "" for best in translator.translate(texts, search=search)]


def theirs(model: str, to: str | None, beam: int, sample: Sequence[str]) -> Callable[[Sequence[str]], list[str]]:
    translator = loaded(model, to)
    engine, tokenizer = ctranslate2_engine(translator.model, "int8"), translator.tokenizer

    def translated(texts: Sequence[str], batch: int) -> list[str]:
        words = [[f"t{id}" for id in ids] for ids in tokenizer.encode_source(texts)]
        found = engine.translate_batch(words, beam_size=beam, max_batch_size=batch, max_decoding_length=LONGEST)
        ids = [[int(word[1:]) for word in one.hypotheses[0] if word.startswith("t")] for one in found]
        return tokenizer.decode_target(ids)

    def spent(batch: int) -> float:
        begin = time.perf_counter()
        translated(sample, batch)
        return time.perf_counter() - begin

    translated(sample[:8], BATCHES[0])
    best = min(BATCHES, key=spent)
    return lambda texts: translated(texts, best)


def short_enough(model: str, to: str | None, texts: Sequence[str]) -> list[str]:
    """Texts that are translated as a whole: what a translator cuts, the other does not cut as we do."""
    translator = loaded(model, to)
    split = translator.split(texts, translator.max_source_length())
    return [text for text, parts in zip(texts, split, strict=True) if len(parts) == 1]


def work(who: str, model: str, to: str, beam: str, stopping: str, file: str) -> None:
    """A worker: for each line `all` or `one`, translate and say how long it took, and what came out."""
    texts: list[str] = json.loads(Path(file).read_text(encoding="utf-8"))
    some = texts[:: max(1, len(texts) // ALONE)]
    target = to or None
    search = Search(beam=int(beam), stopping=cast(Stopping, stopping))
    run = ours(model, target, search) if who == US else theirs(model, target, search.beam, some[:TRIED])
    run(some[:8])
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, outputs = [], []
        for part in [texts] if line.strip() == "all" else [[text] for text in some]:
            begin = time.perf_counter()
            outputs += run(part)
            seconds.append(time.perf_counter() - begin)
        print(json.dumps({"seconds": seconds, "outputs": outputs}), flush=True)


def compared(
    model: str,
    texts: Sequence[str],
    level: str,
    beam: int,
    rounds: int,
    to: str | None = None,
    stopping: Stopping = "huggingface",
) -> Comparison:
    """Both contestants held to one level, in turn."""
    if find_spec("ctranslate2") is None:
        raise GlassformerError("the benchmark runs CTranslate2 beside us: pip install ctranslate2")
    workers: dict[str, subprocess.Popen[str]] = {}
    totals: dict[str, list[float]] = {US: [], THEM: []}
    single: dict[str, list[float]] = {US: [], THEM: []}
    outputs: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "texts.json"
        file.write_text(json.dumps(list(texts)), encoding="utf-8")
        try:
            for who, held in ((US, {SWITCH: level}), (THEM, HELD[level])):
                command = [sys.executable, "-W", "ignore", "-m", "benchmarks.box", who, model, to or ""]
                workers[who] = subprocess.Popen(
                    [*command, str(beam), stopping, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    text=True, env=os.environ | held,
                )  # fmt: skip
                stdout = workers[who].stdout
                if stdout is None or stdout.readline().strip() != "ready":
                    raise GlassformerError(f"{who} did not start at level {level}; see its message above")
            for _ in range(rounds):
                for who, worker in workers.items():
                    single[who].append(statistics.median(asked(worker, "one")["seconds"]))
                for who, worker in workers.items():
                    whole = asked(worker, "all")
                    totals[who].append(sum(whole["seconds"]))
                    outputs[who] = whole["outputs"]
        finally:
            for worker in workers.values():
                worker.communicate()
    figures = {
        who: Figure(level, who, len(texts) / statistics.median(totals[who]), statistics.median(single[who]))
        for who in (US, THEM)
    }
    we, they = figures[US], figures[THEM]
    same = sum(a == b for a, b in zip(outputs[US], outputs[THEM], strict=True)) / len(texts)
    return Comparison(level, we, they, we.sentences / they.sentences, they.latency / we.latency, same)


if __name__ == "__main__":
    work(*sys.argv[1:7])
