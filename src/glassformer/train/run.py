"""From a recipe to a bundle: vocabulary, corpus, training, and the folder that holds it all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Literal

import torch

from glassformer.common.errors import ConfigError, DataError, RunError, why
from glassformer.common.files import write_text
from glassformer.common.report import Report, process_age
from glassformer.data import Batches, BatchOptions, Corpus, Pair, Store, Tokenizer, prepare, read_pairs
from glassformer.data.labelled import FILE as LABELS
from glassformer.data.labelled import ImageTokenizer, LabelledTokenizer, Labels
from glassformer.model import Model
from glassformer.train import checkpoint, parallel
from glassformer.train.budget import check_memory, find_budget
from glassformer.train.folder import open_run, resume_hint
from glassformer.train.loop import Interrupted, Judge, Trainer, signal_handlers, stop_at_once
from glassformer.train.metrics import draw_curve
from glassformer.train.parallel import World
from glassformer.train.precompile import precompiling
from glassformer.train.recipe import Recipe, recipe_text
from glassformer.train.start import base_labels, base_vocabulary, copy_base_weights, load_vocabulary, save
from glassformer.train.tuning import count_parameters, select_trainable
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
            return _train(recipe, folder, world, report, make_judge)
    except Interrupted as heard:
        report.say(f"stopped; {resume_hint(folder)}")
        raise SystemExit(128 + heard.number) from None
    except OSError as error:
        where = error.filename or folder
        raise RunError(f"{where} cannot be written: {why(error)}; {resume_hint(folder)}") from None
    finally:
        report.clear()
        world.leave()


def _train(recipe: Recipe, folder: Path, world: World, report: Report, make_judge: MakeJudge | None) -> Path:
    checkpoints = folder / "checkpoints"
    fresh = not vocabulary_file(recipe, folder).exists()
    with precompiling(recipe, world, fresh) as precompile:
        run = prepare_run(recipe, folder, world, report)
        recipe, model, tokenizer = run.recipe, run.model, run.tokenizer
        judge = make_judge(recipe, tokenizer) if make_judge else None
        if recipe.train.metric == "bleu" and (judge is None or (recipe.train.parallel == "fsdp" and world.size > 1)):
            raise ConfigError("train.metric = 'bleu' needs a judge that translates, and whole models: parallel = 'ddp'")
        trainer = Trainer(recipe, model, run.batches, run.valid, folder, world, report, judge)
        report.say(f"{describe(trainer)}; ready {process_age():.0f} s after the start")
        saved = checkpoint.newest(checkpoints, report.say) if world.first else None
        world.barrier()
        if not world.first:
            saved = checkpoint.newest(checkpoints, report.say)
        if saved is not None:
            trainer.restore(saved)
            report.say(f"resumed at step {saved.progress.step}")
            if trainer.finished():
                key = "steps" if saved.progress.step >= recipe.train.steps else "patience"
                report.say(f"its training had ended; to train on, add: --set train.{key}=MORE")
        if world.first:  # all is checked
            write_text(folder / "recipe.toml", recipe_text(recipe))
        precompile.wait()
    trainer.run()
    report.say(trainer.ending())
    tensors = trainer.final_weights()
    if world.first:
        if recipe.train.lora_rank:
            adapter.save(folder, model, tensors, recipe.train.lora_alpha, recipe.train.start, tokenizer.label_names)
            tensors = adapter.merged(tensors, recipe.train.lora_alpha / recipe.train.lora_rank)
            report.say(f"the adapter is in {folder / adapter.TENSORS}; the model has it merged")
        save(folder, model, tensors, tokenizer)
        report.say(f"the model is in {folder}")
        if curve := draw_curve(folder):
            report.say(f"the learning curve is in {curve}")
    world.barrier()
    return folder


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
    setup = Setup(recipe, folder, world, report)
    tokenizer = setup.tokenizer()
    store = setup.store("train", tokenizer)
    valid = setup.store("valid", tokenizer) if recipe.data.valid else None
    config = recipe.model_config(tokenizer)
    check_memory(config, recipe.train, world)
    model = recipe.objective.model(config)
    if recipe.train.start and not setup.resumed:
        report.say(copy_base_weights(model, recipe.train.start, tokenizer.label_names))
    if trainable := select_trainable(model, recipe.train):
        report.say(trainable)
    stores = [store, valid] if valid else [store]
    check_lengths(model, stores, recipe)
    if recipe.train.batch_tokens == "auto":
        found = find_budget(recipe, stores, model, world)
        report.say(f"batch_tokens = {found}, found automatically")
        recipe = replace(recipe, train=replace(recipe.train, batch_tokens=found))
    assert isinstance(recipe.train.batch_tokens, int)
    options = BatchOptions(tokens=recipe.train.batch_tokens, seed=recipe.train.seed, shapes=recipe.train.shapes)
    valid_batches = Batches(valid, replace(options, shapes=4)) if valid else None
    batches = Batches(store, replace(options, pack=recipe.train.pack, width=recipe.row_width))
    return PreparedRun(recipe, tokenizer, model, batches, valid_batches)


def vocabulary_file(recipe: Recipe, folder: Path) -> Path:
    """The last file of the vocabulary to be written."""
    if is_published(folder):
        return folder / "config.json"
    own = folder / "tokenizer.tgt.json"
    return own if own.exists() or not (recipe.tokenizer.joint or recipe.train.start) else folder / "tokenizer.json"


@dataclass(frozen=True)
class Setup:
    """Makes the tokenizer and the stores of a run: the first process writes them, then all read them."""

    recipe: Recipe
    folder: Path
    world: World
    report: Report

    @property
    def resumed(self) -> bool:
        return bool(checkpoint.listing(self.folder / "checkpoints"))

    @property
    def items(self) -> str:
        """What the corpora hold: pairs, texts or images."""
        return self.recipe.objective.content.split()[-1]

    def tokenizer(self) -> Tokenizer:
        """The run's tokenizer, learnt from its training pairs the first time."""
        recipe, folder = self.recipe, self.folder
        labels = self.labels() if recipe.objective.labelled else None
        if labels is not None and labels.image is not None:
            if self.world.first and recipe.train.start and not self.resumed:
                copy_config(locate(recipe.train.start), folder, labels)
            self.world.barrier()
            return PublishedImages(folder, labels) if is_published(folder) else ImageTokenizer(labels)
        marker = vocabulary_file(recipe, folder)
        if self.world.first and not marker.exists():
            if self.resumed:
                raise RunError(f"{marker} is missing, and the checkpoints know no other vocabulary; copy it back")
            self.make_vocabulary()
        self.world.barrier()
        tokenizer = load_vocabulary(folder)
        return tokenizer if labels is None else LabelledTokenizer(tokenizer, labels)

    def labels(self) -> Labels:
        if self.world.first and Labels.load(self.folder) is None:
            if self.resumed:
                raise RunError(f"{self.folder / LABELS} is missing, and the checkpoints know no labels; copy it back")
            Labels.collect(self.recipe.data.train, base_labels(self.recipe.train.start)).save(self.folder)
        self.world.barrier()
        labels = Labels.load(self.folder)
        assert labels is not None
        return labels

    def make_vocabulary(self) -> None:
        """Save the vocabulary of the model to start from, or a learnt one."""
        data, start = self.recipe.data, self.recipe.train.start
        if start:
            made, origin = base_vocabulary(start, (*data.train, *data.valid, *data.test)), f"of {start}"
            asked = self.recipe.tokenizer
            if names := ", ".join(f"tokenizer.{f.name}" for f in fields(asked) if getattr(asked, f.name) != f.default):
                self.report.say(f"{names}: not used, for train.start brings its own vocabulary")
        else:
            self.report.show("learning the vocabulary", every=0)
            pairs: Iterable[Pair] = chain.from_iterable(map(read_pairs, data.train))
            if self.recipe.objective.labelled:
                pairs = (("", text) for text, _ in pairs)  # no label becomes a piece
            languages = [corpus.to for corpus in data.train if corpus.to is not None]
            counting = self.report.counting(f"learning the vocabulary, {self.items} read")
            special = self.recipe.special_pieces
            made = Tokenizer.train(pairs, self.recipe.tokenizer, counting, languages, special)
            origin = f"learnt {process_age():.0f} s after the start"
        bundle.save_tokenizer(self.folder, made)
        size = f"{made.tgt_size} pieces" + ("" if made.joint else f" (source {made.src_size})")
        self.report.say(f"vocabulary: {size}, {origin}")

    def store(self, split: Literal["train", "valid"], tokenizer: Tokenizer) -> Store:
        recipe, folder = self.recipe, self.folder / "prepared" / split
        corpora: tuple[Corpus, ...] = getattr(recipe.data, split)
        if self.world.first:
            counting = self.report.counting(f"preparing {split}, {self.items}")
            counts = prepare(corpora, tokenizer, folder, recipe.data.filter, counting).report
            reasons = {"bad": "bad lines", "empty": "empty", "too_long": f"longer than {recipe.data.max_tokens} tokens"}
            reasons |= {"too_short": "too short", "mismatched": "of unequal length"}
            left_out = ", ".join(f"{counts[key]:,} {words}" for key, words in reasons.items() if counts[key])
            sizes = f"{counts['tgt_tokens']:,} {'pixels' if self.items == 'images' else 'tokens'}"
            if self.items == "pairs":
                sizes = f"{counts['src_tokens']:,} source and {counts['tgt_tokens']:,} target tokens"
            suffix = f"; left out: {left_out}" if left_out else ""
            sides, most = (("src", "source"), ("tgt", "target")), recipe.data.max_unknown
            unknown = {side: counts[f"{key}_unknown"] / max(1, counts[f"{key}_tokens"]) for key, side in sides}
            shares = " and ".join(f"{share:.2%} of the {side} tokens" for side, share in unknown.items() if share)
            suffix += f"; in no vocabulary: {shares}" if shares else ""
            self.report.say(f"{split}: {counts['kept']:,} {self.items}, {sizes}{suffix}")
            if max(unknown.values()) > most:
                fix = "raise tokenizer.vocab_size, or take tokenizer.kind = 'bpe', which spells any word"
                if recipe.train.start:
                    fix = f"go on from a model of these languages, not from {recipe.train.start}"
                raise DataError(
                    f"{split}: {shares} are in no vocabulary and would become `<unk>`, where data.max_unknown = "
                    f"{most} allows {most:.0%}; {fix}, or raise data.max_unknown"
                )
        self.world.barrier()
        store, noise = prepare(corpora, tokenizer, folder, recipe.data.filter), recipe.objective.noise
        if noise is None:
            return store
        return store.with_noise(noise(recipe.train, tokenizer, recipe.special_pieces), recipe.train.seed)


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


def describe(trainer: Trainer) -> str:
    world, batches = trainer.world, trainer.train_batches
    plan = batches.epoch(trainer.progress.epoch)
    place = torch.cuda.get_device_name(world.device) if world.device.type == "cuda" else world.device
    return (
        f"{count_parameters(trainer.model)[0]:,} parameters; {len(plan)} batches an epoch in {len(batches.shapes)} "
        f"shapes, {plan.padding_share:.0%} of them padding; {trainer.stepper.precision} on {place}"
        + (f", {world.size} processes ({trainer.recipe.train.parallel})" if world.size > 1 else "")
    )
