"""`glassformer generate`: text in, more text out."""

from __future__ import annotations

import sys
from typing import Annotated, Any, cast

from typer import Argument, Option

from glassformer.cli.options import (
    Adapter,
    Device,
    LengthPenalty,
    Offline,
    Precision,
    RepetitionPenalty,
    Revision,
    Seed,
    Temperature,
    TopK,
    TopP,
    find_model,
    given_lines,
    sampling_options,
    to_json,
)
from glassformer.common.errors import ConfigError


def generate(
    model: Annotated[
        str,
        Argument(
            help="A folder that glassformer train has made by objective = 'language'; a Hugging Face folder, or a name "
            "of the hub, of GPT-2, Llama, Mistral or Qwen2."
        ),
    ],
    texts: Annotated[
        list[str] | None, Argument(metavar="[TEXT]...", help="Texts to go on with; without any, standard input.")
    ] = None,
    max_new_tokens: Annotated[int | None, Option(help="Tokens written at most; 128 if none.")] = None,
    beam: Annotated[int, Option(help="Beam width; 1 is greedy.")] = 1,
    nbest: Annotated[int, Option(help="Continuations of each text, at most as many as the beam.")] = 1,
    length_penalty: LengthPenalty = 1.0,
    repetition_penalty: RepetitionPenalty = 1.0,
    no_repeat_ngram: Annotated[int, Option(help="Let no so many tokens in a row come twice; 0: they may.")] = 0,
    sample: Annotated[bool, Option("--sample", help="Draw what follows at random.")] = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
    stream: Annotated[bool, Option("--stream", help="Show each word as soon as it is written.")] = False,
    as_json: Annotated[bool, Option("--json", help="One JSON object a line.")] = False,
    device: Device = "auto",
    precision: Precision = "auto",
    adapter: Adapter = None,
    revision: Revision = None,
    offline: Offline = False,
) -> None:
    """Continue texts with a decoder: the likeliest words, a beam, or drawn at random.

    glassformer generate runs/gpt "twenty-" --sample --seed 3

    Every text, or line of standard input, gives one line: the text and what follows it. With --nbest N above 1 it gives
    N lines: line number, rank and text with a TAB between. --json gives one object a line: {"prompt": ...,
    "continuations": [{"text": ..., "score": ..., "finished": ...}]}.
    """
    drawing = sampling_options(sample, temperature=temperature, top_k=top_k, top_p=top_p, seed=seed)
    if stream and (as_json or nbest > 1):
        raise ConfigError(f"--stream shows one text as it is written; leave out {'--json' if as_json else '--nbest'}")
    from glassformer.common.report import Report
    from glassformer.decode import Sampling, Search
    from glassformer.decode.search import check_stream
    from glassformer.pipelines import TextGenerator
    from glassformer.pipelines.generator import join

    search = Search(
        beam=beam,
        nbest=nbest,
        length_penalty=length_penalty,
        sampling=Sampling(**drawing) if sample else None,
        repetition_penalty=repetition_penalty,
        no_repeat_ngram=no_repeat_ngram,
        max_new_tokens=max_new_tokens,
    )
    if stream:
        check_stream(search)
    report, number = Report(), 0
    generator = TextGenerator.load(find_model(model, revision, offline), device, cast(Any, precision), adapter=adapter)
    for chunk in given_lines(texts or [], report):
        if stream:
            for text in chunk:
                pieces = generator.stream(text, search=search)
                sys.stdout.write(join(text, next(pieces, "")))
                for piece in pieces:
                    sys.stdout.flush()
                    sys.stdout.write(piece)
                sys.stdout.write("\n")
            continue
        for text, best in zip(chunk, generator.generate(chunk, search=search), strict=True):
            number += 1
            if as_json:
                found = [{"text": one.text, "score": one.score, "finished": one.finished} for one in best]
                print(to_json({"prompt": text, "continuations": found}))
                continue
            for rank, one in enumerate(best, 1):
                line = one.whole if len(chunk) == number == 1 else one.whole.replace("\r", " ").replace("\n", " ")
                print(f"{number}\t{rank}\t{line}" if nbest > 1 else line)
        sys.stdout.flush()
