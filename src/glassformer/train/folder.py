"""A run's folder: who may train there, what may be replaced, and the recipe it holds."""

from __future__ import annotations

import os
import shutil
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from glassformer.common.errors import GlassformerError, RunError, why
from glassformer.common.files import PARTIAL, remove_partial, try_lock
from glassformer.data.labelled import FILE as LABELS
from glassformer.train import checkpoint
from glassformer.train.parallel import World
from glassformer.train.recipe import Recipe, parse, set_value
from glassformer.weights import bundle
from glassformer.weights.pretrained.fine_tuning import FILES

LOCK = ".glassformer.lock"
# What a start writes to a folder before all is checked; the recipe comes last.
BEGINNINGS = (LABELS, *bundle.VOCABULARY, *FILES)
# What a folder with a run in it also holds, besides its recipe.
TRACES = (LOCK, "prepared", "checkpoints", "model.safetensors", *bundle.VOCABULARY)


# What may change between the start of a run and its continuation.
CHANGEABLE = {"steps", "log_every", "save_every", "valid_every", "keep_last", "patience", "ship"}
CHANGEABLE |= {"parallel", "tensorboard", "compile"}


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Make `folder`, or open the run in it, and lock it against other processes.

    A folder that holds a user's things and no run is refused. The system drops the lock with the process that holds it,
    however that ends. A start that comes to no recipe leaves nothing but, after a signal, the prepared text.
    """
    recipe, new = folder / "recipe.toml", [place for place in (folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {entry.name for entry in folder.iterdir() if not entry.match(PARTIAL.format("*"))}
        killed = BEGINNINGS if LOCK in names else ()
        if names - {LOCK, "prepared", *killed} and not ("recipe.toml" in names and names.intersection(TRACES)):
            raise RunError(f"{folder} is not empty and holds no run of ours; choose another --out")
        file = (folder / LOCK).open("a")
    except OSError as error:
        raise RunError(f"{folder} cannot be written: {why(error)}; choose another --out") from None
    with file:
        if not try_lock(file) or not os.path.samefile(file.fileno(), folder / LOCK):
            raise RunError(f"another process is training in {folder}; wait until it ends, or choose another --out")
        remove_partial(folder)
        if not recipe.exists():
            remove(folder, *BEGINNINGS)
        try:
            yield
        except Exception:
            if not recipe.exists():
                shutil.rmtree(folder / "prepared", ignore_errors=True)
            if LOCK not in names:
                remove(folder, LOCK)
            raise
        finally:
            if not recipe.exists():
                remove(folder, LOCK, *BEGINNINGS)
                for place in (folder / "prepared", *new):
                    with suppress(OSError):  # it is not empty
                        place.rmdir()


def remove(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).unlink(missing_ok=True)


@contextmanager
def open_run(recipe: Recipe, folder: Path, resume: bool, world: World) -> Iterator[Recipe]:
    """The run's folder, held by the first process, and the recipe that holds.

    Where it cannot be had, the first process says why, and the others end without a word.
    """
    with ExitStack() as stack:
        try:
            if world.first:
                stack.enter_context(lock_folder(folder))
                recipe = open_folder(recipe, folder, resume)
        except GlassformerError:
            world.broadcast(0)
            raise
        if not world.broadcast(1):
            raise SystemExit(2)
        begun = (folder / "recipe.toml").exists()
        yield check_continuation(recipe, saved_recipe(folder)) if begun and not world.first else recipe


def open_folder(recipe: Recipe, folder: Path, resume: bool) -> Recipe:
    """Check that the folder holds no run, or this very one, and no finished model that a run from step 0 on would
    replace; return the recipe that holds."""
    if not (folder / "recipe.toml").exists():
        return recipe
    if not resume:
        raise RunError(f"{folder} holds another run; continue it with --resume, or choose another --out")
    recipe = check_continuation(recipe, saved_recipe(folder))
    model, files = folder / "model.safetensors", checkpoint.listing(folder / "checkpoints")
    if os.path.lexists(model) and all(checkpoint.read(file) is None for file in reversed(files)):
        found = "all its checkpoints are damaged" if files else "its checkpoints are gone"
        raise RunError(
            f"{folder} holds a finished model, but {found}: training would begin at step 0 and replace it. "
            f"Train into another --out; or, if this model may go, move {model} away first"
        )
    return recipe


def saved_recipe(folder: Path, changes: tuple[str, ...] = ()) -> Recipe:
    """The recipe a run was started with, `--set` changes applied."""
    path = folder / "recipe.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{folder} holds no run to continue (no recipe.toml); start one without --resume") from None
    except OSError as error:
        raise RunError(f"{path} cannot be read: {why(error)}") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path} is damaged: {error}") from None
    if isinstance(values.get("data"), dict):
        values["data"].pop("root", None)  # the paths below it are whole already
    for change in changes:
        set_value(values, change)
    return parse(values)


def check_continuation(asked: Recipe, before: Recipe) -> Recipe:
    """The recipe of a continuation: what was, but for what may change."""
    if asked.train.batch_tokens == "auto":
        asked = replace(asked, train=replace(asked.train, batch_tokens=before.train.batch_tokens))
    now, then = asked.to_dict(), before.to_dict()
    for section in ("data", "tokenizer", "model", "train"):
        a, b = now[section], then[section]
        for name in a | b:
            free = name in ("root", "max_unknown") or (section == "train" and name in CHANGEABLE)
            if not free and a.get(name) != b.get(name):
                was, wanted = (repr(x[name]) if name in x else "its default" for x in (b, a))
                raise RunError(
                    f"--resume: {section}.{name} was {was} when this run began and is {wanted} now; "
                    f"leave it as it was, or start a new run with another --out"
                )
    return asked


def resume_hint(folder: Path) -> str:
    """The last saved step of an interrupted run, and how to resume it."""
    if not (folder / "recipe.toml").exists():
        return "no step is saved yet; begin again with the same command"
    saved = checkpoint.listing(folder / "checkpoints")
    step = f"step {checkpoint.step_of(saved[-1])} is saved" if saved else "no step is saved yet"
    return f"{step}; go on with: glassformer train --resume --out {folder}"
