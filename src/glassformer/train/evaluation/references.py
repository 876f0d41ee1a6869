"""The pairs that a translator is judged by: a split of its recipe, two files, or two lists of sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, cast

from glassformer.common.arguments import check_texts
from glassformer.common.errors import ConfigError, DataError, GlassformerError, InputError, one_of
from glassformer.common.report import Report
from glassformer.data import Corpus, read_pairs
from glassformer.data.readers import load_images, read_images, read_lines
from glassformer.model import DecoderOnly, EncoderDecoder, Model
from glassformer.pipelines.language.sentences import NO_SPACE
from glassformer.pipelines.translator import Translator
from glassformer.train import Recipe
from glassformer.train.folder import saved_recipe
from glassformer.weights import bundle
from glassformer.weights.pretrained.loader import FAMILIES, is_multilingual, read_config
from glassformer.weights.pretrained.multilingual import pick_language

SPLITS = ("train", "valid", "test")
Direction = tuple[str | None, str | None]  # languages of sources and targets; None: not an input of the model
Items = str | Path | Iterable[Any] | None


def model_kind(folder: Path) -> type[Model]:
    """The kind of model in a folder, by its config.json; an encoder-decoder where that does not say."""
    if bundle.is_bundle(folder):
        return bundle.read_config(folder).kind
    settings = read_config(folder) if (folder / "config.json").is_file() else None
    family = FAMILIES.get(str(settings.values.get("model_type"))) if settings is not None else None
    return EncoderDecoder if settings is None or family is None else family(settings).model


def recipe_split(folder: Path, name: str) -> tuple[Recipe, tuple[Corpus, ...]]:
    """The recipe in a folder, and one of its splits."""
    if name not in SPLITS:
        raise DataError(f"split={name}: a recipe has train, valid and test")
    if not (folder / "recipe.toml").exists():
        if model_kind(folder) is EncoderDecoder:
            Translator.load(folder)  # says what is wrong with it, if that is it
        raise DataError(f"{folder} holds no recipe that would name `{name}` pairs; give src=... and ref=... instead")
    recipe = saved_recipe(folder)
    corpora: tuple[Corpus, ...] = getattr(recipe.data, name)
    if not corpora:
        raise DataError(f"the recipe in {folder} names no `{name}` pairs; give src=... and ref=... instead")
    return recipe, corpora


def directions(folder: Path, corpora: Iterable[Corpus]) -> list[Direction]:
    """Those that the model in a folder goes in these corpora."""
    several = is_multilingual(folder)
    found: set[Direction] = {(corpus.from_ if several else None, corpus.to) for corpus in corpora}
    return sorted(found, key=lambda way: (str(way[1]), str(way[0])))


def in_language(corpora: tuple[Corpus, ...], side: Literal["source", "to"], language: str | None) -> tuple[Corpus, ...]:
    """The corpora whose sources, or targets, are in a language; all of them where they are in one language only."""

    language_of, preposition = (attrgetter("to"), "into") if side == "to" else (attrgetter("from_"), "from")
    languages = sorted({name for name in map(language_of, corpora) if name is not None})
    if language is None and len(languages) > 1:
        both = " and ".join(languages)
        raise ConfigError(f"these pairs are {preposition} {both}; say which are judged: {side}={languages[0]!r}")
    if language is not None and language not in languages:
        with suppress(InputError):
            language = pick_language(language, languages)
    chosen = tuple(corpus for corpus in corpora if language in (None, language_of(corpus)))
    if not chosen:
        found = f"they are {preposition} {one_of(languages)}" if languages else "the recipe names no language of theirs"
        raise ConfigError(f"no pairs {preposition} `{language}`: {found}")
    return chosen


def readable_recipe(folder: Path, report: Report) -> Recipe | None:
    """The folder's recipe, where it holds one; two files can be judged without."""
    try:
        return saved_recipe(folder) if (folder / "recipe.toml").exists() else None
    except GlassformerError as error:
        report.say(f"{error}; judged without it")
        return None


