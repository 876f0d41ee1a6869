"""`glassformer trace`: every tensor between what a model reads and what it makes of it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Argument, Option

from glassformer.cli.options import Device, Offline, Revision, To, find_model
from glassformer.cli.translate import names_a_model
from glassformer.common.errors import ConfigError, InputError

Language = Literal["en", "zh"]

if TYPE_CHECKING:
    from glassformer.explain.subject import Traced


def trace(
    model: Annotated[
        str | None,
        Argument(
            help="A folder that glassformer train has made, a Hugging Face folder, or a name of the hub; else the box."
        ),
    ] = None,
    sentence: Annotated[
        str | None,
        Argument(
            help="The sentence; of other models a prompt, a text with gaps ([MASK]), a text or the file of an image; "
            "ids where the folder has no tokenizer."
        ),
    ] = None,
    to: To = None,
    source: Annotated[
        str | None,
        Option("--from", help="Of a model that reads several, or of the box: language of the sentence."),
    ] = None,
    lang: Annotated[Language, Option("--lang", help="Language of the explanations.")] = "en",
    name: Annotated[str | None, Option(metavar="PATTERN", help="Show only values so named, e.g. '*.pattern'.")] = None,
    layer: Annotated[int | None, Option(help="Only this layer, counted from 0.")] = None,
    head: Annotated[int | None, Option(help="Only this head, counted from 0, in full.")] = None,
    target: Annotated[str | None, Option(help="Follow this text, not the model's own.")] = None,
    beam: Annotated[int, Option(help="Beam width; 1 is greedy.")] = 1,
    padding: Annotated[int, Option(min=0, help="Padding put beside the sentence, to see its mask.")] = 0,
    json_file: Annotated[
        str | None, Option("--json", metavar="FILE", help="Write the values as JSON instead; - for stdout.")
    ] = None,
    html_file: Annotated[
        str | None, Option("--html", metavar="FILE", help="Write one page that opens from disk instead.")
    ] = None,
    device: Device = "auto",
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Follow a sentence through a model: every name, shape, formula and value.

    A sentence alone goes through a translator of the box. Without either, one tiny batch goes through a Transformer by
    hand.
    """
    if (to or source) and model is None:
        raise ConfigError("--to and --from choose a translator of the box: glassformer trace 'sentence' --to de")
    if model is not None and sentence is None and not names_a_model([model], to or source):
        bundle = find_box_model(model, to, source)
        sentence, model, to, source = model, None if bundle is None else str(bundle), None, None
    if model is None:
        options = {"--layer": layer, "--head": head, "--target": target, "--html": html_file}
        for option, value in [*options.items(), ("--beam", beam - 1 or None), ("--padding", padding or None)]:
            if value is not None:
                raise ConfigError(f"{option} needs a model: glassformer trace MODEL 'sentence' {option} ...")
        show_worked_example(lang, name, json_file)
        return
    if sentence is None:
        raise ConfigError(f"give a sentence to follow through {model}: glassformer trace {model} 'twenty-one'")
    if json_file is not None and html_file is not None:
        raise ConfigError("give either --json or --html, not both")
    from glassformer.explain.trace import trace as trace_sentence
    from glassformer.model import Model
    from glassformer.pipelines.translator import Translator
    from glassformer.weights.hub import model_name

    folder = Path(find_model(model, revision, offline))
    subject = load_subject(folder, device, to, source)
    read = parse_ids if isinstance(subject, Model) else str
    if isinstance(subject, Translator) and (unmet := subject.unfamiliar([sentence])):
        print(subject.about.warning(unmet), file=sys.stderr)
    given = None if target is None else read(target)
    run = trace_sentence(subject, read(sentence), given, beam=beam, padding=padding, name=model_name(folder))
    if json_file is not None:
        write_json(json_file, run.to_json(name or "*"))
    elif html_file is not None:
        run.to_html(html_file)
    else:
        run.show(name, layer, head, lang)


def find_box_model(sentence: str, to: str | None, source: str | None) -> Path | None:
    """The translator of the box for a sentence, whose language is detected unless --from names it."""
    from glassformer.cli.serve import of_the_box
    from glassformer.pipelines.language.language import language_name
    from glassformer.pipelines.polyglot import language_pairs

    ((start, end, notes),) = language_pairs([sentence], to, source)
    if start and start == end:
        raise ConfigError(
            f"{sentence!r:.60} looks like {language_name(start)} already; if it is not, say so with --from"
        )
    for note in notes:
        print(note.text, file=sys.stderr)
    return of_the_box(end or to, start or source)


def show_worked_example(lang: Language, name: str | None, json_file: str | None) -> None:
    from glassformer.explain.worked import worked_example

    example = worked_example()
    if json_file is not None:
        write_json(json_file, example.to_dict(name or "*"))
        return

    from rich.console import Console

    from glassformer.explain.worked.render import print_story, print_values

    console = Console()
    if name is not None:
        print_values(example, name, lang, console)
    else:
        print_story(example, lang, console)


def load_subject(folder: Path, device: str, to: str | None, source: str | None) -> Traced:
    """The pipeline of a folder, such as a translator; of a folder without a tokenizer, the model alone."""
    from glassformer.common.device import pick_device
    from glassformer.pipelines import load_pipeline
    from glassformer.pipelines.translator import Translator
    from glassformer.weights.bundle import is_bundle
    from glassformer.weights.pretrained.loader import load_model, read_config
    from glassformer.weights.pretrained.multilingual import MULTILINGUAL

    if (pipeline := load_pipeline(folder, device)) is not None:
        if to or source:
            raise ConfigError(f"{folder} does not translate; leave out --to and --from")
        return pipeline
    if not is_bundle(folder) and os.path.isfile(folder / "config.json"):
        kind = read_config(folder).values.get("model_type")
        textless = kind != "marian" and not (kind in MULTILINGUAL and os.path.isfile(folder / "tokenizer_config.json"))
        if kind is not None and textless and to is None and source is None:
            return load_model(folder).to(pick_device(device))
    return Translator.load(folder, device, to=to, source=source)


def parse_ids(text: str) -> list[int]:
    try:
        return [int(word) for word in text.replace(",", " ").split()]
    except ValueError:
        raise InputError(f"this folder has no tokenizer, so {text!r} must be ids, such as '101 2023 102'") from None


def write_json(file: str, values: dict[str, Any]) -> None:
    from glassformer.explain.trace import write_file

    content = json.dumps(values, ensure_ascii=False, allow_nan=False) + "\n"
    if file == "-":
        sys.stdout.write(content)
    else:
        write_file(Path(file), content.encode("utf-8"))
