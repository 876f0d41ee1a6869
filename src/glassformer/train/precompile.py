"""Compiling while the text is prepared.

Compiling a step takes half a minute. Where the recipe alone fixes the shape of the batches, a second process takes one
step of such a model meanwhile: the run then finds the compiled code in the compiler's cache on the disk.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from contextlib import closing, suppress

import numpy as np

from glassformer.common.version import child_environment
from glassformer.data import UNK, Batch, BatchOptions
from glassformer.data.batch import packed_shape
from glassformer.data.shapes import Shape
from glassformer.train import parallel
from glassformer.train.feed import local_rows
from glassformer.train.parallel import World
from glassformer.train.recipe import Recipe, parse, recipe_text
from glassformer.train.start import load_base_model
from glassformer.train.step import Stepper, should_compile

HEAD_START = 10.0  # seconds; a process that is not so far ahead saves nothing, since it had to start first
PATIENCE = 60.0  # seconds, about what compiling takes


def fixed_shape(recipe: Recipe) -> Shape | None:
    """The shape of every batch, where it is the same whatever the text is and so is the size of the vocabulary."""
    tokens = recipe.train.batch_tokens
    known = recipe.train.pack and recipe.train.objective != "denoise"  # its sides' widths are the texts' affair
    if not known or not isinstance(tokens, int) or recipe.tokenizer.kind == "words":
        return None
    options = BatchOptions(tokens=tokens, width=recipe.row_width)
    shapes = {
        packed_shape(longest, options, recipe.objective.monolingual) for longest in (1, recipe.data.max_tokens + 1)
    }
    return shapes.pop() if len(shapes) == 1 else None


class PrecompileProcess:
    """A process that compiles, or none where it would not help."""

    def __init__(self, recipe: Recipe | None, world: World) -> None:
        self.begun = time.monotonic()
        self.process: subprocess.Popen[bytes] | None = None
        if recipe is not None:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "glassformer.train.precompile", str(world.device)],
                env=child_environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            assert self.process.stdin is not None
            with suppress(OSError), self.process.stdin as stream:  # it has died, and is not missed
                stream.write(recipe_text(recipe).encode())

    def wait(self) -> None:
        """Let it finish what the run would have to do itself; however it ends, the run goes on and compiles."""
        if self.process is not None and time.monotonic() - self.begun > HEAD_START:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(PATIENCE)
        self.close()

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def precompiling(recipe: Recipe, world: World, fresh: bool) -> closing[PrecompileProcess]:
    """A process that compiles ahead of a `fresh` run, whose text is still to be prepared."""
    alone = world.size == 1 and world.device.type == "cuda"  # on a CPU it would take the cores that prepare
    useful = fresh and alone and should_compile(recipe.train, world.device) and fixed_shape(recipe) is not None
    return closing(PrecompileProcess(recipe if useful else None, world))


def trial_step(recipe: Recipe, world: World) -> None:
    """One step of the recipe's model as the run will take it, on a batch that says nothing."""
    shape = fixed_shape(recipe)
    assert shape is not None
    ids = np.full((shape.rows, shape.tgt), UNK, dtype=np.int64)
    places = np.tile(np.arange(shape.tgt), (shape.rows, 1))
    batch = Batch(ids, ids == UNK, ids.copy(), ids.copy(), ids.size, shape.rows, places, places.copy())
    size = recipe.tokenizer.vocab_size
    sizes = (size, None if recipe.tokenizer.joint else size)
    if (base := load_base_model(recipe.train.start) if recipe.train.start else None) is not None:
        sizes = (base.config.vocab_size, base.config.src_vocab_size)
    model = recipe.objective.model(recipe.sized_config(*sizes))
    stepper = Stepper(model.to(world.device).train(), recipe.train, world)
    rows = local_rows(batch, world, recipe.train.accumulate, recipe.train.objective)
    stepper(rows, recipe.train.lr, recipe.train.seed)


if __name__ == "__main__":
    trial_step(parse(tomllib.load(sys.stdin.buffer)), parallel.init_distributed(sys.argv[1]))
