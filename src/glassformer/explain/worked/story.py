"""How it is told: chapters of panels. A panel names some steps, says why they are done, draws them, and writes out
a cell of each. The words themselves are in `texts`, under the panel's key."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from glassformer.explain.worked.sums import Cell


class Drawn(NamedTuple):
    """A matrix of one sentence, and of one head where the value has any."""

    name: str
    sentence: int = 0
    head: int = 0


class Panel(NamedTuple):
    key: str
    names: tuple[str, ...]
    rows: tuple[tuple[Drawn, ...], ...]
    written: tuple[str, ...] = ()


class Chapter(NamedTuple):
    key: str
    panels: tuple[Panel, ...]


def both_heads(name: str, sentence: int = 0) -> tuple[Drawn, ...]:
    return (Drawn(name, sentence, 0), Drawn(name, sentence, 1))


def attention(
    at: str, matched: tuple[str, ...], masked: tuple[int, ...], patterns: tuple[int, ...]
) -> tuple[Panel, ...]:
    """`matched`: which of products and scores to draw; `masked`, `patterns`: the sentences to draw those of."""
    weight, q, k, v = (f"{at}.{part}" for part in ("projection.weight", "q", "k", "v"))
    products, scores, hide, pattern, context = (
        f"{at}.{part}" for part in ("products", "scores", "masked", "pattern", "context")
    )
    merged, blend, output = (f"{at}.output{part}" for part in (".input", ".weight", ""))
    key = at.replace(".blocks.0", "")
    return (
        Panel(
            f"{key}.project",
            (weight, q, k, v),
            ((Drawn(weight),), *(tuple(Drawn(part, 0, head) for part in (q, k, v)) for head in (0, 1))),
            (q, k, v),
        ),
        Panel(
            f"{key}.match",
            (products, scores),
            tuple(both_heads(f"{at}.{name}") for name in matched),
            (products, scores),
        ),
        Panel(f"{key}.hide", (hide,), tuple(both_heads(hide, s) for s in masked), (hide,)),
        Panel(f"{key}.share", (pattern,), tuple(both_heads(pattern, s) for s in patterns), (pattern,)),
        Panel(
            f"{key}.gather",
            (context, merged, blend, output),
            ((*both_heads(context), Drawn(merged)), (Drawn(blend), Drawn(output))),
            (context, output),
        ),
    )


def add_and_norm(at: str, *, written: bool = True) -> Panel:
    names = (f"{at}.norm.input", f"{at}.norm")
    return Panel(
        at.replace(".blocks.0", ""), names, (tuple(Drawn(name) for name in names),), names if written else names[:1]
    )


def feed_forward(at: str) -> Panel:
    up_weight, up, hidden, down_weight, down = names = tuple(
        f"{at}.{part}" for part in ("up.weight", "up", "hidden", "down.weight", "down")
    )
    drawn = ((up_weight, down_weight), (up, hidden), (down,))
    rows = tuple(tuple(Drawn(name) for name in row) for row in drawn)
    return Panel(at.replace(".blocks.0", ""), names, rows, (up, hidden, down))


def embedding(stack: str) -> Panel:
    tokens, positions, whole = names = tuple(f"{stack}.embedding{part}" for part in (".tokens", ".positions", ""))
    rows = ((Drawn(tokens), Drawn(positions)), (Drawn(whole), Drawn(whole, 1)))
    return Panel(f"{stack}.embedding", names, rows, (positions, whole))


ENCODER, DECODER = "encoder.blocks.0", "decoder.blocks.0"

STORY = (
    Chapter(
        "batch",
        (
            Panel("batch.source", ("src", "src_mask"), ((Drawn("src"), Drawn("src_mask")),)),
            Panel("batch.target", ("tgt", "labels"), ((Drawn("tgt"),), (Drawn("labels"),))),
        ),
    ),
    Chapter(
        "encoder.input",
        (
            Panel("table", ("encoder.embedding.tokens.weight",), ((Drawn("encoder.embedding.tokens.weight"),),)),
            embedding("encoder"),
        ),
    ),
    Chapter(
        "encoder.self_attention",
        attention(f"{ENCODER}.self_attention", ("products", "scores"), masked=(1,), patterns=(0, 1)),
    ),
    Chapter(
        "encoder.rest",
        (
            add_and_norm(f"{ENCODER}.self_attention_residual"),
            feed_forward(f"{ENCODER}.feed_forward"),
            add_and_norm(f"{ENCODER}.feed_forward_residual", written=False),
            Panel("encoder.memory", ("encoder",), ((Drawn("encoder"), Drawn("encoder", 1)),)),
        ),
    ),
    Chapter("decoder.input", (embedding("decoder"),)),
    Chapter(
        "decoder.self_attention",
        (
            *attention(f"{DECODER}.self_attention", (), masked=(0,), patterns=(0,)),
            add_and_norm(f"{DECODER}.self_attention_residual", written=False),
        ),
    ),
    Chapter(
        "decoder.cross_attention",
        (
            *attention(f"{DECODER}.cross_attention", ("scores",), masked=(1,), patterns=(0, 1)),
            add_and_norm(f"{DECODER}.cross_attention_residual", written=False),
        ),
    ),
    Chapter(
        "decoder.rest",
        (
            feed_forward(f"{DECODER}.feed_forward"),
            add_and_norm(f"{DECODER}.feed_forward_residual", written=False),
        ),
    ),
    Chapter(
        "answer",
        (
            Panel("head", ("head",), ((Drawn("head"),),), ("head",)),
            Panel("probabilities", ("probabilities",), ((Drawn("probabilities"),),), ("probabilities",)),
            Panel("loss", ("loss",), (), ("loss",)),
        ),
    ),
)

# The cell that is written out: of the source word "one" in the encoder, of the target word "und" in the decoder, in
# head 0 and column 0, unless another has more to show.
SOURCE, TARGET = Cell(row=1), Cell(row=2)
CELLS = {
    f"{ENCODER}.self_attention.q": replace(SOURCE, column=1),
    f"{ENCODER}.self_attention.products": replace(SOURCE, column=2),
    f"{ENCODER}.self_attention.scores": replace(SOURCE, column=2),
    f"{ENCODER}.self_attention.masked": Cell(sentence=1, row=0, column=2),
    f"{ENCODER}.self_attention.pattern": replace(SOURCE, column=2),
    f"{ENCODER}.feed_forward.up": replace(SOURCE, column=1),
    f"{ENCODER}.feed_forward.down": replace(SOURCE, column=2),
    f"{ENCODER}.feed_forward_residual.norm.input": replace(SOURCE, column=2),
    f"{DECODER}.self_attention.v": replace(TARGET, column=1),
    f"{DECODER}.self_attention.products": replace(TARGET, column=2),
    f"{DECODER}.self_attention.scores": replace(TARGET, column=2),
    f"{DECODER}.self_attention.masked": replace(TARGET, column=3),
    f"{DECODER}.self_attention.pattern": replace(TARGET, column=2),
    f"{DECODER}.cross_attention.k": replace(SOURCE, column=1),
    f"{DECODER}.cross_attention.v": SOURCE,
    f"{DECODER}.cross_attention.masked": Cell(sentence=1, row=0, column=2),
    f"{DECODER}.feed_forward.down": replace(TARGET, column=1),
    f"{DECODER}.feed_forward_residual.norm.input": replace(TARGET, column=3),
    "head": replace(TARGET, column=7),
    "probabilities": replace(TARGET, column=7),
}


def cell_for(name: str) -> Cell:
    return CELLS.get(name) or (SOURCE if name.startswith("encoder") else TARGET)
