"""How near the GPT of numerals-gpt comes to the entropy of its source, and where in a text it is surprised."""

import json
from pathlib import Path

import torch

import glassformer as gf
from glassformer.data import END
from glassformer.data.exact_source import draw as drawn
from glassformer.data.exact_source import least_loss
from glassformer.labs.figures import Figure, Panel, Series, Text

RECIPE = "numerals-gpt"
TEXT = "March 3, 2021"


def draw(folder: Path) -> Figure:
    writer = gf.TextGenerator.load(folder)
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    valid = {line["step"]: line["valid_loss"] for line in lines if "valid_loss" in line}
    texts = drawn("valid")
    tokens = sum(len(ids) + 1 for ids in writer.tokenizer.encode_target(texts))  # each text's end is one
    least = least_loss(texts) / tokens
    (ids,) = writer.tokenizer.encode_source([TEXT])  # the start, then the text
    with torch.no_grad():
        told = writer.model(torch.tensor([ids]))[0].log_softmax(-1)
    asked = [*ids[1:], END]
    nats = [-float(told[place, id]) for place, id in enumerate(asked)]
    steps = list(valid)
    return Figure(
        [
            Panel(
                Text("Down to the source's entropy", "降到文本来源的熵"),
                Text("step", "步"),
                Text("nats a token, unseen texts", "未见文本，每词元（奈特）"),
                [
                    Series(Text("our GPT", "我们的 GPT"), steps, list(valid.values())),
                    Series(Text("whoever knows the law", "知道规律的人"), steps, [least] * len(steps), dashed=True),
                ],
            ),
            Panel(
                Text(f"Where the surprise is: {TEXT}", f"意外在哪里：{TEXT}"),
                Text("token", "词元"),
                Text("surprise, nats", "意外程度（奈特）"),
                [Series(Text("our GPT", "我们的 GPT"), range(len(asked)), nats, "bars")],
                ticks=writer.tokenizer.target_pieces(asked),
            ),
        ],
        Text(
            "Left: 1,000 validation texts. Right: −ln p of each token after those before it, the end too.",
            "左：1,000 条验证文本。右：每个词元在前文之后的 −ln p，结束符也算。",
        ),
    )
