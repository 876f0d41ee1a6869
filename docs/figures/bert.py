"""What the BERT of the recipe numerals-bert puts into an open gap, and where it looks to fill one that is settled."""

from pathlib import Path

import torch

import glassformer as gf
from glassformer.labs.figures import Figure, Panel, Series, Text

RECIPE = "numerals-bert"
OPEN, SETTLED = "seven hundred and [MASK]-one", "seven [MASK] and twenty-one"
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def draw(folder: Path) -> Figure:
    filler = gf.MaskFiller.load(folder)
    told = {one.token: one.probability for one in filler.fill([OPEN], top=50)[0][0]}
    tr = gf.trace(filler, SETTLED)
    pieces = filler.tokenizer.source_pieces(filler.tokenizer.encode_gaps([SETTLED])[0])
    gap, layers = pieces.index("[MASK]"), filler.model.config.layers
    looks = torch.stack([tr[f"encoder.blocks.{layer}.self_attention.pattern"][:, gap] for layer in range(layers)])
    places = range(len(TENS))
    return Figure(
        [
            Panel(
                Text(f"An open gap: {OPEN}", f"有多种填法的空：{OPEN}"),
                Text("filling", "填入的词"),
                Text("probability", "概率"),
                [
                    Series(Text("our BERT", "我们的 BERT"), places, [told.get(word, 0.0) for word in TENS], "bars"),
                    Series(
                        Text("the source's law", "文本来源的规律"), places, [1 / len(TENS)] * len(TENS), dashed=True
                    ),
                ],
                ticks=TENS,
            ),
            Panel(
                Text(f"Where the gap looks: {SETTLED}", f"空在看哪里：{SETTLED}"),
                Text("token", "词元"),
                Text("layer and head", "层与头"),
                ticks=pieces,
                rows=[f"{layer}.{head}" for layer in range(layers) for head in range(looks.shape[1])],
                heat=looks.flatten(0, 1).round(decimals=2).tolist(),
            ),
        ],
        Text(
            "Left: eight tens are equally likely there. Right: the attention of the gap's place, a row for each head.",
            "左：这里八个整十数机会均等。右：空所在位置的注意力权重，一行是一个头。",
        ),
    )
