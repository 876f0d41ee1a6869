"""What goes out does there what it did here, or is refused; a fault in what was written is found by the check."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from sampled import sampled
from small_run import OLD
from tiny_box import SENTENCES

import glassformer as gf
from benchmarks.export import FAULTS, configuration, grid, outcome, random_model, seeded
from glassformer.deploy.export.families import PROPOSALS, convert_to_family
from glassformer.deploy.export.formats import CannotExport
from glassformer.weights.parity import cases, hugging_face, saved
from glassformer.weights.parity import random_model as random_peer

FORMATS = ("ctranslate2", "huggingface")
SEEDS = {"ctranslate2": (3, 6, 17, 21, 26), "huggingface": (6, 11)}  # each with other parts
FIRST = {case.family: case for case in reversed(cases())}


@pytest.fixture(autouse=True)
def other_systems() -> None:
    pytest.importorskip("ctranslate2")
    pytest.importorskip("transformers")


@pytest.mark.parametrize(("to", "seed"), [(to, seed) for to in FORMATS for seed in SEEDS[to]])
def test_a_random_model_is_the_same_there_or_refused(to: str, seed: int) -> None:
    (found,) = grid(to, 1, 5, first=seed)
    assert not found.failed
    assert found.refused or (found.equal + found.tied == found.sentences == 10 and found.score_difference < 1e-4)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_what_was_written_is_found(to: str, fault: str) -> None:
    sizes = {"vocab_size": 53, "d_model": 32, "heads": 4, "d_ff": 48, "layers": 1, "max_length": 64}
    config = gf.ModelConfig(**sizes, positions="learned", embedding_norm=True, tied=False)  # type: ignore[arg-type]
    with seeded(to, FAULTS[fault]):
        assert "does not do what the model does" in outcome(random_model(config), to, 3, fault).failed
    if fault == next(iter(FAULTS)):
        assert outcome(random_model(config), to, 3, "whole").equal == 6


@pytest.mark.parametrize("quantization", sampled(["int8", "int16", "float16", "int8_bfloat16"], ["int8", "float16"]))
def test_quantised_files_hold_what_rounding_leaves(tmp_path: Path, quantization: str) -> None:
    whole = gf.export(OLD, "ctranslate2", tmp_path / "whole", sentences=4)
    small = gf.export(OLD, "ctranslate2", tmp_path / "small", sentences=4, quantization=quantization)
    assert small.report["files"]["model.bin"]["bytes"] < 0.7 * whole.report["files"]["model.bin"]["bytes"]
    assert small.report["figures"]["beam 4"]["equal"] == 4


def test_a_forced_end_is_left_out_and_told(tmp_path: Path) -> None:
    with saved(random_peer(FIRST["bart"]), FIRST["bart"]) as folder:
        assert gf.load_model(folder).config.force_end
        made = gf.export(folder, "ctranslate2", tmp_path / "out", sentences=3)
    assert made.report["figures"]["greedy"]["equal"] == 3
    assert made.report["figures"]["left out"].startswith("force_end")


@pytest.mark.parametrize("to", FORMATS)
def test_a_model_of_the_box_goes_out_with_its_direction(tiny_box: Path, tmp_path: Path, to: str) -> None:
    (tmp_path / "lines").write_text("\n".join(SENTENCES["de"]), encoding="utf-8")
    made = gf.export("de-en", to, tmp_path / "out", check=tmp_path / "lines")
    assert made.report["language"] == "en"
    assert made.report["figures"]["text"]["equal"] == made.report["figures"]["greedy"]["sentences"] == 3
    if to == "ctranslate2":  # int8 stays int8
        packed = (tiny_box / "en-de" / "model.safetensors").stat().st_size
        assert made.report["files"]["model.bin"]["bytes"] < 1.3 * packed


def test_text_in_is_text_out_in_transformers(box_folder: Path, tmp_path: Path) -> None:
    hf = hugging_face()
    texts = [*SENTENCES["en"], "a </s> <2de> <unk> and <pad>"]  # a mark that is spelt out is text
    (tmp_path / "lines").write_text("\n".join(texts), encoding="utf-8")
    gf.export(box_folder / "en-de", "huggingface", tmp_path / "out", language="de", check=tmp_path / "lines")
    tokenizer = hf.AutoTokenizer.from_pretrained(tmp_path / "out")
    model = hf.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out")
    written = model.generate(**tokenizer(texts[:1], return_tensors="pt"), max_new_tokens=20)
    ours = gf.Translator.load(box_folder / "en-de", to="de").translate(texts[:1], beam=4, max_new_tokens=20)
    pieces = tokenizer.convert_ids_to_tokens(written[0], skip_special_tokens=True)
    assert [piece.replace(" ", "▁") for piece in pieces] == list(ours[0][0].tokens)


@pytest.mark.parametrize("family", sampled(FIRST, ["marian", "t5", "bert", "gpt2", "llama"]))
def test_what_came_in_goes_out_bit_for_bit(tmp_path: Path, family: str) -> None:
    case = FIRST[family]
    with saved(random_peer(case), case) as folder:
        file = load_file(folder / "model.safetensors")
        made = gf.export(folder, "huggingface", tmp_path / "out", sentences=1)
        again = load_file(tmp_path / "out" / "model.safetensors")
        assert again.keys() == file.keys()
        assert all(torch.equal(again[name], file[name]) for name in file)
        config = json.loads((tmp_path / "out" / "config.json").read_text())
        assert config == json.loads((folder / "config.json").read_text())
        assert made.report["figures"]["logits"]["difference"] < 1e-5 * made.report["figures"]["logits"]["largest"]
        if family in PROPOSALS:
            alone = convert_to_family(gf.load_model(folder))  # of the model in memory, whose folder is not known
            assert alone.settings["model_type"] == family
            assert all(torch.equal(alone.tensors[name], file[name]) for name in file if name in alone.tensors)


def test_what_no_family_has_is_refused_by_its_field(tmp_path: Path) -> None:
    model = gf.EncoderDecoder(configuration(43, "huggingface"))
    with pytest.raises(CannotExport, match="the nearest is `marian`: gated=True, which there is False"):
        gf.export(model, "huggingface", tmp_path / "out")
    with pytest.raises(CannotExport, match="has not the shape of `t5`: positions='a table'"):
        gf.export(model, "huggingface", tmp_path / "out", family="t5")
    assert not [*tmp_path.iterdir()]
