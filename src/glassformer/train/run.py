"""From a recipe to a bundle: vocabulary, corpus, training, and the folder that holds it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from glassformer.common.errors import ConfigError, DataError, InputError, RunError, WeightsError, why
from glassformer.common.files import write_text
from glassformer.common.report import Report, process_age
from glassformer.data import Batches, BatchOptions, Corpus, Pair, Store, Tokenizer, prepare, read_pairs
from glassformer.data.labelled import FILE as LABELS
from glassformer.data.labelled import ImageTokenizer, LabelledTokenizer, Labels
from glassformer.model import Model
from glassformer.train import checkpoint, parallel
from glassformer.train.budget import check_memory, find_budget
from glassformer.train.folder import open_run, remove_unstarted_run, resume_hint
from glassformer.train.loop import Interrupted, Judge, Trainer, signal_handlers, stop_at_once
from glassformer.train.metrics import draw_curve
from glassformer.train.parallel import World
from glassformer.train.precompile import PrecompileProcess, precompiling
from glassformer.train.recipe import Recipe, recipe_text
from glassformer.train.start import base_labels, base_vocabulary, copy_base_weights, load_vocabulary, save
from glassformer.train.tuning import select_trainable
from glassformer.weights import bundle
from glassformer.weights import lora as adapter
from glassformer.weights.hub import locate
from glassformer.weights.pretrained.fine_tuning import PublishedImages, copy_config, is_published

MakeJudge = Callable[[Recipe, Tokenizer], Judge]


def train(
    recipe: Recipe,
    folder: str | Path,
    *,
    resume: bool = False,
    device: str = "auto",
    report: Report | None = None,
    make_judge: MakeJudge | None = None,
) -> Path:
    """Train by `recipe`; when this returns, `folder` is a bundle. Validation by translation is handed in."""
    folder, report = Path(folder), report or Report()
    world = parallel.init_distributed(device)
    if not world.first:
        report = Report(quiet=True)
    try:
        with signal_handlers(stop_at_once), open_run(recipe, folder, resume, world) as recipe:
            try:
                return _train(recipe, folder, world, report, make_judge)
            except (ConfigError, DataError, InputError, WeightsError):
                if world.first and not resume:
                    remove_unstarted_run(folder)
                raise
    except Interrupted as heard:
        report.say(f"stopped; {resume_hint(folder)}")
        raise SystemExit(128 + heard.number) from None
    except OSError as error:
        where = error.filename or folder
        raise RunError(f"{where} cannot be written: {why(error)}; {resume_hint(folder)}") from None
    finally:
        report.clear()
        world.leave()


@dataclass(frozen=True)
class PreparedRun:
    """Everything made of a recipe and its text before the first step; a recipe that gets here can be trained."""

    recipe: Recipe
    tokenizer: Tokenizer
    model: Model
    batches: Batches
    valid: Batches | None


def prepare_run(recipe: Recipe, folder: Path, world: World, report: Report) -> PreparedRun:
    recipe.check_files()
    if recipe.train.tensorboard and find_spec("tensorboard") is None:
        raise RunError("train.tensorboard needs tensorboard: pip install 'glassformer[log]'")
    check_memory(recipe.least_config(), recipe.train, world)  # before the vocabulary is known, and after
    tokenizer = prepare_tokenizer(recipe, folder, world, report)
    store = prepare_store(recipe, recipe.data.train, tokenizer, folder / "prepared" / "train", world, report)
    valid = (
        prepare_store(recipe, recipe.data.valid, tokenizer, folder / "prepared" / "valid", world, report)
        if recipe.data.valid
        else None
    )
    config = recipe.model_config(tokenizer)
    check_memory(config, recipe.train, world)
    model = recipe.objective.model(config)
    if recipe.train.start and not checkpoint.listing(folder / "checkpoints"):
        names = tokenizer.labels.names if isinstance(tokenizer, LabelledTokenizer) else ()
        report.say(copy_base_weights(model, recipe.train.start, names))
    if said := select_trainable(model, recipe.train):
        report.say(said)
    check_lengths(model, [store, valid] if valid else [store], recipe)
    if recipe.train.batch_tokens == "auto":
        found = find_budget(recipe, [store, valid] if valid else [store], model, world)
        report.say(f"batch_tokens = {found}, found automatically")
        recipe = replace(recipe, train=replace(recipe.train, batch_tokens=found))
    assert isinstance(recipe.train.batch_tokens, int)
    options = BatchOptions(tokens=recipe.train.batch_tokens, seed=recipe.train.seed, shapes=recipe.train.shapes)
    valid_batches = Batches(valid, replace(options, shapes=4)) if valid else None
    batches = Batches(store, replace(options, pack=recipe.train.pack, width=recipe.row_width))
    return PreparedRun(recipe, tokenizer, model, batches, valid_batches)


def _train(recipe: Recipe, folder: Path, world: World, report: Report, make_judge: MakeJudge | None) -> Path:
    fresh = not vocabulary_file(recipe, folder).exists()
    with precompiling(recipe, folder, world, fresh) as ahead:
        return _train_beside(recipe, folder, world, report, make_judge, ahead)


def _train_beside(
    recipe: Recipe, folder: Path, world: World, report: Report, make_judge: MakeJudge | None, ahead: PrecompileProcess
) -> Path:
    made = prepare_run(recipe, folder, world, report)
    if world.first and made.recipe != recipe:
        write_text(folder / "recipe.toml", recipe_text(made.recipe))
    recipe, tokenizer, model, batches = made.recipe, made.tokenizer, made.model, made.batches
    judge = make_judge(recipe, tokenizer) if make_judge else None
    if recipe.train.metric == "bleu" and (judge is None or (recipe.train.parallel == "fsdp" and world.size > 1)):
        raise ConfigError("train.metric = 'bleu' needs a judge that translates, and whole models: parallel = 'ddp'")
    trainer = Trainer(recipe, model, batches, made.valid, folder, world, report, judge)
    report.say(f"{describe(model, batches, trainer, recipe)}; ready {process_age():.0f} s after the start")
    saved = checkpoint.newest(folder / "checkpoints", report.say) if world.first else None
    world.barrier()
    if not world.first:
        saved = checkpoint.newest(folder / "checkpoints", report.say)
    if saved is not None:
        trainer.restore(saved)
        report.say(f"resumed at step {saved.progress.step}")
        if trainer.finished():
            report.say("its training had ended; to train on, add: --set train.steps=MORE")
    ahead.wait()
    trainer.run()
    tensors = trainer.final_weights()
    if world.first:
        if recipe.train.lora_rank:
            names = tokenizer.labels.names if isinstance(tokenizer, LabelledTokenizer) else ()
            adapter.save(folder, model, tensors, recipe.train.lora_alpha, recipe.train.start, names)
            tensors = adapter.merged(tensors, recipe.train.lora_alpha / recipe.train.lora_rank)
            report.say(f"the adapter is in {folder / adapter.TENSORS}; the model has it merged")
        save(folder, model, tensors, tokenizer)
        report.say(f"the model is in {folder}")
        curve = draw_curve(folder)
        if curve is not None:
            report.say(f"the learning curve is in {curve}")
    world.barrier()
    return folder


def vocabulary_file(recipe: Recipe, folder: Path) -> Path:
    """The file that is there once the vocabulary is known."""
    if is_published(folder):
        return folder / "config.json"
    own = folder / "tokenizer.tgt.json"
    return own if own.exists() or not (recipe.tokenizer.joint or recipe.train.start) else folder / "tokenizer.json"


def prepare_tokenizer(recipe: Recipe, folder: Path, world: World, report: Report) -> Tokenizer:
    """The run's tokenizer, learnt from its training pairs the first time."""
    if recipe.objective.labelled and world.first:
        known = () if (folder / LABELS).exists() else base_labels(recipe.train.start)
        Labels.ensure(folder, recipe.data.train, bool(checkpoint.listing(folder / "checkpoints")), known)
    world.barrier()
    names = Labels.load(folder) if recipe.objective.labelled else None
    if names is not None and names.image is not None:
        if world.first and recipe.train.start and not checkpoint.listing(folder / "checkpoints"):
            copy_config(locate(recipe.train.start), folder, names)
        world.barrier()
        return PublishedImages(folder, names) if is_published(folder) else ImageTokenizer(names)
    marker = vocabulary_file(recipe, folder)
    if world.first and not marker.exists():
        if checkpoint.listing(folder / "checkpoints"):
            raise RunError(f"{marker} is missing, and the checkpoints know no other vocabulary; copy it back")
        if recipe.train.start:
            made = base_vocabulary(recipe.train.start, (*recipe.data.train, *recipe.data.valid, *recipe.data.test))
        else:
            report.show("learning the vocabulary", every=0)
            pairs: Iterable[Pair] = chain.from_iterable(map(read_pairs, recipe.data.train))
            if names is not None:
                pairs = (("", text) for text, _ in pairs)  # no label becomes a piece
            languages = [source.to for source in recipe.data.train if source.to is not None]
            counting = report.counting(f"learning the vocabulary, {recipe.objective.content.split()[-1]} read")
            made = Tokenizer.train(pairs, recipe.tokenizer, counting, languages, recipe.special_pieces)
        bundle.save_tokenizer(folder, made)  # the marker is written last
        size = f"{made.tgt_size} pieces" + ("" if made.joint else f" (source {made.src_size})")
        whence = f"of {recipe.train.start}" if recipe.train.start else f"learnt {process_age():.0f} s after the start"
        report.say(f"vocabulary: {size}, {whence}")
    world.barrier()
    found = load_vocabulary(folder)
    return found if names is None else LabelledTokenizer(found, names)


