"""`python -m benchmarks`: the figures, each beside its peers'."""

from __future__ import annotations

import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from benchmarks.commands_export import exports
from benchmarks.commands_gpu import gpu, language
from benchmarks.commands_serve import serve, soak
from glassformer.common.errors import ConfigError

if TYPE_CHECKING:
    from benchmarks.train import Row
    from glassformer.decode.search import Stopping

bench = typer.Typer(help="Measure speed beside the peers, in one run.", no_args_is_help=True, rich_markup_mode=None)
bench.command("serve")(serve)
bench.command("soak")(soak)
bench.command("export")(exports)
bench.command("gpu")(gpu)
bench.command("language")(language)


@bench.command("decode")
def decode(
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    rounds: Annotated[int, typer.Option(help="Timed runs of each.", min=1)] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Decoding: glassformer, Hugging Face generate and, on a CPU, CTranslate2 in turn, one size; and what the KV cache
    saves."""
    import torch

    from benchmarks.decode import BASE, OUTPUT, SOURCE, decoding, growth
    from glassformer.common.device import pick_device

    if pick_device(device).type not in OUTPUT:
        raise ConfigError(f"device {device!r} is not one of cpu, cuda")
    say = (lambda text: print(text, file=sys.stderr)) if sys.stderr.isatty() else lambda text: None
    rows, grown = decoding(device, rounds, say), growth(device)
    if as_json:
        print(json.dumps({"decoding": [asdict(r) for r in rows], "growth": [asdict(g) for g in grown]}, indent=1))
        return
    print(
        f"output tokens/s, d {BASE.d_model}, {BASE.layers}+{BASE.layers} layers, vocabulary {BASE.vocab_size}, "
        f"source {SOURCE}, output {OUTPUT[device]}; torch {torch.__version__}, "
        + (f"{torch.get_num_threads()} threads" if device == "cpu" else torch.cuda.get_device_name())
        + "\n"
    )
    for row in rows:
        print(f"batch {row.rows:4}  beam {row.beam}  {row.name:22} {row.tokens:9.0f}")
    print("\none more token after a prefix, batch 8, milliseconds:\n\nprefix  cached  read again")
    for g in grown:
        print(f"{g.prefix:6}  {1000 * g.cached:6.1f}  {1000 * g.uncached:10.1f}")


@bench.command("box")
def box(
    model: Annotated[str, typer.Argument(help="A translator: a folder, or a name of the box.")],
    data: Annotated[
        Path | None, typer.Option(help="A folder with a test set (test.en, .xz or .gz); without it a few sentences.")
    ] = None,
    source: Annotated[str, typer.Option("--from", help="The language to translate from: which side of --data.")] = "en",
    to: Annotated[str | None, typer.Option(help="The language to translate to, of a model that knows several.")] = None,
    beam: Annotated[int, typer.Option(help="Width of the search.", min=1)] = 4,
    sentences: Annotated[int, typer.Option(help="Take only so many of the test set; 0: all.", min=0)] = 0,
    stopping: Annotated[str, typer.Option(help="When our beam search ends: huggingface or exact.")] = "huggingface",
    level: Annotated[
        list[str] | None,
        typer.Option(help="Hold the machine to this level; may be given several times. Default: each."),
    ] = None,
    rounds: Annotated[int, typer.Option(help="Timed runs of each.", min=1)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """A whole translator, text to text, beside CTranslate2 with the same weights, both in int8, at each level of
    instructions."""
    import torch

    from benchmarks.box import compared, levels, short_enough, texts_of
    from glassformer.common.errors import one_of
    from glassformer.decode.search import Search

    rule = Search(beam=beam, stopping=cast("Stopping", stopping)).stopping  # checked
    able = levels()
    for name in level or ():
        if name not in able:
            raise ConfigError(f"level {name!r} is not one of {one_of(able)}, which this machine has")
    texts = short_enough(model, to, texts_of(data, source))
    if sentences:
        texts = texts[:: max(1, len(texts) // sentences)][:sentences]
    if not as_json:
        print(
            f"{len(texts)} sentences, beam {beam}, int8; torch {torch.__version__}, {torch.get_num_threads()} threads, "
            f"{platform.machine()}\n\n{'level':8} {'':12} {'sentences/s':>11} {'ms alone':>9}   ratios; equal"
        )
    found = []
    for name in level or able:
        one = compared(model, texts, name, beam, rounds, to, rule)
        found.append(one)
        if not as_json:
            for row, said in (
                (one.ours, f"{one.speed:.2f}x  {one.latency:.2f}x; {one.equal:.1%}"),
                (one.theirs, ""),
            ):
                print(f"{name:8} {row.name:12} {row.sentences:11.1f} {1000 * row.latency:9.2f}   {said}", flush=True)
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1))


@bench.command("trace")
def trace(as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False) -> None:
    """What it costs to look inside: the time of a large trace, and of decoding with and without having been traced."""
    from benchmarks.trace import TOKENS, cost

    found = cost()
    if as_json:
        print(json.dumps(asdict(found)))
        return
    print(f"a trace of 6+6 layers, 8 heads, {TOKENS}+{TOKENS} tokens: {found.built:.2f} s, {found.bytes / 1e6:.0f} MB")
    print(
        f"decoding: {1000 * found.decoded:.1f} ms; {100 * found.slower:+.2f} % with a model that has been traced, the "
        "median of pairs"
    )


@bench.command("train")
def train(
    rounds: Annotated[int, typer.Option(help="Timed steps of each model.", min=1)] = 7,
    as_json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """A training step on this machine's CPU: glassformer, Hugging Face Marian and torch.nn.Transformer in turn."""
    import torch

    from benchmarks.train import SMALL, recipe_steps, training_steps

    def report(text: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{text}  ", end="", file=sys.stderr, flush=True)

    rows = training_steps(rounds=rounds, report=report)
    real = recipe_steps()
    if sys.stderr.isatty():
        print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    if as_json:
        print(json.dumps({"training step": [asdict(r) for r in rows], "recipe": [asdict(r) for r in real]}, indent=1))
        return
    print(
        f"training step, 64 x (24 + 24) tokens, d {SMALL.d_model}, {SMALL.layers}+{SMALL.layers} layers, "
        f"vocabulary {SMALL.vocab_size}; torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{platform.machine()}\n"
    )
    show_rows(rows)
    print("\nthe batches of the numerals recipe: our training path and Hugging Face Marian in a plain loop\n")
    show_rows(real)


def show_rows(rows: list[Row]) -> None:
    print(f"{'':22} {'precision':10} {'ms/step':>8} {'tokens/s':>9}   ratio")
    for row in rows:
        against = "of the best peer's speed" if row.name == "glassformer" else "of ours"
        speeds = f"{1000 * row.seconds:8.0f} {row.tokens:9.0f}   {row.ratio:.2f}"
        print(f"{row.name:22} {row.precision:10} {speeds} {against}")


@bench.command("resume")
def resume(
    times: Annotated[int, typer.Option(help="How many times training is killed.", min=1)] = 20,
    seed: Annotated[int, typer.Option(help="Other moments.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the runs as JSON.")] = False,
) -> None:
    """Kill training at random moments, resume it, and compare the final weights with an uninterrupted run's."""
    from benchmarks.resume import resumes

    runs = resumes(times, seed, report=lambda text: print(text, file=sys.stderr, flush=True))
    if as_json:
        print(json.dumps([asdict(run) for run in runs], indent=1))
    else:
        equal = sum(run.equal for run in runs)
        print(
            f"{sum(run.kills for run in runs)} interruptions by SIGKILL ({sum(run.inside_a_write for run in runs)} of "
            f"them inside a checkpoint's write) over {len(runs)} runs: the weights of {equal} of {len(runs)} runs "
            f"hash to the uninterrupted run's"
        )
    sys.exit(0 if all(run.equal for run in runs) else 1)


@bench.command("demo")
def demo(
    seeds: Annotated[list[int] | None, typer.Option("--seed", help="May be given several times.")] = None,
    steps: Annotated[int | None, typer.Option(help="Other than the recipe's.", min=1)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the trainings as JSON.")] = False,
) -> None:
    """Train the demo on this machine's CPU and try it on unseen pairs and on what people type first."""
    import torch

    from benchmarks.demo import FIRST_TRIES, demos

    changes = [f"train.steps={steps}"] if steps else []
    found = demos(seeds or [0], changes, report=lambda text: print(text, file=sys.stderr, flush=True))
    if as_json:
        print(json.dumps([asdict(one) for one in found], indent=1, ensure_ascii=False))
        return
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {platform.machine()}\n")
    for one in found:
        print(
            f"seed {one.seed}: {one.seconds:.0f} s, {one.exact:.1%} of the test pairs exact, "
            f"{len(FIRST_TRIES) - len(one.wrong)} of {len(FIRST_TRIES)} first tries right"
        )
        for source, output in one.wrong.items():
            print(f"  ✗ {source}  →  {output}\n      expected: {FIRST_TRIES[source]}")


@bench.command("kept")
def kept(
    model: Annotated[str, typer.Argument(help="A model folder.")],
    lines: Annotated[Path, typer.Argument(help="A file of source lines (gzip and xz too).")],
    to: Annotated[
        str | None, typer.Option(help="The language to translate into, of a model that knows several.")
    ] = None,
    count: Annotated[int, typer.Option(help="Single words, fragments and noise strings to try.", min=1)] = 1000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """What must not change: how many lines keep their numbers and code; and whether noise stays small."""
    from benchmarks.kept import kept as measure
    from benchmarks.kept import noise
    from glassformer.data.lines import read_lines
    from glassformer.pipelines.text import TextTranslator
    from glassformer.pipelines.translator import Translator

    translator = TextTranslator(Translator.load(model, precision="auto", to=to))
    texts = list(read_lines(lines))
    found, odd = measure(translator, texts), noise(translator, texts, count)
    if as_json:
        print(json.dumps({"kept": asdict(found), "noise": asdict(odd)}, ensure_ascii=False))
        return
    print(f"{found.lines:,} lines of {lines}, `{translator.source}` to `{translator.target}`, sentences {found.ways}")
    for what, whole, part in (
        ("digits", found.numbers, found.numbers_kept),
        ("code, addresses and the like", found.stretches, found.stretches_kept),
    ):
        print(f"  {whole:,} hold {what}" + (f"; all kept in {part:,} ({part / whole:.2%})" if whole else ""))
    print(
        f"{odd.strings:,} words, fragments and noise strings: {odd.returned:,} came back, {odd.too_long} too long, "
        f"{odd.cut} cut by the limit"
    )
    for source, target in (*found.lost, *odd.worst):
        print(f"  {source!r:.150}\n    {target!r:.150}")
