"""How long the demo's sentences are with vocabularies of several sizes, each learnt from the same text."""

from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.data.numerals import generate
from glassformer.labs.figures import Figure, Panel, Series, Text

SIZES = (330, 360, 400, 440, 480, 560, 640, 800, 1000)


def draw() -> Figure:
    train, test = generate("train"), generate("test")
    sources, targets = ([pair[side] for pair in test] for side in (0, 1))
    lengths: tuple[list[float], list[float]] = ([], [])
    for size in SIZES:
        tokenizer = Tokenizer.train(train, TokenizerOptions(kind="bpe", vocab_size=size))
        for line, ids in zip(
            lengths, (tokenizer.encode_source(sources), tokenizer.encode_target(targets)), strict=True
        ):
            line.append(sum(map(len, ids)) / len(ids))
    names = (Text("English", "英语"), Text("German", "德语"))
    return Figure(
        [
            Panel(
                Text("More pieces, fewer tokens", "片段越多，词元越少"),
                Text("pieces in the vocabulary (the demo: 480)", "词表里的片段数（演示模型：480）"),
                Text("tokens per sentence", "每句的词元数"),
                [Series(name, SIZES, line) for name, line in zip(names, lengths, strict=True)],
            )
        ]
    )
