"""python -m benchmarks: every figure beside its peers', taken in one run."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from glassformer.common.errors import ConfigError, GlassformerError, one_of

if TYPE_CHECKING:
    from benchmarks.train import Row
    from glassformer.decode.search import Stopping

bench = typer.Typer(help="Measure speed beside the peers, in one run.", no_args_is_help=True, rich_markup_mode=None)


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
    from glassformer.data.readers import read_lines
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


@bench.command("inputs")
def inputs(
    models: Annotated[
        Path | None, typer.Option(help="A folder with en-de or en-zh, or both: each replaces that of the package.")
    ] = None,
    failures: Annotated[bool, typer.Option("--failures", help="Print each answer that fails, and why.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print every case, answer and fault as JSON.")] = False,
) -> None:
    """300 inputs as people write them, each with checks that any right translation passes: the pass rate by kind and
    direction."""
    from benchmarks.inputs import DIRECTIONS, ask, judge, read_cases
    from glassformer.pipelines import box

    if models is not None:
        others = {one: models / one for one in box.MODELS if (models / one).is_dir()}
        if not others:
            raise ConfigError(f"{models} has no folder {one_of(box.MODELS)}")
        packaged = box.folder
        box.folder = lambda model: others.get(model) or packaged(model)
    results = []
    for case in read_cases():
        results.append(judge(case, ask(case)))
        if failures and results[-1].faults and not as_json:
            print(f"{results[-1]}\n", flush=True)
    if as_json:
        print(json.dumps([asdict(one) for one in results], indent=1, ensure_ascii=False))
        return
    print(f"{', '.join(str(box.folder(model)) for model in box.MODELS)}\n")
    print(f"{'':14}" + "".join(f"{one:>9}" for one in (*DIRECTIONS, "all")))
    for kind in (*dict.fromkeys(one.case.kind for one in results), "all"):
        cells = []
        for direction in (*DIRECTIONS, "all"):
            some = [
                one for one in results if kind in (one.case.kind, "all") and direction in (one.case.direction, "all")
            ]
            cells.append(f"{sum(not one.faults for one in some)}/{len(some)}" if some else "")
        print(f"{kind:14}" + "".join(f"{cell:>9}" for cell in cells))
    print(f"\n{sum(not one.faults for one in results) / len(results):.1%} pass")


@bench.command("serve")
def serve(
    data: Annotated[Path, typer.Argument(help="A file of source lines, one sentence each (gzip and xz too).")],
    model: Annotated[str, typer.Option(help="A translator of the box.")] = "en-de",
    sentences: Annotated[int, typer.Option(help="Take only so many of them; 0: all.", min=0)] = 0,
    clients: Annotated[
        list[int] | None, typer.Option(help="Clients at once; may be given several times. Default: 1, 8, 64, 256.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=64, help="Batches that the server translates at once; as usual if none.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """The server under load: clients that each send one sentence after the other, beside the bare call and a plain
    server that answers each request by a call of its own."""
    import torch

    from benchmarks.serving import CLIENTS, FEWEST, Bare, loaded
    from glassformer.data.readers import read_lines

    source, target = model.split("-")
    texts = [text for text in read_lines(data) if text.strip()][: sentences or None]

    def say(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    bare = Bare(model, target, texts)
    say(f"{len(texts):,} sentences as one list, and each alone")
    speeds, alone, made = [bare.speed()], bare.alone(), bare.answers()
    ours = ["glassformer", "serve", model, "--only", "api", "--port", "0"]
    if workers is not None:
        ours += ["--workers", str(workers)]
    counts = clients or CLIENTS
    asked = [("glassformer", ours, count) for count in counts]
    asked += [("a call for each", ["benchmarks.serving", model, target], min(64, max(counts)))]
    found = []
    for name, command, count in asked:
        some = texts if count > 1 else texts[:FEWEST]
        say(f"{name}, {count} clients; then one list again")
        one = loaded(name, command, (source, target), some, made[: len(some)], count)
        speeds.append(bare.speed())  # a machine is not as fast now as it was a minute ago
        found.append(replace(one, one_list=(speeds[-2] + speeds[-1]) / 2))
    if as_json:
        print(json.dumps({"bare": speeds, "alone": alone, "figures": [asdict(one) for one in found]}))
        return
    print(
        f"{len(texts):,} sentences, {model}, beam 4; torch {torch.__version__}, {torch.get_num_threads()} threads, "
        f"{platform.machine()}\nas one list {min(speeds):.1f} to {max(speeds):.1f} sentences/s, before and after each; "
        f"one alone {1000 * alone:.1f} ms\n"
    )
    print(
        f"{'':18} {'clients':>7} {'sentences/s':>12} {'to one list':>12} {'median ms':>10} {'p95 ms':>9}  other answers"
    )
    for row in found:
        print(
            f"{row.name:18} {row.clients:7} {row.sentences:12.1f} {row.sentences / row.one_list:11.2f}x "
            f"{1000 * row.median:10.1f} {1000 * row.p95:9.1f}  {row.wrong}"
        )


@bench.command("soak")
def soak(
    data: Annotated[Path, typer.Argument(help="A file of English source lines (gzip and xz too).")],
    requests: Annotated[int, typer.Option(help="How many in all.", min=1)] = 30_000,
    different: Annotated[int, typer.Option(help="How many of them are different.", min=1)] = 3_000,
    seed: Annotated[int, typer.Option(help="Other requests.")] = 0,
) -> None:
    """One server and many requests of all kinds, some wrong, some left: is each answered as it is alone, and does the
    server's memory grow?"""
    from benchmarks.soak import FIRST, soaked
    from glassformer.common.errors import GlassformerError
    from glassformer.data.readers import read_lines

    if not Path("/proc/self/status").exists():
        raise GlassformerError("python -m benchmarks soak reads the server's memory from /proc, which is not here")
    texts = [text for text in read_lines(data) if text.strip()]
    done = soaked(texts, requests, different, seed, lambda text: print(text, file=sys.stderr, flush=True))
    print(f"{requests:,} requests in {done.seconds:.0f} s: {listed(done.kinds)}")
    print(f"answers by status: {listed(done.statuses)}")
    print(f"answered otherwise than alone: {len(done.other)}")
    for one in done.other[:5]:
        print(f"  {one}")
    print(
        f"memory after the first {min(FIRST, requests):,} requests {done.first:,.0f} MB, at the end "
        f"{done.last:,.0f} MB: {done.last / done.first:.2f}x"
    )
    if done.other or done.failures:
        raise GlassformerError("an answer was lost, changed or failed")