def given_pairs(src: Items, ref: Items) -> tuple[str, Iterable[tuple[str, str]]]:
    """Two files, or two lists of sentences, and what they are called."""
    if isinstance(src, str | Path) and isinstance(ref, str | Path):
        src, ref = Path(src), Path(ref)
        return f"{src.name} {ref.name}", read_pairs(Corpus(src=src, tgt=ref))
    sources, references = (check_texts(cast(Any, texts), name) for texts, name in ((src, "src"), (ref, "ref")))
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} sources but {len(references)} references; give one each")
    return "given sentences", zip(sources, references, strict=True)


def joined_texts(pairs: Iterable[tuple[str, str]], recipe: Recipe | None) -> tuple[list[str], list[str]]:
    """Sources and references as a reader sees them: pieces that the data came cut into are joined."""
    pairs = list(pairs)
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    if recipe is not None and recipe.tokenizer.kind == "words":
        references = [(line + " ").replace(recipe.tokenizer.join, "").removesuffix(" ") for line in references]
    return sources, references


def mostly_unspaced(texts: list[str]) -> bool:
    letters = "".join("".join(texts).split())
    return 2 * len(NO_SPACE.findall(letters)) > len(letters)


def refuse_labels(labels: Sequence[str] | None, why: str) -> None:
    if labels is not None:
        raise ConfigError(f"ref=... gives labels or translations, and {why}; leave it out")


def given_items(folder: Path, kind: type[Model], src: Items, ref: Items) -> tuple[str, list[Any], list[str] | None]:
    """What a caller gives: texts, one a line, and for a classifier their labels; or images with labels in an .npz."""
    if isinstance(src, str | Path) and Path(src).suffix == ".npz":
        images, labels = read_images(Path(src))
        return Path(src).name, list(images), labels
    name = Path(src).name if isinstance(src, str | Path) else "given texts"
    items = list(read_lines(Path(src))) if isinstance(src, str | Path) else list(src or [])
    if ref is not None:
        found = list(read_lines(Path(ref))) if isinstance(ref, str | Path) else check_texts(ref, "ref")
        if len(found) != len(items):
            raise DataError(f"{len(items):,} items but {len(found):,} labels; give one each")
        return name, items, found
    if kind is not DecoderOnly and bundle.is_bundle(folder) and bundle.read_config(folder).config.labels:
        raise ConfigError(f"{folder} tells labels: give the right ones too, ref=...")
    return name, items, None


def split_items(corpora: Sequence[Corpus]) -> tuple[list[Any], list[str] | None]:
    """The same of a split of a recipe."""
    if corpora[0].has_images:
        both = [load_images(corpus) for corpus in corpora]
        return list(chain.from_iterable(images for images, _ in both)), [name for _, names in both for name in names]
    pairs = list(chain.from_iterable(map(read_pairs, corpora)))
    if corpora[0].monolingual:
        return [text for _, text in pairs], None
    return [text for text, _ in pairs], [label for _, label in pairs]


def seen_in_training(corpora: tuple[Corpus, ...], recipe: Recipe, report: Report) -> int | None:
    """How many pairs of `corpora` are among the training pairs too; None where those cannot be read once more."""

    def pairs(corpora: tuple[Corpus, ...]) -> Iterator[tuple[str, str]]:
        for source, target in chain.from_iterable(map(read_pairs, corpora)):
            yield source.strip(), target.strip()

    if any(corpus.hub for corpus in recipe.data.train):  # it would be fetched a second time
        return None
    wanted, seen = Counter(pairs(corpora)), set()
    try:
        for number, pair in enumerate(pairs(recipe.data.train)):
            if pair in wanted:
                seen.add(pair)
            if number % 10_000 == 0:
                report.show(f"looking for them among the training pairs: {number:,}")
    except DataError:
        return None
    report.clear()
    return sum(wanted[pair] for pair in seen)
