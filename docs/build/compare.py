"""Is the file that the reader wrote the model that ships? Logits and translations of both, side by side.

python docs/build/compare.py runs/demo                  docs/build/transformer.py beside the shipped code
python docs/build/compare.py runs/demo --file mine.py   a file of your own
"""

from __future__ import annotations

import argparse
import sys
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import growing
import torch

import glassformer as gf
from glassformer.data.numerals import generate

PAIRS, BEAMED, LIMIT, TOLERANCE = 200, 40, 48, 1e-9
ROUNDING = 1e-4  # logits are as large as 25, and the shipped model's own are 1e-5 from what exact numbers would give


@dataclass(frozen=True)
class Comparison:
    logits: float  # the largest difference, in 64 bits: rounding neither makes one nor hides one
    rounded: float  # the same in 32 bits, where two right answers may differ
    greedy: int  # translations alike, of `pairs`
    beam: int  # of `beamed`
    pairs: int
    beamed: int

    @property
    def same(self) -> bool:
        return (
            self.logits <= TOLERANCE
            and self.rounded <= ROUNDING
            and (self.greedy, self.beam) == (self.pairs, self.beamed)
        )


@torch.no_grad()
def compare(folder: str | Path, text: str, pairs: int = PAIRS, beamed: int = BEAMED) -> Comparison:
    """The model in `folder`, run by the shipped code and by the file of this `text`."""
    names: Any = growing.run(text)
    model, tokenizer = names["load"](str(folder))
    shipped = gf.Translator.load(folder)
    sources, targets = (list(texts) for texts in zip(*generate("test", size=pairs), strict=True))
    src = names["table"](tokenizer.encode_source(sources))
    tgt = names["table"]([[names["START"], *ids] for ids in tokenizer.encode_target(targets)])
    kept = tgt != names["PAD"]  # of padding nobody asks
    ours = names["translate"](model, tokenizer, sources)
    theirs = [best[0].text for best in shipped.translate(sources, max_new_tokens=LIMIT)]
    beams = [names["beam"](model, names["table"](tokenizer.encode_source([one]))) for one in sources[:beamed]]
    found = shipped.translate(sources[:beamed], beam=4, max_new_tokens=LIMIT)
    rounded, exact = (
        (mine(src, tgt) - other(src, tgt, src != names["PAD"]))[kept].abs().nan_to_num(float("inf")).max().item()
        for mine, other in ((model, shipped.model), (deepcopy(model).double(), deepcopy(shipped.model).double()))
    )
    return Comparison(
        logits=exact,
        rounded=rounded,
        greedy=sum(a == b for a, b in zip(ours, theirs, strict=True)),
        beam=sum(a == b[0].text for a, b in zip(tokenizer.decode_target(beams), found, strict=True)),
        pairs=len(sources),
        beamed=len(beams),
    )


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder", type=Path, help="a model of the recipe `numerals`, as `make demo` trains it")
    options.add_argument("--file", type=Path, default=growing.WHOLE, help="the file to compare")
    options.add_argument("--pairs", type=int, default=PAIRS, help="how many held-out pairs; beam search takes a fifth")
    asked = options.parse_args()
    if not 5 <= asked.pairs <= 1000:
        options.error(f"--pairs {asked.pairs}: choose 5 to 1000")
    for path, fix in ((asked.folder / "model.safetensors", "train it: make demo"), (asked.file, "name your file")):
        if not path.is_file():
            options.error(f"{path} is not there; {fix}")
    found = compare(asked.folder, asked.file.read_text(encoding="utf-8"), asked.pairs, asked.pairs // 5)
    print(f"logits        {found.logits:.1e} is the largest difference, {found.pairs} held-out pairs, in 64 bits")
    print(f"              {found.rounded:.1e} in 32 bits, with their rounding")
    print(f"greedy search {found.greedy} of {found.pairs} translations alike")
    print(f"beam search   {found.beam} of {found.beamed} translations alike")
    print("the same model" if found.same else "NOT the same model")
    return 0 if found.same else 1


if __name__ == "__main__":
    sys.exit(main())
