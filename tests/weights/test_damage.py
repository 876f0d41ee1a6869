"""A bundle that is not as it was saved: what is missing, changed or damaged is told, whatever the file."""

import contextlib
import itertools
import json
import warnings
from pathlib import Path

import pytest
import torch
from mutations import json_mutations, mutations, tensor_mutations
from safetensors.torch import load_file, save_file

from glassformer.common.errors import DataError, GlassformerError, WeightsError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.model import DecoderOnly, EncoderDecoder, EncoderOnly, ModelConfig
from glassformer.pipelines.translator import Translator
from glassformer.train.folder import saved_recipe
from glassformer.weights import bundle

TEXTS = ["one two three", "two four five", "six seven one"] * 4
KINDS = ("float32", "int8", "int6", "settings that came later", "decoder", "labels")
OLDER = r"is of an older glassformer: it holds no checksum"


def make(folder: Path, kind: str = "float32", tokenizer_kind: str = "bpe") -> Path:
    tokenizer = Tokenizer.train([(text, text) for text in TEXTS], TokenizerOptions(tokenizer_kind, vocab_size=275))
    sizes = {"vocab_size": tokenizer.tgt_size, "d_model": 16, "heads": 4, "d_ff": 24, "layers": 1, "max_length": 32}
    model = {
        "settings that came later": lambda: EncoderDecoder(ModelConfig(**sizes, positions="rotary", rotary_factor=8.0)),
        "decoder": lambda: DecoderOnly(ModelConfig(**sizes)),
        "labels": lambda: EncoderOnly(ModelConfig(**sizes, labels=2, tied=False)),
    }.get(kind, lambda: EncoderDecoder(ModelConfig(**sizes)))()
    stored_as = kind if kind in ("int8", "int6") else "float32"
    bundle.save(folder, model, bundle.weights(model), tokenizer, stored_as, ("a", "b") if kind == "labels" else ())
    (folder / "recipe.toml").write_text('[about]\npurpose = "numbers"\n', encoding="utf-8")
    return folder


def age(folder: Path) -> Path:
    """The folder as a version without checksums wrote it."""
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_each_key_of_config_json_that_is_missing_or_other_is_told(tmp_path, kind):
    path = make(tmp_path, kind) / "config.json"
    config = json.loads(path.read_text())
    bundle.load(tmp_path)
    for key, value in config.items():
        other = not value if isinstance(value, bool) else 3 * value if isinstance(value, int | float) else "other"
        for changed in ({k: v for k, v in config.items() if k != key}, config | {key: other}):
            path.write_text(json.dumps(changed))
            if changed == config:  # the seed is 0
                continue
            with pytest.raises(WeightsError):
                bundle.load(tmp_path)
    path.write_text(json.dumps({key: config[key] for key in reversed(config)}))  # the same in another order
    bundle.load(tmp_path)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", KINDS)
def test_of_an_older_bundle_too(tmp_path, kind):
    path = age(make(tmp_path, kind)) / "config.json"
    config = json.loads(path.read_text())
    for key in config:
        path.write_text(json.dumps({k: v for k, v in config.items() if k != key}))
        with pytest.raises((WeightsError, UserWarning)):
            bundle.load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_of_each_tensor_is_noticed(tmp_path, kind):
    path = make(tmp_path, kind) / "model.safetensors"
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    chance = torch.Generator().manual_seed(0)
    for name in header.keys() - {"__metadata__"}:
        begin, end = (8 * (start + offset) for offset in header[name]["data_offsets"])
        bit = int(torch.randint(begin, end, (1,), generator=chance))
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.raises(WeightsError, match=r"model.safetensors is damaged: its weights are not those"):
            bundle.load(tmp_path)
    path.write_bytes(data)
    bundle.load(tmp_path)


def test_tensors_that_change_places_are_noticed(tmp_path):
    path = make(tmp_path) / "model.safetensors"
    tensors = load_file(path)
    one, other = [name for name, tensor in tensors.items() if tensor.shape == (24, 16)]
    config = json.loads((tmp_path / "config.json").read_text())
    bundle.write_weights(tmp_path, tensors, config)
    bundle.load(tmp_path)
    data = path.read_bytes()
    header, body = data[8 : 8 + int.from_bytes(data[:8], "little")], data[8 + int.from_bytes(data[:8], "little") :]
    places = json.loads(header)
    places[one], places[other] = places[other], places[one]
    header = json.dumps(places, separators=(",", ":")).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + body)
    with pytest.raises(WeightsError, match=r"is damaged: its weights are not those"):
        bundle.load(tmp_path)