def prepare_store(
    recipe: Recipe, sources: tuple[Corpus, ...], tokenizer: Tokenizer, folder: Path, world: World, report: Report
) -> Store:
    what = recipe.objective.content.split()[-1]
    if world.first:
        counting = report.counting(f"preparing {folder.name}, {what}")
        store = prepare(sources, tokenizer, folder, recipe.data.filter, counting)
        counts = store.report
        left_out = [
            f"{counts[key]:,} {words}"
            for key, words in (
                ("empty", "empty"),
                ("too_long", f"longer than {recipe.data.max_tokens} tokens"),
                ("too_short", "too short"),
                ("mismatched", "of unequal length"),
            )
            if counts[key]
        ]
        sizes = f"{counts['tgt_tokens']:,} {'pixels' if what == 'images' else 'tokens'}"
        if what == "pairs":
            sizes = f"{counts['src_tokens']:,} source and {counts['tgt_tokens']:,} target tokens"
        told = f"; left out: {', '.join(left_out)}" if left_out else ""
        report.say(f"{folder.name}: {counts['kept']:,} {what}, {sizes}{told}")
    world.barrier()
    store, noise = prepare(sources, tokenizer, folder, recipe.data.filter), recipe.objective.noise
    return (
        store
        if noise is None
        else store.with_noise(noise(recipe.train, tokenizer, recipe.special_pieces), recipe.train.seed)
    )


