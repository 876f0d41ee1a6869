"""`python -m benchmarks serve` and `python -m benchmarks soak`."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer


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
    from glassformer.data.lines import read_lines

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
    from glassformer.data.lines import read_lines

    if not Path("/proc/self/status").exists():
        raise GlassformerError("glassformer bench soak reads the server's memory from /proc, which is not here")
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


def listed(counts: Mapping[Any, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=str))
