"""`glassformer translate` without a model: texts and documents by the translators in the box."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from glassformer.cli.lines import arguments, decoded, open_input, open_output, read_raw
from glassformer.common.errors import ConfigError
from glassformer.common.version import __version__

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.decode import Search
    from glassformer.pipelines.language.glossary import Glossary
    from glassformer.pipelines.polyglot import Polyglot, Way
    from glassformer.pipelines.text import TextTranslator, TranslatedText

SAMPLE_BYTES = 2000
SAMPLE = 5  # documents of a folder that are looked at to tell their language


@dataclass(frozen=True)
class BoxOptions:
    """What is to become of the texts, as it was given."""

    to: str | None
    source: str | None
    glossary: Path | None
    search: Search
    device: str
    precision: str
    as_json: bool


def translate_by_box(
    words: list[str], asked: BoxOptions, input: Path | None, output: Path | None, out: Path | None, report: Report
) -> None:
    from glassformer.pipelines.documents.formats import is_document
    from glassformer.pipelines.language.glossary import Glossary
    from glassformer.pipelines.polyglot import Polyglot

    terms = None if asked.glossary is None else Glossary.load(asked.glossary)
    documents = [word for word in words if os.path.exists(word)]
    if documents and len(documents) < len(words):
        text = next(word for word in words if word not in documents)
        raise ConfigError(f"{documents[0]} is a file and {text!r:.60} is none; give either texts or files")
    for word in [] if documents else words:
        if len(word.split()) == 1 and is_document(Path(word)):  # else a name with a slip in it would be translated
            raise ConfigError(f"there is no file {word}; to translate that as a text: echo {word} | glassformer ...")
    if out is not None and not documents:
        raise ConfigError(f"--out {out} is for documents, and none is given; write a text's translation with --output")
    polyglot = Polyglot(asked.device, cast(Any, asked.precision))
    if documents:
        translate_documents([Path(word) for word in documents], asked, polyglot, terms, output, out, report)
        return
    if words:
        texts = [b"\n".join(arguments(word)).decode("utf-8", "replace") for word in words]
        chunks: Iterator[list[str]] = iter([texts])
    else:
        chunks = decoded(read_raw(open_input(input), str(input or "standard input")), report)
    waiting = not words and input is None and sys.stdin.isatty()
    if waiting:
        report.say("type lines to translate; Ctrl-D ends it")
    said: dict[str, None] = {}  # what there was to say of a line: once of many
    done = 0
    with open_output(output, report) as sink:
        for chunk in chunks:
            ways = told(chunk, asked)
            found = polyglot.details(chunk, ways, glossary=terms, search=asked.search)
            report.clear()
            for text, one in zip(chunk, found, strict=True):
                sink.write(row(text, one, asked.as_json, lines=not words).encode("utf-8", "replace"))
            sink.flush()
            for number, one in enumerate(found, done + 1):
                for note in one.notes:
                    if note.text not in said:
                        said[note.text] = None
                        where = f"line {number}: " if not words and note.kind != "pivot" else ""
                        report.say(f"{where}{note.text}")
            done += len(chunk)
            if not words and not waiting:
                report.show(f"translated: {done:,} lines")
    report.clear()


def told(texts: list[str], asked: BoxOptions) -> list[Way]:
    """From which language into which each text goes; what detects it is let go before a translator is loaded."""
    from glassformer.pipelines.language.language import identifier
    from glassformer.pipelines.polyglot import directions

    ways = directions(texts, asked.to, asked.source)
    identifier.cache_clear()
    return ways


def translate_documents(
    paths: list[Path],
    asked: BoxOptions,
    polyglot: Polyglot,
    terms: Glossary | None,
    output: Path | None,
    out: Path | None,
    report: Report,
) -> None:
    """Files, or a folder, all from one language into one."""
    from glassformer.cli.translate_files import check_files, translate_files

    check_files(paths, output, out)
    (way,) = told([opening(paths)], asked)
    source, target = way.pair
    if source == target:
        raise ConfigError(f"{paths[0]} holds nothing to translate into `{asked.to or target}`; is the language right?")
    for note in way.notes:
        report.say(note.text)
    translator = polyglot.translator(source, target, terms)
    if translator.pivot is not None:
        report.say(f"`{source}` to `{target}` goes by `{translator.pivot}`")
    told_of = {"from": source, "to": target, "beam": asked.search.beam, "version": __version__}
    told_of["glossary"] = sorted(terms.terms.items()) if terms is not None else []
    translate_files(paths, Searching(translator, asked.search), output, out, report, **told_of)


class Searching:
    """A translator of texts that looks for what was asked for."""

    def __init__(self, translator: TextTranslator, search: Search) -> None:
        self.translator, self.search = translator, search

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        return self.translator.translate(texts, search=self.search, progress=progress)


def opening(paths: list[Path]) -> str:
    """Enough of the documents to tell their language."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    files = [file for file in files if file.is_file()]
    texts = []
    for file in files[:SAMPLE]:
        with file.open("rb") as stream:
            texts.append(stream.read(SAMPLE_BYTES).decode("utf-8", "ignore"))
    return "\n".join(text[: SAMPLE_BYTES // max(1, len(texts))] for text in texts)


def row(text: str, one: TranslatedText, as_json: bool, lines: bool) -> str:
    """What a translation is printed as; that of a line is a line."""
    if as_json:
        notes = [note.text for note in one.notes]
        translations = [{"text": one.text, "finished": one.finished}]
        return json.dumps({"source": text, "translations": translations, "notes": notes}, ensure_ascii=False) + "\n"
    return (one.text.replace("\r", " ").replace("\n", " ") if lines else one.text) + "\n"