@bench.command("attack")
def attack(
    model: Annotated[str, typer.Option(help="A translator: a folder, or a name of the box.")] = "en-de",
    requests: Annotated[int, typer.Option(help="Of the other client, under slow bodies.", min=1)] = 200,
    rounds: Annotated[int, typer.Option(help="Crowds of idle connections, one after the other.", min=1)] = 5,
) -> None:
    """What another client still gets of a server under attack: the wait for `GET /health` beside slow bodies without a
    key, and beside idle connections."""
    from benchmarks.attack import measured

    print(f"{'attack':24} {'median, ms':>10} {'p99, ms':>9} {'no answer':>10}")
    for row in measured(model, requests, rounds):
        lost = f"{row.lost} of {row.lost + len(row.seconds)}"
        print(f"{row.attack:24} {1000 * row.median:10.1f} {1000 * row.p99:9.1f} {lost:>10}")


@bench.command("mutations")
def mutated(
    only: Annotated[str, typer.Option(help="Formats whose name fits this pattern, such as box/*.")] = "*",
    count: Annotated[
        int, typer.Option(help="Damaged files of each format; a third as many bodies of each route.", min=1)
    ] = 3000,
    seed: Annotated[int, typer.Option(help="Another one damages otherwise.")] = 0,
) -> None:
    """Damaged files of every format, and bodies of requests: each is read, or refused in words, within 5 s and 1 GB."""
    from fnmatch import fnmatchcase

    from benchmarks.mutations import FORMATS, measured

    names, good = [name for name in FORMATS if fnmatchcase(name, only)], True
    if not names:
        raise ConfigError(f"--only {only!r} fits none of {one_of(FORMATS)}")
    print(f"{'format':30} {'read':>5} {'refused':>7} {'uncaught':>8} {'slow':>4} {'large':>5} {'s':>6} {'MB':>6}")
    for name in names:
        found = measured(name, seed, count)
        lost = sum(map(len, found.uncaught.values()))
        print(
            f"{name:30} {found.read:5} {found.refused:7} {lost:8} {len(found.slow):4} {len(found.large):5} "
            f"{found.slowest:6.2f} {found.largest:6.0f}",
            flush=True,
        )
        for what, numbers in {**found.uncaught, "slow": found.slow, "large": found.large}.items():
            if numbers:
                print(f"  {what}: {', '.join(map(str, numbers[:5]))}{' ...' * (len(numbers) > 5)}", flush=True)
        good = good and found.good
    if not good:
        raise GlassformerError("a damaged file was neither read nor refused, or took too long or too much memory")


def listed(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=str))


