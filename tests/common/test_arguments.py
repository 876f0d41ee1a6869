"""Whatever a public function is given in the place of what it takes, the error is ours and names it."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from types import GeneratorType
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import pytest
import torch
from tiny_model import tiny
from tiny_translators import sentences, tiny_bundle

import glassformer as gf
from glassformer.common.errors import GlassformerError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.pipelines.loading import BundleTokenizer

TEXTS = ["the small dog", "a red house"]
SPECIAL = ("__init__", "__call__", "__getitem__")


class Frame:
    """A table as pandas has it: what comes out of it are the names of its columns."""

    ndim, columns = 2, ["text", "label"]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)


NEVER = [b"bytes", {"a"}, Frame(), object()]  # what nothing takes
OTHERS = [5, 2.5, None, "5", {"a": "b"}, ["x", 5], [object()], ()]  # what some take


def public() -> Iterator[tuple[str, Any]]:
    """Every function, and every method of our own with a plain name, that takes something and looks at it."""
    for name in gf.__all__:
        thing = getattr(gf, name)
        if inspect.isfunction(thing):
            yield name, thing
            continue
        for member in sorted({*dir(thing)}):
            found = inspect.getattr_static(thing, member)
            function = inspect.unwrap(getattr(found, "__func__", found)) if not inspect.isclass(found) else None
            plain = member in SPECIAL or not member.startswith("_")
            ours = any(member in vars(base) for base in thing.__mro__ if base.__module__.startswith("glassformer"))
            record = member == "__init__" and hasattr(thing, "__match_args__") and not hasattr(thing, "__post_init__")
            takes = inspect.isfunction(function) and len(inspect.signature(function).parameters) > 1  # self, or cls
            if plain and ours and takes and not record:
                yield f"{name}.{member}", getattr(thing, member)


def parameters(function: Any) -> list[str]:
    """The names of all that a function takes, those of its options among them."""
    names = []
    for name, one in inspect.signature(function).parameters.items():
        hint = get_type_hints(inspect.unwrap(getattr(function, "__func__", function))).get(name)
        if get_origin(hint) is Unpack:
            names += get_type_hints(get_args(hint)[0])
        elif one.kind is not one.VAR_KEYWORD and name != "self":
            names.append(name)
    return names


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[object, dict[str, Any]]]:
    """Of each public name the object whose method it is, if it is one, and arguments that it takes."""
    folder = tmp_path_factory.mktemp("kinds")
    tiny_bundle(folder / "model")
    lines = sentences(300, seed=1)
    pieces = Tokenizer.train(zip(lines, lines, strict=True), TokenizerOptions(vocab_size=340), None, (), ["[MASK]"])
    size, one = pieces.tgt_size, BundleTokenizer(pieces, continues=False)
    pair, reads, writes = tiny(size=size), tiny(size=size, kind=gf.EncoderOnly), tiny(size=size, kind=gf.DecoderOnly)
    translator = gf.Translator(pair, pieces)
    labels = gf.Classifier(tiny(size=size, kind=gf.EncoderOnly, labels=2, tied=False), one, ("x", "y"))
    filler, generator = gf.MaskFiller(reads, one), gf.TextGenerator(writes, BundleTokenizer(pieces, continues=True))
    texts, glossary, cache = gf.TextTranslator(translator), gf.Glossary({"dog": "Hund"}), gf.Cache(1, 8)
    trace = gf.trace(pair, [3, 4], max_new_tokens=3)
    ids, mask, long, few = torch.tensor([[3, 4]]), torch.tensor([[True, True]]), pair.encode(torch.tensor([[3, 4]])), 3
    load, options = {"folder": folder / "model"}, {"max_new_tokens": few}
    found: dict[str, tuple[object, dict[str, Any]]] = {
        "translate": (None, {"text": "", "to": "de"}),
        "evaluate": (None, load | {"src": TEXTS, "ref": TEXTS}),
        "export": (None, {"model": pair, "to": "ctranslate2", "folder": folder}),
        "generate": (None, {"model": pair, "src": ids} | options),
        "load_adapter": (None, {"model": pair, "folder": folder}),
        "load_model": (None, load),
        "trace": (None, {"subject": pair, "sentence": [3, 4]} | options),
        "what_if": (None, {"subject": pair, "sentence": [3], "changes": [{"kind": "remove_scale"}]} | options),
        "Cache.__init__": (None, {"layers": 1, "capacity": 4}),
        "Cache.admit": (cache, {"ids": ids, "mask": mask}),
        "Cache.check": (cache, {"ids": ids, "layers": 1}),
        "Cache.follow": (cache, {"origin": torch.tensor([[0]])}),
        "Cache.keep": (cache, {"sentences": torch.tensor([0])}),
        "Cache.store": (gf.Cache(1, 8), {"entries": torch.zeros(1, 1, 8, 2), "new": torch.zeros(1, 1, 0, 2)}),
        "ModelConfig.__init__": (None, {"vocab_size": 9}),
        "ModelConfig.from_dict": (None, {"values": {"vocab_size": 9}}),
        "Search.__init__": (None, {}),
        "Sampling.__init__": (None, {}),
        "Glossary.__init__": (None, {"terms": {"dog": "Hund"}}),
        "Glossary.__getitem__": (glossary, {"term": "dog"}),
        "Glossary.find": (glossary, {"text": "a dog"}),
        "Glossary.unused": (glossary, {"translations": TEXTS}),
        "Glossary.load": (None, {"path": folder / "none.tsv"}),
        "Classifier.__init__": (None, {"model": labels.model, "tokenizer": one, "labels": ("x", "y")}),
        "MaskFiller.__init__": (None, {"model": reads, "tokenizer": one}),
        "TextGenerator.__init__": (None, {"model": writes, "tokenizer": generator.tokenizer}),
        "TextTranslator.__init__": (None, {"translator": translator}),
        "Translator.__init__": (None, {"model": pair, "tokenizer": pieces}),
        "Classifier.classify": (labels, {"items": TEXTS}),
        "Classifier.probabilities": (labels, {"items": TEXTS}),
        "Classifier.__call__": (labels, {"one": "a dog"}),
        "MaskFiller.fill": (filler, {"texts": ["a [MASK]"]}),
        "TextGenerator.max_new_tokens": (generator, {"length": 3, "search": gf.Search()}),
        "TextTranslator.alternatives": (texts, {"texts": TEXTS[:1], "count": 1}),
        "Trace.__getitem__": (trace, {"key": "logits"}),
        "Trace.labels": (trace, {"axis": "key:src", "size": 2}),
        "Trace.value": (trace, {"name": "logits"}),
        "Trace.save": (trace, {"path": folder / "trace.json"}),
        "Translator.likelihoods": (translator, {"texts": TEXTS, "targets": TEXTS}),
        "Translator.score": (translator, {"texts": TEXTS, "targets": TEXTS}),
        "Translator.max_target_length": (translator, {"length": 3}),
        "Translator.split": (translator, {"texts": TEXTS, "limit": 9}),
        "Translator.toward": (translator, {"language": "de"}),
        "EncoderDecoder.forward": (pair, {"src": ids, "tgt": ids}),
        "EncoderDecoder.encode": (pair, {"src": ids}),
        "EncoderDecoder.decode": (pair, {"tgt": ids, "memory": long}),
        "EncoderOnly.forward": (reads, {"ids": ids}),
        "DecoderOnly.forward": (writes, {"ids": ids}),
    }
    for name, thing in {"Translator": translator, "TextTranslator": texts, "TextGenerator": generator}.items():
        found |= {f"{name}.{method}": (thing, {"texts": TEXTS} | options) for method in ("translate", "generate")}
        found |= {f"{name}.{method}": (thing, {"text": "a dog"}) for method in ("__call__", "stream", "alternatives")
                  if f"{name}.{method}" not in found}  # fmt: skip
        found |= {f"{name}.{method}": (thing, {"texts": TEXTS}) for method in ("details", "steps", "prompts",
                  "likelihoods", "unfamiliar") if f"{name}.{method}" not in found}  # fmt: skip
    found |= {f"{name}.load": (None, load) for name in ("Translator", "TextGenerator", "MaskFiller", "Classifier")}
    found |= {"MaskFiller.__call__": (filler, {"text": "a [MASK]"}), "MaskFiller.recover": (filler, {"texts": TEXTS})}
    found |= {f"Trace.{method}": (trace, {}) for method in ("names", "select", "show", "to_html", "to_json")}
    found |= {"Translator.max_source_length": (translator, {})}
    for name, model in {"EncoderDecoder": pair, "EncoderOnly": reads, "DecoderOnly": writes}.items():
        found |= {f"{name}.__init__": (None, {"config": model.config}), f"{name}.new_cache": (model, {"capacity": 4})}
    return found


def refusal(call: Callable[..., Any], arguments: dict[str, Any]) -> str | None:
    """What a call says against its arguments, if it does; another error than ours is let through."""
    try:
        made = call(**arguments)
        if isinstance(made, GeneratorType | Iterator):
            next(made, None)
    except GlassformerError as error:
        return str(error)
    return None


NAMES = dict(public())


@pytest.mark.parametrize("name", NAMES)
def test_arguments_of_wrong_kinds_are_named(
    name: str, valid: dict[str, tuple[object, dict[str, Any]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    owner, arguments = valid[name]
    kind, _, method = name.partition(".")
    call = getattr(gf, kind) if method in ("", "__init__") else getattr(owner or getattr(gf, kind), method)
    for parameter in parameters(NAMES[name]):
        for value in OTHERS:
            refusal(call, arguments | {parameter: value})
        for value in NEVER:
            said = refusal(call, arguments | {parameter: value})
            assert said is not None, f"{parameter} takes {value!r}"
            assert f"{value!r:.12}" in said or type(value).__name__ in said, said
    if "forward" not in name:
        with pytest.raises((TypeError, GlassformerError), match=rf"{method or kind}|unknown|`nonsense`"):
            call(**arguments, nonsense=5)
