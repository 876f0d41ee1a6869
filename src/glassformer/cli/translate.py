"""`glassformer translate`: sentences, lines and documents in, translations out, by a model or by the box."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import (
    Adapter,
    Device,
    LengthPenalty,
    Offline,
    Precision,
    RepetitionPenalty,
    Revision,
    Rule,
    Seed,
    Temperature,
    TopK,
    TopP,
    arguments,
    decoded,
    find_model,
    looks_like_hub,
    open_input,
    open_output,
    read_raw,
    row,
    sampling_options,
    to_json,
)
from glassformer.common.errors import ConfigError, DataError
from glassformer.common.version import __version__

if TYPE_CHECKING:
    from glassformer.common.report import Report
    from glassformer.decode import Search
    from glassformer.pipelines.documents import FolderResult
    from glassformer.pipelines.documents.segments import DocumentStats, SupportsTranslate
    from glassformer.pipelines.language.invariants import Glossary
    from glassformer.pipelines.polyglot import LanguagePair, Polyglot
    from glassformer.pipelines.text import TextTranslator, TranslatedText

BEAM = 4  # of the box
COUNTED = 10_000  # words that training never met; of more, the rest is not counted
SAMPLE_BYTES = 2000
SAMPLE = 5  # documents of a folder that are looked at to tell their language
LISTED = 10  # files that failed, or were left out, listed by name


def translate(
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[MODEL] [TEXT]...",
            help="Texts, or documents, or a folder of them; without any, standard input. Before them, if you like, a "
            "model: a folder of glassformer train, a Marian folder, of the box en-de, de-en, en-zh, zh-en, or a name "
            "of the hub: Helsinki-NLP/opus-mt-en-de.",
        ),
    ] = None,
    to: Annotated[
        str | None, Option(help="Language to translate into: en, de or zh; English if none, from another.")
    ] = None,
    source: Annotated[str | None, Option("--from", help="Language of the texts; detected if none.")] = None,
    glossary: Annotated[
        Path | None, Option(help="Terms to come out as written: lines of source term, TAB, target term.")
    ] = None,
    input: Annotated[Path | None, Option(help="Read lines of this file (gzip and xz too).")] = None,
    output: Annotated[
        Path | None, Option(help="Write to this file, which appears when all is done, not to standard output.")
    ] = None,
    out: Annotated[Path | None, Option(help="Write the documents to this folder.")] = None,
    beam: Annotated[int | None, Option(help="Beam width; 1 is greedy. 4 if none for the box, 1 for a model.")] = None,
    nbest: Annotated[int, Option(help="Translations for each line, at most as many as the beam.")] = 1,
    length_penalty: LengthPenalty = 1.0,
    length_rule: Rule = "average",
    prefix: Annotated[str, Option(help="Begin every translation with this text.")] = "",
    repetition_penalty: RepetitionPenalty = 1.0,
    no_repeat_ngram: Annotated[
        int, Option(help="Let no so many tokens in a row come twice, unless --prefix does; 0: they may.")
    ] = 0,
    sample: Annotated[bool, Option("--sample", help="Draw translations at random.")] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    max_length: Annotated[
        int | None, Option(help="Tokens read at once; a longer line is split. The model's limit if none.")
    ] = None,
    batch_tokens: Annotated[
        int | None,
        Option(help="Source tokens, beams counted, in a batch: 4,096, on a GPU more, as its memory allows."),
    ] = None,
    scores: Annotated[bool, Option("--scores", help="Put each score before its text.")] = False,
    alignments: Annotated[
        bool, Option("--alignments", help="After each text, its tokens' partners in the source.")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    adapter: Adapter = None,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Translate sentences, documents, or a file or standard input line by line.

    glassformer translate "Where is the nearest station?" --to de

    glassformer translate README.md --to zh --output README.zh.md

    Of a file given by --input and of standard input every line gives one line, in order, and an empty line stays empty.
    With a model and --nbest N above 1 a line gives N lines, or as many as are possible: line number, rank and text with
    a TAB between. --scores puts the score and a TAB before the text. --alignments puts a TAB and pairs SOURCE-TARGET of
    token numbers, from 0, after it. --json gives one object a line: {"source": ..., "translations": [{"text": ...,
    "score": ..., "finished": ...}]}; with --alignments each translation also has "tokens", "source_tokens" and
    "alignment", a list of [target, source] pairs.

    A line too long for the model is split at its sentence ends, translated in parts and joined. A translation that is
    not finished was stopped by the limit of length.
    """
    if input is not None and output is not None and input.exists() and output.exists() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input file itself; name another")
    drawing = sampling_options(sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    given = list(words or [])
    model = given.pop(0) if names_a_model(given, to or source or out) else None
    if given and input is not None:
        raise ConfigError("give either sentences or --input, not both")
    of_a_model = {"--nbest": nbest > 1, "--scores": scores, "--alignments": alignments, "--prefix": prefix}
    of_a_model |= {"--max-length": max_length, "--batch-tokens": batch_tokens is not None, "--adapter": adapter}
    used = next((option for option, value in of_a_model.items() if value), None)
    if model in box_names() and not (os.path.exists(model) or used or to or source):
        (source, to), model = model.split("-"), None  # whole texts, as without its name
    if model is None and not (given or to or source):
        raise ConfigError("say what to translate, and into which language: glassformer translate 'a text' --to de")
    from glassformer.common.report import Report
    from glassformer.decode import Sampling, Search

    report = Report()
    search = Search(
        beam=beam if beam is not None else 1 if model is not None or sample else BEAM,
        nbest=nbest,
        length_penalty=length_penalty,
        length_rule=cast(Any, length_rule),
        sampling=Sampling(**drawing) if sample else None,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram=no_repeat_ngram,
    )
    if model is None:
        if used:
            raise ConfigError(f"{used} goes with a model, such as en-de: glassformer translate en-de {used} ...")
        options = BoxOptions(to, source, glossary, search, device, precision, as_json, input, output, out)
        translate_with_box(given, options, report)
        return
    for option, unused in {"--glossary": glossary, "--out": out}.items():
        if unused is not None:
            raise ConfigError(
                f"{option} goes without a model: glassformer translate TEXT... --to LANGUAGE {option} ..."
            )
    if os.path.exists(model) and model in box_names():
        report.say(f"{model} is a folder here: its model is taken, not the one in the box")
    from glassformer.pipelines.translator import Translator

    text = [line for one in given for line in arguments(one)]
    lines = decoded([text] if text else read_raw(open_input(input), str(input or "standard input")), report)
    translator = Translator.load(
        find_model(model, revision, offline), device, cast(Any, precision), to=to, source=source, adapter=adapter
    )
    translate = partial(
        translator.translate,
        search=search,
        # Bytes of an argument that are not UTF-8 come as lone surrogates.
        prefix=prefix.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
        max_length=max_length,
        batch_tokens=batch_tokens,
        alignments=alignments,
    )
    translate([])  # a wrong option is told before a line is waited for
    done = split = cut_short = 0
    unmet: dict[str, None] = {}  # words that training never met, in the order they come
    waiting = not text and input is None and sys.stdin.isatty()
    if waiting:
        report.say("type lines to translate; Ctrl-D ends it")
    with open_output(output, report) as sink:
        for chunk in lines:
            translations = translate(chunk)
            report.clear()
            for number, (source, best) in enumerate(zip(chunk, translations, strict=True), done + 1):
                sink.write(row(number, source, best, nbest > 1, scores, as_json).encode("utf-8", "replace"))
                if best[0].parts > 1:
                    split += 1
                    if split == 1:
                        limit = f"the {translator.max_source_length(max_length):,} tokens translated at once"
                        report.say(f"line {number}: longer than {limit}; split into {best[0].parts} parts")
                if not best[0].finished:
                    cut_short += 1
                    if cut_short == 1:
                        report.say(f"line {number}: the translation was stopped by the length limit before its end")
            sink.flush()
            done += len(chunk)
            if len(unmet) < COUNTED:
                unmet |= dict.fromkeys(translator.unfamiliar(chunk))
            if not text and not waiting:
                report.show(f"translated: {done:,} lines")
    report.clear()
    if split > 1:
        report.say(f"{split:,} lines were split")
    if cut_short > 1:
        report.say(f"{cut_short:,} translations were stopped by the length limit")
    if unmet:
        report.say(translator.about.warning(list(unmet)))


def names_a_model(words: list[str], of_the_box: object) -> bool:
    """Whether the first word is a model's folder, the box's or the hub's name for one, or a path that can be nothing
    else."""
    if not words:
        return False
    first = words[0]
    if os.path.isfile(os.path.join(first, "config.json")) or (first in box_names() and not os.path.exists(first)):
        return True
    if looks_like_hub(first):
        return True
    if of_the_box:
        return False
    looks_so = os.sep in first and not any(map(str.isspace, first))
    return os.path.isdir(first) or (looks_so and not os.path.exists(first))


def box_names() -> list[str]:
    from glassformer.pipelines.box import directions

    return list(directions())


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
    input: Path | None
    output: Path | None
    out: Path | None


def translate_with_box(words: list[str], options: BoxOptions, report: Report) -> None:
    from glassformer.pipelines.documents.formats import is_document
    from glassformer.pipelines.language.invariants import Glossary
    from glassformer.pipelines.polyglot import Polyglot, unused_terms

    terms = None if options.glossary is None else Glossary.load(options.glossary)
    documents = [word for word in words if os.path.exists(word)]
    if documents and len(documents) < len(words):
        text = next(word for word in words if word not in documents)
        raise ConfigError(f"{documents[0]} is a file and {text!r:.60} is none; give either texts or files")
    for word in [] if documents else words:
        if len(word.split()) == 1 and is_document(Path(word)):  # else a name with a slip in it would be translated
            raise ConfigError(f"there is no file {word}; to translate that as a text: echo {word} | glassformer ...")
    input, out = options.input, options.out
    if out is not None and not documents:
        raise ConfigError(f"--out {out} is for documents, and none is given; write a text's translation with --output")
    polyglot = Polyglot(options.device, cast(Any, options.precision))
    if documents:
        translate_documents([Path(word) for word in documents], options, polyglot, terms, report)
        return
    if words:
        texts = [b"\n".join(arguments(word)).decode("utf-8", "replace") for word in words]
        chunks: Iterator[list[str]] = iter([texts])
    else:
        chunks = decoded(read_raw(open_input(input), str(input or "standard input")), report)
    waiting = not words and input is None and sys.stdin.isatty()
    if waiting:
        report.say("type lines to translate; Ctrl-D ends it")
    reported: dict[str, None] = {}  # each kind of note once
    unused = [] if terms is None else list(terms.terms)
    done = 0
    with open_output(options.output, report) as sink:
        for chunk in chunks:
            pairs = choose_directions(chunk, options)
            found = polyglot.details(chunk, pairs, glossary=terms, search=options.search)
            report.clear()
            for text, one in zip(chunk, found, strict=True):
                sink.write(text_row(text, one, options.as_json, lines=not words).encode("utf-8", "replace"))
            sink.flush()
            for number, one in enumerate(found, done + 1):
                for note in one.notes:
                    if note.text not in reported:
                        reported[note.text] = None
                        where = f"line {number}: " if not words and note.kind != "pivot" else ""
                        report.say(f"{where}{note.text}")
            unused = [] if terms is None else terms.unused((one.text for one in found), unused)
            done += len(chunk)
            if not words and not waiting:
                report.show(f"translated: {done:,} lines")
    report.clear()
    for line in unused_terms(unused):
        report.say(line)


def choose_directions(texts: list[str], options: BoxOptions) -> list[LanguagePair]:
    """From which language into which each text goes; what detects it is let go before a translator is loaded."""
    from glassformer.pipelines.language.language import language_identifier
    from glassformer.pipelines.polyglot import language_pairs

    pairs = language_pairs(texts, options.to, options.source)
    language_identifier.cache_clear()
    return pairs


def translate_documents(
    paths: list[Path], options: BoxOptions, polyglot: Polyglot, terms: Glossary | None, report: Report
) -> None:
    """Files, or a folder, all from one language into one."""
    check_files(paths, options.output, options.out)
    (pair,) = choose_directions([read_openings(paths)], options)
    source, target, notes = pair
    if pair.stays:
        raise ConfigError(
            f"{paths[0]} holds nothing to translate into `{options.to or target}`; is the language right?"
        )
    for note in notes:
        report.say(note.text)
    translator = polyglot.translator(source, target, terms)
    if translator.pivot is not None:
        report.say(f"`{source}` to `{target}` goes by `{translator.pivot}`")
    recorded = {"from": source, "to": target, "beam": options.search.beam, "version": __version__}
    recorded["glossary"] = sorted(terms.terms.items()) if terms is not None else []
    translate_files(paths, WithSearch(translator, options.search), options.output, options.out, report, **recorded)


class WithSearch:
    """A text translator with its search options bound."""

    def __init__(self, translator: TextTranslator, search: Search) -> None:
        self.translator, self.search = translator, search

    def translate(self, texts: list[str], *, progress: Callable[[int], None] | None = None) -> list[str]:
        return self.translator.translate(texts, search=self.search, progress=progress)


def read_openings(paths: list[Path]) -> str:
    """Enough of the documents to tell their language."""
    files = [file for path in paths for file in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    files = [file for file in files if file.is_file()]
    texts = []
    for file in files[:SAMPLE]:
        with file.open("rb") as stream:
            texts.append(stream.read(SAMPLE_BYTES).decode("utf-8", "ignore"))
    return "\n".join(text[: SAMPLE_BYTES // max(1, len(texts))] for text in texts)


def text_row(text: str, one: TranslatedText, as_json: bool, lines: bool) -> str:
    """What a translation is printed as; that of a line is a line."""
    if as_json:
        notes = [note.text for note in one.notes]
        translations = [{"text": one.text, "finished": one.finished}]
        sentences = [
            {"source": s.source, "text": s.text, "probability": s.probability, "doubts": s.doubts}
            for s in one.sentences
        ]
        row = {"source": text, "translations": translations, "notes": notes, "sentences": sentences}
        return to_json(row) + "\n"
    return (one.text.replace("\r", " ").replace("\n", " ") if lines else one.text) + "\n"


def check_files(paths: list[Path], output: Path | None, out: Path | None) -> None:
    """Whether it is clear what goes where; asked before a model is loaded."""
    from glassformer.pipelines.documents.folder import check_folders
    from glassformer.pipelines.documents.formats import check_format

    folders = [path for path in paths if path.is_dir()]
    if folders and len(paths) > 1:
        raise ConfigError(f"{folders[0]} is a folder; give one folder alone, or files")
    if output is not None and out is not None:
        raise ConfigError("give either --output, a file, or --out, a folder")
    if folders:
        if out is None:
            raise ConfigError(f"{folders[0]} is a folder; name the folder to write to with --out")
        check_folders(folders[0], out)
        return
    if len(paths) > 1 and out is None:
        raise ConfigError(f"{len(paths)} files; name the folder to write them to with --out")
    if output is not None and output.is_dir():
        raise ConfigError(f"--output {output} is a folder; name a file, or give --out {output}")
    for path in paths:
        check_format(path)
        target = output if out is None else out / path.name
        if target is not None and target.exists():
            if target.samefile(path):
                raise ConfigError(f"{target} is the document itself; name another place")
            if out is not None:
                raise ConfigError(f"{target} is there already; move it away, or name another folder with --out")
    names = [path.name for path in paths]
    for path in paths:
        if names.count(path.name) > 1:
            raise ConfigError(f"{path}: another of the files is called {path.name} too; translate them one by one")


def translate_files(
    paths: list[Path],
    translator: SupportsTranslate,
    output: Path | None,
    out: Path | None,
    report: Report,
    **options: object,
) -> None:
    """Translate one document to `output` or standard output, or several, or a folder of them, into the folder `out`.

    The `options` name what translates and how: files of a folder that were made with others are made again.
    """
    from glassformer.pipelines.documents import translate_bytes, translate_folder
    from glassformer.pipelines.documents.folder import read_document, show_progress

    check_files(paths, output, out)
    if paths[0].is_dir():
        assert out is not None
        report_folder(translate_folder(paths[0], out, translator, options=options, report=report), report)
        return
    if out is not None:
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DataError(f"{out} cannot be made: {error.strerror}") from None
    failed = []
    for path in paths:
        progress = partial(show_progress, report, str(path))
        target = output if out is None else out / path.name
        try:
            translation, stats = translate_bytes(path, read_document(path), translator, progress)
        except DataError as error:
            failed.append(str(error))
            continue
        finally:
            report.clear()
        with open_output(target, report) as sink:
            sink.write(translation)
            sink.flush()
        if target is not None:
            report.say(f"{path} → {target}")
        report_segments(stats, report)
    if failed:
        raise DataError("\n".join(failed))


def report_folder(result: FolderResult, report: Report) -> None:
    """What became of the files; an error at the end where some failed."""
    counts = {
        "translated": len(result.translated),
        "copied": len(result.copied),
        "there from an earlier run": len(result.kept),
    }
    report.say(", ".join(f"{count:,} {what}" for what, count in counts.items() if count) or "no files")
    if result.skipped:
        report.say(f"left out (hidden, or a link that leads to no file): {join_names(result.skipped)}")
    report_segments(result.stats, report)
    for reason in [*result.failed.values()][:LISTED]:
        report.say(reason)
    if result.failed:
        count = len(result.failed)
        files = "1 file" if count == 1 else f"{count:,} files"
        raise DataError(
            f"{files} could not be made: {join_names([*result.failed])}; mend them and give the command again"
        )


def report_segments(stats: DocumentStats, report: Report) -> None:
    if stats.in_pieces:
        report.say(
            f"{stats.in_pieces:,} of {stats.segments:,} passages were translated in pieces, to keep their markup"
        )
    if stats.untranslated:
        report.say(f"{stats.untranslated:,} of {stats.segments:,} passages are left, in part or whole, as they were")


def join_names(names: list[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more
