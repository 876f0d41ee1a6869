"""`glassformer translate`: sentences in, translations out."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from glassformer.cli.drawing import LengthPenalty, RepetitionPenalty, Rule, Seed, Temperature, TopK, TopP, given_drawing
from glassformer.cli.lines import arguments, decoded, open_input, open_output, read_raw, row
from glassformer.cli.models import Adapter, Device, Offline, Precision, Revision, find, looks_like_hub
from glassformer.common.errors import ConfigError

BEAM = 4  # of the box
COUNTED = 10_000  # words that training never met; of more, the rest is not counted


def translate(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [TEXT]...",
            help="Texts, or documents, or a folder of them; without any, standard input. Before them, if you like, a "
            "model: a folder of glassformer train, a Marian folder, of the box en-de, de-en, en-zh, zh-en, or a name "
            "of the hub: Helsinki-NLP/opus-mt-en-de.",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Language to translate into: en, de or zh; English if none, from another.")
    ] = None,
    source: Annotated[str | None, typer.Option("--from", help="Language of the texts; detected if none.")] = None,
    glossary: Annotated[
        Path | None, typer.Option(help="Terms to come out as written: lines of source term, TAB, target term.")
    ] = None,
    input: Annotated[Path | None, typer.Option(help="Read lines of this file (gzip and xz too).")] = None,
    output: Annotated[
        Path | None, typer.Option(help="Write to this file, which appears when all is done, not to standard output.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the documents to this folder.")] = None,
    beam: Annotated[
        int | None, typer.Option(help="Beam width; 1 is greedy. 4 if none for the box, 1 for a model.")
    ] = None,
    nbest: Annotated[int, typer.Option(help="Translations for each line, at most as many as the beam.")] = 1,
    length_penalty: LengthPenalty = 1.0,
    length_rule: Rule = "average",
    prefix: Annotated[str, typer.Option(help="Begin every translation with this text.")] = "",
    repetition_penalty: RepetitionPenalty = 1.0,
    no_repeat_ngram: Annotated[
        int, typer.Option(help="Let no so many tokens in a row come twice, unless --prefix does; 0: they may.")
    ] = 0,
    sample: Annotated[bool, typer.Option("--sample", help="Draw translations at random.")] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens read at once; a longer line is split. The model's limit if none.")
    ] = None,
    batch_tokens: Annotated[
        int | None,
        typer.Option(help="Source tokens, beams counted, in a batch: 4,096, on a GPU more, as its memory allows."),
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Put each score before its text.")] = False,
    alignments: Annotated[
        bool, typer.Option("--alignments", help="After each text, its tokens' partners in the source.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
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
    drawing = given_drawing(sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    given = list(words or [])
    model = given.pop(0) if names_a_model(given, to or source or out) else None
    if given and input is not None:
        raise ConfigError("give either sentences or --input, not both")
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
        from glassformer.cli.translate_box import BoxOptions, translate_by_box

        of_a_model = {"--nbest": nbest > 1, "--scores": scores, "--alignments": alignments, "--prefix": prefix}
        of_a_model |= {"--max-length": max_length, "--batch-tokens": batch_tokens is not None, "--adapter": adapter}
        for option, asked in of_a_model.items():
            if asked:
                raise ConfigError(
                    f"{option} goes with a model, such as en-de: glassformer translate en-de {option} ..."
                )
        asked_for = BoxOptions(to, source, glossary, search, device, precision, as_json)
        translate_by_box(given, asked_for, input, output, out, report)
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
        find(model, revision, offline), device, cast(Any, precision), to=to, source=source, adapter=adapter
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
    from glassformer.pipelines import box

    return list(box.directions())