@bench.command("export")
def exports(
    to: Annotated[str, typer.Option(help="The format.")] = "ctranslate2",
    configs: Annotated[int, typer.Option(help="Random models over the grid of configurations.", min=1)] = 30,
    sentences: Annotated[int, typer.Option(help="Sentences that each is checked with.", min=1)] = 200,
    model: Annotated[
        list[str] | None, typer.Option(help="A translator to export too: a folder, or a name of the box.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcomes as JSON.")] = False,
) -> None:
    """Exports of random models, each checked or refused with its reason; and three faults that the check must find."""
    from benchmarks.export import faults, grid, outcome

    found = []
    for one in chain((outcome(name, to, sentences, name) for name in model or ()), grid(to, configs, sentences)):
        found.append(one)
        if not as_json:
            print(f"{one}", flush=True)
    seeded = faults(to, min(sentences, 20))
    missed = [name for name, one in seeded.items() if not one.failed]
    if as_json:
        print(json.dumps({"exports": [asdict(one) for one in found], "missed faults": missed}, indent=1))
    else:
        for name in seeded:
            print(f"{name}: {'NOT NOTICED' if name in missed else 'found by the check'}")
        exported = [one for one in found if not one.refused and not one.failed]
        print(
            f"\n{len(exported)} exported, {sum(one.equal for one in exported):,} of "
            f"{sum(one.sentences for one in exported):,} targets equal and {sum(one.tied for one in exported):,} tied; "
            f"{sum(bool(one.refused) for one in found)} refused; {sum(bool(one.failed) for one in found)} failed"
        )
    if missed or any(one.failed for one in found):
        raise typer.Exit(1)


@bench.command("gpu")
def gpu(
    data: Annotated[
        Path | None, typer.Option(help="A folder with train.en.gz and train.de.gz, to measure real batches too.")
    ] = None,
) -> None:
    """Training throughput on a GPU: glassformer beside compiled Hugging Face Marian and torch.nn.Transformer."""
    import torch

    from benchmarks.throughput import BASE, MATRIX_RATE, REAL, SHAPES, operations, throughput
    from glassformer.common.errors import GlassformerError

    if not torch.cuda.is_available():
        raise GlassformerError("python -m benchmarks gpu needs a CUDA device, and this torch sees none")
    found = throughput(data, lambda text: print(text, file=sys.stderr, flush=True))
    print(
        f"training, d {BASE.d_model}, {BASE.layers}+{BASE.layers} layers, vocabulary {BASE.vocab_size}, bf16, "
        f"all compiled; torch {torch.__version__}, {torch.cuda.get_device_name()}; thousand target tokens/s\n"
    )
    ours = found.speeds.get("glassformer", {})
    for rows, length in SHAPES:
        shape = f"{rows}x{length}"
        peers = {
            name: speeds[shape] for name, speeds in found.speeds.items() if name != "glassformer" and shape in speeds
        }
        everyone = ({"glassformer": ours[shape]} if shape in ours else {}) | peers
        for name, speed in everyone.items():
            share = speed * operations(BASE, length) / MATRIX_RATE
            print(f"{rows} x ({length} + {length})  {name:22} {speed / 1000:7.0f}   MFU {share:.1%}")
        if peers and shape in ours:
            print(f"  ours to the best peer: {ours[shape] / max(peers.values()):.2f}\n")
    static = f"{SHAPES[0][0]}x{SHAPES[0][1]}"
    if found.real and static in ours:
        print(
            f"real batches of {data}, {REAL.tokens} tokens a step: {found.real_speed / 1000:.0f} thousand non-padding "
            f"target tokens/s, {found.real_speed / ours[static]:.1%} of the static {static}; "
            f"{found.padding:.1%} of the positions are padding"
        )
        for real in found.real:
            print(
                f"  {real.batches:3} of {real.shape.rows:4} x ({real.shape.src} + {real.shape.tgt})  "
                f"{1000 * real.seconds / real.batches:6.1f} ms each  {real.tokens / real.seconds / 1000:5.0f}"
            )


@bench.command("language")
def language() -> None:
    """Training a language model of GPT-2 small's shape on a GPU: glassformer beside compiled Hugging Face GPT-2 and a
    compiled decoder in plain PyTorch."""
    import torch

    from benchmarks.language import GPT2, LENGTH, NAMES, ROWS
    from benchmarks.language import language as measured
    from glassformer.common.errors import GlassformerError

    if not torch.cuda.is_available():
        raise GlassformerError("python -m benchmarks language needs a CUDA device, and this torch sees none")
    found = measured(lambda text: print(text, file=sys.stderr, flush=True))
    print(
        f"training, d {GPT2.d_model}, {GPT2.layers} layers, vocabulary {GPT2.vocab_size}, {ROWS} x {LENGTH} tokens, "
        f"bf16, all compiled; torch {torch.__version__}, {torch.cuda.get_device_name()}; thousand tokens/s\n"
    )
    best = max((speed for name, speed in found.items() if name in NAMES[2:]), default=float("nan"))
    for name, speed in found.items():
        print(f"{name:26} {speed / 1000:7.0f}   {speed / best:.2f}x the best peer")


def main() -> None:
    try:
        bench(prog_name="python -m benchmarks")
    except GlassformerError as error:
        sys.exit(f"benchmarks: {error}")


if __name__ == "__main__":
    main()