def check_lengths(model: Model, stores: list[Store], recipe: Recipe) -> None:
    """The longest sentence must fit the position table and a batch; say so before training starts."""
    longest = max(max(int(src.max()), int(tgt.max()) + 1) for src, tgt in (store.lengths() for store in stores))
    tokens = recipe.train.batch_tokens
    images = recipe.objective.content == "images"
    if tokens != "auto" and tokens < longest:
        what = f"image, {longest} pixels" if images else f"sentence, {longest} tokens"
        raise ConfigError(
            f"train.batch_tokens = {tokens} is smaller than the longest {what}; raise it to {longest} or more"
            + ("" if images else ", or lower data.max_tokens")
        )
    needed = recipe.data.max_tokens + recipe.objective.margin
    if not images and model.config.positions in ("sinusoidal", "learned") and needed > model.config.max_length:
        raise ConfigError(
            f"data.max_tokens = {recipe.data.max_tokens} and the end token do not fit model.max_length = "
            f"{model.config.max_length}; lower it to {model.config.max_length - recipe.objective.margin}"
            + ("" if recipe.train.start else f", or set model.max_length to {needed} or more")
        )


def describe(model: Model, batches: Batches, trainer: Trainer, recipe: Recipe) -> str:
    count = sum(p.numel() for p in model.parameters())
    plan = batches.epoch(trainer.progress.epoch)
    where: Any = trainer.world.device
    if where.type == "cuda":
        where = torch.cuda.get_device_name(where)
    return (
        f"{count:,} parameters; {len(plan)} batches an epoch in {len(batches.shapes)} shapes, "
        f"{plan.padding_share:.0%} of them padding; {trainer.stepper.precision} on {where}"
        + (f", {trainer.world.size} processes ({recipe.train.parallel})" if trainer.world.size > 1 else "")
    )
