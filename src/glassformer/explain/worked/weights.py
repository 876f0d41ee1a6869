"""What is given: the words, the two sentences, the sizes of the model and its weights.

Every matrix stands as the formulas use it, `x W`: one row per input, one column per output. The entries were searched
for among -1, -0.5, 0, 0.5 and 1 until the model translated both sentences with few of them other than zero.
"""

from __future__ import annotations

from typing import Any

Matrix = list[list[float]]

WORDS = ("<pad>", "<start>", "<end>", "twenty", "one", "ein", "und", "zwanzig")
PAD, START, END = 0, 1, 2

PAIRS = (("twenty one", "ein und zwanzig"), ("twenty", "zwanzig"))

CONFIG: dict[str, Any] = {
    "vocab_size": len(WORDS), "d_model": 4, "heads": 2, "d_ff": 4, "layers": 1, "norm": "post",
    "positions": "sinusoidal", "activation": "relu", "bias": False, "tied": True, "dropout": 0.0, "max_length": 8,
    "pad_id": PAD, "start_id": START, "end_id": END,
}  # fmt: skip

EMBEDDING: Matrix = [
    [0, 0, 0, 0],  # <pad>
    [0, 0.5, 0, -0.5],  # <start>
    [-1, -1, 1, 1],  # <end>
    [0, 0.5, 0, 1],  # twenty
    [-0.5, 0, -1, 0],  # one
    [1, 1, -1, -1],  # ein
    [-1, 1, 1, -1],  # und
    [1, -1, -1, 1],  # zwanzig
]

ATTENTION: dict[str, dict[str, Matrix]] = {
    "encoder.blocks.0.self_attention": {
        "W_Q": [[0, 0, 0, -1], [-1, -1, 1, 0], [0, 1, 0, 0], [0, -1, 0, 1]],
        "W_K": [[1, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
        "W_V": [[-1, 0, 0, 0], [0, 0, 0, 1], [0, -1, 1, 0], [0, 0, 0, 0]],
        "W_O": [[0, 0, -1, 0], [0.5, 0, 0, 0], [0, 0, 0, -1], [0, 1, 0, 0]],
    },
    "decoder.blocks.0.self_attention": {
        "W_Q": [[0, 0, 0, 0], [0, 0.5, 0, 0], [1, 0, 1, 0], [0, 0, 1, 0.5]],
        "W_K": [[0, 0, 0, 0], [0, 0, 0, 0.5], [0.5, 0, -0.5, 0], [0, -0.5, 0, 0]],
        "W_V": [[0, 1, 0, -1], [0, 0, 0, 0.5], [1, -1, 0, 0], [0, -1, 1, 0]],
        "W_O": [[1, 0, 0, 0], [-1, 0, 1, -1], [-1, 0, 0, 0], [0, -1, 0, 0]],
    },
    "decoder.blocks.0.cross_attention": {
        "W_Q": [[-1, 0, 0, 0], [1, 0, 0.5, 1], [0, 1, 0, 0], [0, 1, -0.5, 0]],
        "W_K": [[1, 1, 0, 0], [0, 0, -1, 0], [-1, 1, 0, 0], [0, 0, 0, -1]],
        "W_V": [[0, -1, 1, 0], [-1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
        "W_O": [[-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, -0.5], [0, -1, 0.5, 0]],
    },
}

FEED_FORWARD: dict[str, dict[str, Matrix]] = {
    "encoder.blocks.0.feed_forward": {
        "up": [[1, 0, 0, 0], [0, -0.5, -1, 0], [0, -1, 0, 0], [0, 0, 0, 1]],
        "down": [[0, 1, 0, 0], [1, 0, 0, -0.5], [0, 0, 1, 0], [0, 0, 1, 0]],
    },
    "decoder.blocks.0.feed_forward": {
        "up": [[-1, 1, 0, 0], [0, 0, 0, -1], [0, 0, 1, 0], [1, 0, 0, 0]],
        "down": [[0, 0, 1, 0], [0, -0.5, 0, 1], [-1, 1, 0, 0], [0, 0, -1, 0]],
    },
}
