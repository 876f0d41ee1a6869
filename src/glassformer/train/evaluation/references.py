"""The pairs that a translator is judged by: a split of its recipe, two files, or two lists of sentences."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

from glassformer.common.errors import ConfigError, DataError, GlassformerError, InputError, one_of
from glassformer.common.report import Report
from glassformer.common.strings import strings
from glassformer.data import Corpus, read_pairs
from glassformer.model import EncoderDecoder
from glassformer.pipelines.language.cutting import UNSPACED
from glassformer.pipelines.translator import Translator
from glassformer.train import Recipe
from glassformer.train.evaluation.judged import kind_of
from glassformer.train.folder import saved_recipe
from glassformer.weights.pretrained.languages import pick
from glassformer.weights.pretrained.text_sides import reads_several

SPLITS = ("train", "valid", "test")
Way = tuple[str | None, str | None]  # the languages of sources and targets, either where a model is told it


def split_of(folder: Path, name: str) -> tuple[Recipe, tuple[Corpus, ...]]:
    """The recipe in a folder, and one of its splits."""
    if name not in SPLITS:
        raise DataError(f"split={name}: a recipe has train, valid and test")
    if not (folder / "recipe.toml").exists():
        if kind_of(folder) is EncoderDecoder:
            Translator.load(folder)  # says what is wrong with it, if that is it
        raise DataError(f"{folder} holds no recipe that would name `{name}` pairs; give src=... and ref=... instead")
    recipe = saved_recipe(folder)
    corpora: tuple[Corpus, ...] = getattr(recipe.data, name)
    if not corpora:
        raise DataError(f"the recipe in {folder} names no `{name}` pairs; give src=... and ref=... instead")
    return recipe, corpora


def ways(folder: Path, corpora: Iterable[Corpus]) -> list[Way]:
    """Those that the model in a folder goes in these corpora."""
    several = reads_several(folder)
    found: set[Way] = {(corpus.from_ if several else None, corpus.to) for corpus in corpora}
    return sorted(found, key=lambda way: (str(way[1]), str(way[0])))


def into(to: str | None, corpora: tuple[Corpus, ...]) -> tuple[Corpus, ...]:
    """Those whose targets are in the language `to`; all, where there is one language only."""
    languages = sorted({corpus.to for corpus in corpora if corpus.to is not None})
    if to is None and len(languages) > 1:
        raise ConfigError(f"these pairs are into {' and '.join(languages)}; say which are judged: to={languages[0]!r}")
    meant = known(to, languages)
    chosen = tuple(corpus for corpus in corpora if meant in (None, corpus.to))
    if not chosen:
        there = f"they are into {one_of(languages)}" if languages else "the recipe names no language of theirs"
        raise ConfigError(f"no pairs into `{to}`: {there}")
    return chosen


def out_of(source: str | None, corpora: tuple[Corpus, ...]) -> tuple[Corpus, ...]:
    """Those whose sources are in the language `source`, for a model that is told it."""
    languages = sorted({corpus.from_ for corpus in corpora if corpus.from_ is not None})
    if source is None and len(languages) > 1:
        both = " and ".join(languages)
        raise ConfigError(f"these pairs are from {both}; say which are judged: source={languages[0]!r}")
    meant = known(source, languages)
    chosen = tuple(corpus for corpus in corpora if meant in (None, corpus.from_))
    if not chosen:
        raise ConfigError(f"no pairs from `{source}`: they are from {one_of(languages)}")
    return chosen


def known(language: str | None, languages: list[str]) -> str | None:
    """The one of these that is meant, by whichever of its names."""
    if language is None or language in languages:
        return language
    try:
        return pick(language, languages)
    except InputError:
        return language


def readable_recipe(folder: Path, report: Report) -> Recipe | None:
    """The folder's recipe, where it holds one; two files can be judged without."""
    if (folder / "recipe.toml").exists():
        try:
            return saved_recipe(folder)
        except GlassformerError as error:
            report.say(f"{error}; judged without it")
    return None


def pairs_of(src: str | Path | Iterable[str], ref: str | Path | Iterable[str]) -> tuple[str, Iterable[tuple[str, str]]]:
    """Two files, or two lists of sentences, and what they are called."""
    if isinstance(src, str | Path) and isinstance(ref, str | Path):
        src, ref = Path(src), Path(ref)
        return f"{src.name} {ref.name}", read_pairs(Corpus(src=src, tgt=ref))
    sources, references = (strings(cast(Any, texts), name) for texts, name in ((src, "src"), (ref, "ref")))
    if len(sources) != len(references):
        raise DataError(f"{len(sources)} sources but {len(references)} references; give one each")
    return "given sentences", zip(sources, references, strict=True)


def texts_of(pairs: Iterable[tuple[str, str]], recipe: Recipe | None) -> tuple[list[str], list[str]]:
    """Sources and references as a reader sees them: pieces that the data came cut into are joined."""
    pairs = list(pairs)
    sources, references = [source for source, _ in pairs], [reference for _, reference in pairs]
    if recipe is not None and recipe.tokenizer.kind == "words":
        references = [(line + " ").replace(recipe.tokenizer.join, "").removesuffix(" ") for line in references]
    return sources, references


def unspaced(texts: list[str]) -> bool:
    letters = "".join("".join(texts).split())
    return 2 * len(UNSPACED.findall(letters)) > len(letters)