@pytest.mark.parametrize("kind", ["float32", "int8", "int6"])
def test_an_older_bundle_is_told_and_what_it_says_renews_it(tmp_path, kind, cli):
    """Packed as the warning says, it translates to the same, without a word."""
    age(make(tmp_path / "old", kind))
    with pytest.warns(UserWarning, match=OLDER) as told:
        before = Translator.load(tmp_path / "old").translate(TEXTS[:3], max_new_tokens=9)
    command = str(told[0].message).partition("Write it again: glassformer ")[2].split()
    assert command[:2] == ["pack", str(tmp_path / "old")]
    with pytest.warns(UserWarning, match=OLDER) as told:
        assert cli(*[str(tmp_path / "new") if word == "NEW" else word for word in command])[0] == 0
    assert Translator.load(tmp_path / "new").translate(TEXTS[:3], max_new_tokens=9) == before
    line = warnings.formatwarning(told[0].message, UserWarning, "bundle.py", 1)  # on the command line
    assert line == f"glassformer: {told[0].message}\n"


@pytest.mark.parametrize("tokenizer_kind", ["bpe", "unigram", "words"])
def test_ids_of_pieces_are_checked_before_anything_is_built(tmp_path, tokenizer_kind):
    path = make(tmp_path, "float32", tokenizer_kind) / "tokenizer.json"
    form = json.loads(path.read_text(encoding="utf-8"))
    listed = tokenizer_kind == "unigram"  # there, the place of a piece is its id
    pieces = [piece for piece, _ in form["model"]["vocab"]] if listed else list(form["model"]["vocab"])
    last, unknown = pieces[-1], "<unk>"
    if listed:
        changes = (
            {"vocab": form["model"]["vocab"] + [["more", -1.0]]},
            {"vocab": form["model"]["vocab"][4:]},
            {"vocab": []},
        )
    else:
        vocabulary = form["model"]["vocab"]
        ids = (2**31, 2**31 - 1, 2**32, 2**64, 10**30, -1, 1.5, "7", None, True, [7], vocabulary[last] + 1, 4, 3, 0)
        changes = [{"vocab": vocabulary | {last: id}} for id in ids]
        changes += [{"vocab": {k: v for k, v in vocabulary.items() if k != gone}} for gone in (unknown, pieces[-2])]
        changes += [{"vocab": vocabulary | {"more": len(vocabulary) + 3}}, {"vocab": {}}]
    for changed in changes:
        path.write_text(json.dumps(form | {"model": form["model"] | changed}), encoding="utf-8")
        with pytest.raises((DataError, WeightsError), match=r"tokenizer"):
            bundle.load(tmp_path)
    path.write_text(json.dumps(form), encoding="utf-8")
    bundle.load(tmp_path)


@pytest.mark.parametrize("tokenizer_kind", ["bpe", "unigram", "words"])
def test_a_setting_of_the_tokenizer_that_its_library_cannot_read_is_told(tmp_path, tokenizer_kind):
    """The library, in Rust, answers some of them by a panic."""
    path = make(tmp_path, "float32", tokenizer_kind) / "tokenizer.json"
    form = json.loads(path.read_text(encoding="utf-8"))
    for key, value in itertools.product(form["model"], ("relu", "\0", 2**31, -1, 0.5, [], {}, True)):
        path.write_text(json.dumps(form | {"model": form["model"] | {key: value}}), encoding="utf-8")
        with contextlib.suppress(DataError, WeightsError):
            bundle.load(tmp_path).tokenizer.encode_source(TEXTS)


MUTATE = {"config.json": json_mutations, "tokenizer.json": json_mutations, "model.safetensors": tensor_mutations}
FILES = {"source_words.txt": 10, "recipe.toml": 40, "scores.json": 40, **dict.fromkeys(MUTATE, 80)}  # how many of each


@pytest.mark.parametrize(("file", "older"), [*((file, False) for file in FILES), *((file, True) for file in MUTATE)])
def test_a_damaged_file_is_read_or_refused_in_words(tmp_path, file, older):
    """`python -m benchmarks mutations` tries more."""
    make(tmp_path)
    if older:
        age(tmp_path)
    (tmp_path / "scores.json").write_text('{"valid": {"chrF": 51.5, "sentences": 30}}')
    path, refused = tmp_path / file, 0
    for changed in MUTATE.get(file, mutations)(path.read_bytes(), seed=33, count=FILES[file]):
        path.write_bytes(changed)
        try:
            bundle.read_scores(tmp_path)
            if file == "recipe.toml":
                saved_recipe(tmp_path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Translator.load(tmp_path).translate(["two three \u2603"], max_new_tokens=4)
        except GlassformerError:
            refused += 1
    assert refused or file == "source_words.txt"
