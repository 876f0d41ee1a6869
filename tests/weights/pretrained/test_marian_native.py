"""Marian's own files are read whole, or refused with what is wrong and where."""

import pickle
import random
import struct
import zipfile
from contextlib import suppress

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_firefox import shortlist_bytes, write_folder
from tiny_translators import sentences

import glassformer as gf
from glassformer.common.errors import ConfigError, InputError, WeightsError
from glassformer.deploy.export.formats import CannotExport
from glassformer.weights.marian_files import read_binary, read_contents, read_shortlist
from glassformer.weights.pretrained.loader import load_native
from glassformer.weights.pretrained.marian_native import angles, find_files
from glassformer.weights.quantized import dequantize_model

MODEL = "model.xxyy.intgemm.alphas.bin"
LINES = sentences(12, 5)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of each kind of weights, and the models they were written from."""
    place = tmp_path_factory.mktemp("marian")
    return {
        (weights, shared): (
            place / f"{weights}-{shared}",
            *write_folder(place / f"{weights}-{shared}", weights, shared),
        )
        for weights, shared in (("float32", True), ("float32", False), ("int8", True), ("int8", False))
    }


def write_npz(folder, bin_folder):
    """The same model as an archive of arrays."""
    contents, raw = read_contents(bin_folder / MODEL), read_binary(bin_folder / MODEL)[1]
    arrays = {name: tensor.numpy() for name, tensor in contents.tensors.items()}
    folder.mkdir()
    np.savez(folder / "model.npz", **arrays, **{"special:model.yml": np.frombuffer(raw, np.int8)})
    for vocabulary in bin_folder.glob("*.spm"):
        (folder / vocabulary.name).write_bytes(vocabulary.read_bytes())


def logits(model):
    generator = torch.Generator().manual_seed(1)
    size = min(model.config.encoder.vocab_size, model.config.vocab_size - 1)
    src, tgt = (torch.randint(2, size, (3, length), generator=generator) for length in (7, 6))
    tgt[:, 0] = model.config.start_id
    with torch.no_grad():
        return model(src, tgt, torch.arange(7) < torch.tensor([[7], [4], [2]]))


@pytest.mark.parametrize("shared", [True, False])
def test_what_was_written_in_float32_is_read_to_the_bit(folders, shared, tmp_path):
    folder, model, _, _ = folders["float32", shared]
    assert torch.equal(logits(gf.load_model(folder)), logits(model))
    write_npz(tmp_path / "npz", folder)
    assert torch.equal(logits(gf.load_model(tmp_path / "npz")), logits(model))


@pytest.mark.parametrize("shared", [True, False])
def test_int8_weights_are_read_as_they_are(folders, shared):
    folder, model, _, _ = folders["int8", shared]
    plain = gf.load_model(folder)
    for name, weight in plain.named_parameters():
        error = (weight - model.get_parameter(name)).abs().max()
        assert error <= model.get_parameter(name).abs().max() / 127 * 0.5001, name
    rounded = load_native(find_files(folder), rounded=True)
    alphas = [name for name, _ in rounded.named_buffers() if name.endswith("alphas")]
    matrices = [name for name, weight in plain.named_parameters() if weight.dim() > 1 and "tokens" not in name]
    assert len(alphas) == len(matrices) + 1  # and the head's
    dequantize_model(rounded)
    for name, weight in plain.named_parameters():
        assert torch.equal(weight, rounded.get_parameter(name)), name


def test_the_sinusoid_goes_from_one_to_a_ten_thousandth():
    table = angles(5, 8).double()
    for position in range(5):
        for pair in range(4):
            turn = position * 1e-4 ** (pair / 3)
            assert table[position, pair] == pytest.approx(np.sin(turn), abs=1e-6)
            assert table[position, pair + 4] == pytest.approx(np.cos(turn), abs=1e-6)


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_text_in_and_text_out(folders, weights):
    folder = folders[weights, True][0]
    translator = gf.Translator.load(folder, precision="auto")
    assert translator.engine.precision == ("int8" if weights == "int8" else "fp32")
    written = [best.text for [best] in translator.translate(LINES)]
    assert len(set(written)) > 4
    assert [translator(line) for line in LINES] == written  # alone as in a batch
    copied = pickle.loads(pickle.dumps(translator))
    assert [best.text for [best] in copied.translate(LINES)] == written
    assert "".join(translator.stream(LINES[0])) == written[0]
    assert translator.tokenizer.decode_target(translator.tokenizer.encode_target(["Ab \ud800"]))
    with pytest.raises(InputError, match="one way only"):
        gf.Translator.load(folder, to="de")


@pytest.mark.parametrize("beam", [1, 3])
def test_a_shortlist_binds_every_token(folders, beam, tmp_path):
    folder, _, source, target = folders["int8", True]
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    offsets, pieces = [0], []
    for id in range(len(source)):
        pieces += [(7 * id) % len(target), (5 * id + 3) % len(target)]
        offsets.append(len(pieces))
    (tmp_path / "lex.50.50.xxyy.s2t.bin").write_bytes(shortlist_bytes(offsets, pieces, 4))
    translator = gf.Translator.load(tmp_path, precision="auto")
    sources = translator.tokenizer.encode_source(LINES)
    for rows, best in translator.engine.generate(sources, [[]] * len(sources), gf.Search(beam=beam)):
        for row, [hypothesis, *_] in zip(rows, best, strict=True):
            ids = sources[row]
            own = {piece for id in ids for piece in pieces[offsets[id] : offsets[id + 1]]} | {0, 1, 2, 3, *ids}
            more = [id for id in range(4, 50) if id not in own]
            allowed = own | set(more[: -len(own) % 8])
            assert translator.engine.shortlist.candidates(ids) == allowed
            assert set(hypothesis.ids) <= allowed
    assert pickle.loads(pickle.dumps(translator)).translate(LINES) == translator.translate(LINES)


def test_alone_or_in_a_batch_int8_writes_the_same_scores(folders):
    translator = gf.Translator.load(folders["int8", True][0], precision="int8")
    together = translator.translate(LINES, beam=2)
    for line, [best, *_] in zip(LINES, together, strict=True):
        assert translator.translate([line], beam=2)[0][0].score == pytest.approx(best.score, abs=1e-5)


HOSTILE = {
    "empty": (lambda data: b"", "the version would take 8 bytes"),
    "another version": (lambda data: struct.pack("<Q", 9) + data[8:], r"version is 9.*offset 0 "),
    "many items": (lambda data: data[:8] + struct.pack("<Q", 2**60) + data[16:], r"headers of .* items would take"),
    "a long name": (lambda data: data[:16] + struct.pack("<Q", 2**63) + data[24:], "name of item 0 would take"),
    "an unknown type": (
        lambda data: data[:24] + struct.pack("<Q", 0x14101) + data[32:],
        "0x14101 .packed for one kind",
    ),
    "many dimensions": (lambda data: data[:32] + struct.pack("<Q", 2**40) + data[40:], "item 0 has .* dimensions"),
    "a large item": (lambda data: data[:40] + struct.pack("<Q", 2**50) + data[48:], "would take .* bytes, but"),
    "a small item": (lambda data: data[:40] + struct.pack("<Q", 1) + data[48:], "needs .* bytes, and has 1"),
    "cut off": (lambda data: data[: len(data) // 2], "are left; is it cut off"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_is_refused_with_what_is_wrong_where(folders, what, tmp_path):
    change, message = HOSTILE[what]
    (tmp_path / MODEL).write_bytes(change((folders["int8", True][0] / MODEL).read_bytes()))
    with pytest.raises(WeightsError, match=message):
        gf.load_model(tmp_path)


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_damage_to_a_file_crashes_its_reader(folders, tmp_path, data):
    path = tmp_path / MODEL
    whole = bytearray((folders["int8", True][0] / MODEL).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, 6000))
        whole[at] = data.draw(st.integers(0, 255))
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))] if data.draw(st.booleans()) else whole)
    with suppress(WeightsError):
        gf.load_model(tmp_path)


@pytest.mark.parametrize("seed", range(40))
def test_no_damage_to_a_shortlist_crashes_its_reader(seed, tmp_path):
    chance, path = random.Random(seed), tmp_path / "lex.bin"
    data = bytearray(shortlist_bytes([0, 2, 3], [4, 5, 6], 2))
    data[chance.randrange(len(data))] = chance.randrange(256)
    path.write_bytes(data[: chance.choice([len(data), chance.randrange(len(data))])])
    with suppress(WeightsError):
        found = read_shortlist(path, 8, shared=True)
        assert len(found.candidates([0, 1, 7])) % 8 == 0


def test_an_archive_is_not_unpickled_nor_blown_up(folders, tmp_path):
    folder = tmp_path / "npz"
    write_npz(folder, folders["float32", True][0])
    whole = (folder / "model.npz").read_bytes()
    (folder / "model.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightsError, match="not a whole archive"):
        gf.load_model(folder)
    np.savez(folder / "model.npz", Wemb=np.array([object()], dtype=object))
    with pytest.raises(WeightsError, match="does not fit"):
        gf.load_model(folder)
    with zipfile.ZipFile(folder / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("Wemb.npy", bytes(10_000_000))
    with pytest.raises(WeightsError, match="more than 100 times the file"):
        gf.load_model(folder)


def rewritten(folder, place, change):
    """The folder once more, with other settings."""
    data = (folder / MODEL).read_bytes()
    old, new = change
    assert data.count(old) == 1
    assert len(old) == len(new)
    (place / MODEL).write_bytes(data.replace(old, new))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((b"dec-cell: ssru", b"dec-cell: grus"), "`dec-cell` to 'grus'"),
        ((b"postprocess: dan", b"postprocess: dxn"), "`transformer-postprocess` to 'dxn'"),
        ((b"enc-depth: 6", b"enc-depth: 7"), "encoder_l7"),
        ((b"enc-depth: 6", b"enc-depth: 5"), "no place for"),
        ((b"dim-emb: 64", b"dim-emb: 48"), "shape"),
        ((b"special:model.yml", b"special:model.yyy"), "special:model.yyy. is of type 0x101"),
        ((b"decoder_l1_rnn_W\0", b"decoder_l1_rnn_X\0"), "decoder_l1_rnn_W"),
    ],
)
def test_a_model_of_another_kind_is_refused_by_name(folders, change, message, tmp_path):
    rewritten(folders["int8", True][0], tmp_path, change)
    with pytest.raises(WeightsError, match=message):
        gf.load_model(tmp_path)


def test_a_folder_that_lacks_or_doubles_a_file_says_so(folders, tmp_path):
    folder = folders["int8", True][0]
    (tmp_path / MODEL).write_bytes((folder / MODEL).read_bytes())
    with pytest.raises(WeightsError, match="holds no vocabulary"):
        gf.Translator.load(tmp_path)
    for name in ("a.spm", "b.spm", "c.spm"):
        (tmp_path / name).write_bytes((folder / "vocab.xxyy.spm").read_bytes())
    with pytest.raises(WeightsError, match="3 vocabularies"):
        gf.Translator.load(tmp_path)
    (tmp_path / "model.other.intgemm.bin").write_bytes((folder / MODEL).read_bytes())
    with pytest.raises(WeightsError, match="2 models"):
        gf.Translator.load(tmp_path)


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface", "onnx"])
def test_formats_that_know_no_recurrence_refuse_it(folders, to, tmp_path):
    with pytest.raises(CannotExport, match="autoregression='ssru'"):
        gf.export(folders["float32", True][0], to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_trace_of_a_recurrence_is_refused_with_what_reads_it(folders):
    with pytest.raises(ConfigError, match=r"recurrence\.gate"):
        gf.trace(gf.Translator.load(folders["float32", True][0]), LINES[0])
