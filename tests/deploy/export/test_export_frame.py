"""An export gets its name once it has been checked, and takes nothing of anybody's away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_run import OLD, Cli

import glassformer as gf
from glassformer.common.errors import ConfigError, DataError, GlassformerError, InputError
from glassformer.decode import Hypothesis, Search, generate
from glassformer.deploy.export import check, formats
from glassformer.deploy.export.check import same_targets
from glassformer.deploy.export.formats import CannotExport, CheckFailed
from glassformer.deploy.export.inputs import Sample, choose_sample, load_for_export

pytest.importorskip("ctranslate2")

FEW = {"sentences": 6}


def test_a_bundle_goes_out_with_its_report(tmp_path: Path) -> None:
    made = gf.export(OLD, "ctranslate2", tmp_path / "out", **FEW)
    told = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    assert told == made.report
    assert told["figures"]["greedy"]["equal"] == told["figures"]["beam 4"]["equal"] == 6
    assert set(told["files"]) == {p.name for p in (tmp_path / "out").iterdir()} - {"report.json"}
    assert made.size == sum((tmp_path / "out" / name).stat().st_size for name in told["files"])
    assert told["versions"]["ctranslate2"]
    assert [p.name for p in tmp_path.iterdir()] == ["out"]  # nothing half made is left


def test_the_command_says_what_was_compared(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("export", OLD, "--to", "ctranslate2", "--out", tmp_path / "a", "--sentences", 4)
    assert (code, err) == (0, "")
    assert "greedy" in out
    assert out.splitlines()[-1].startswith(f"{tmp_path / 'a'}: ")
    code, out, err = cli("export", OLD, "--to", "ctranslate2", "--out", tmp_path / "b", "--sentences", 4, "--json")
    assert json.loads(out)["figures"]["beam 4"]["sentences"] == 4
    assert "--quantization 'int9' is not one of" in cli.fails(
        "export", OLD, "--to", "ctranslate2", "--out", tmp_path / "c", "--quantization", "int9"
    )
    assert not (tmp_path / "c").exists()


def test_the_help_names_every_format(cli: Cli) -> None:
    _, out, _ = cli("export", "--help")
    assert all(name in out for name in formats.FORMATS)


def test_what_stands_in_the_place_is_not_lost(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()
    (place / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="is there and not empty"):
        gf.export(OLD, "ctranslate2", place, **FEW)
    made = gf.export(OLD, "ctranslate2", place, force=True, **FEW)
    assert made.aside == tmp_path / "out.before"
    assert (made.aside / "mine.txt").read_text() == "mine"
    again = gf.export(OLD, "ctranslate2", place, force=True, **FEW)  # an export as we wrote it is replaced
    assert again.aside is None
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out", "out.before"]
    (place / "config.json").write_text("{}")  # and one that somebody has changed is not
    assert gf.export(OLD, "ctranslate2", place, force=True, **FEW).aside == tmp_path / "out.before-2"
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="is there and no folder"):
        gf.export(OLD, "ctranslate2", tmp_path / "file", force=True, **FEW)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert gf.export(OLD, "ctranslate2", empty, **FEW).folder == empty


def test_a_failed_check_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    form = formats.load_format("ctranslate2")

    def fails(*_: Any) -> dict[str, Any]:
        raise CheckFailed("not the same")

    monkeypatch.setattr(form, "check", fails)
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckFailed):
        gf.export(OLD, "ctranslate2", tmp_path / "out", **FEW)
    assert [*tmp_path.rglob("*")] == [tmp_path / "out"]


def test_mistakes_are_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="did you mean `ctranslate2`"):
        gf.export(OLD, "ctranslate", tmp_path / "out")
    with pytest.raises(ConfigError, match="unknown option `quantisation`; did you mean `quantization`"):
        gf.export(OLD, "ctranslate2", tmp_path / "out", quantisation="int8")
    with pytest.raises(InputError, match="model=3 is of type int"):
        gf.export(3, "ctranslate2", tmp_path / "out")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="sentences=0 must be at least 1"):
        gf.export(OLD, "ctranslate2", tmp_path / "out", sentences=0)
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"empty\.txt holds no sentence"):
        gf.export(OLD, "ctranslate2", tmp_path / "out", check=tmp_path / "empty.txt")
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    with pytest.raises(GlassformerError, match=r"needs `ctranslate2`: pip install 'glassformer\[export\]'"):
        gf.export(OLD, "ctranslate2", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("to", "kind", "options", "words"),
    [
        ("ctranslate2", gf.EncoderDecoder, {"positions": "alibi"}, "positions='alibi': its encoder has no linear"),
        ("ctranslate2", gf.EncoderDecoder, {"positions": "rotary", "rotary_factor": 8.0}, "cannot be slowed"),
        ("onnx", gf.EncoderOnly, {}, "EncoderOnly is no translator"),
        ("onnx", gf.EncoderDecoder, {"decoder_layers": 0}, "decoder_layers=0"),
        ("onnx", gf.EncoderDecoder, {"start_id": None}, "start_id=None"),
    ],
)
def test_only_what_a_format_can_say_is_written(to: str, kind: Any, options: Any, words: str, tmp_path: Path) -> None:
    model = kind(gf.ModelConfig(vocab_size=9, d_model=8, heads=2, d_ff=8, layers=1, **options))
    with pytest.raises(CannotExport, match=words):
        gf.export(model, to, tmp_path / "out")
    assert not [*tmp_path.iterdir()]


def test_the_sentences_are_the_models_own_a_files_or_random(tmp_path: Path) -> None:
    bundle = load_for_export(OLD)
    assert choose_sample(bundle, count=5).origin.endswith("5 of random tokens")
    (tmp_path / "three.txt").write_text("one two\n\nthree\n", encoding="utf-8")
    found = choose_sample(bundle, tmp_path / "three.txt")
    assert (found.texts, found.origin) == (["one two", "three"], f"2 of {tmp_path / 'three.txt'}")
    alone = load_for_export(bundle.model)
    assert choose_sample(alone, count=7).ids == choose_sample(alone, count=7).ids
    assert len(choose_sample(alone)) == 200
    with pytest.raises(DataError, match="no tokenizer"):
        choose_sample(alone, tmp_path / "three.txt")


def test_a_difference_is_seen_and_a_tie_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gf.EncoderDecoder(gf.ModelConfig(vocab_size=20, d_model=16, heads=2, d_ff=16, layers=1, output_bias=True))
    model.eval()
    sample = Sample([[4, 5, 6], [7, 8]], [], "two")

    def ours(sources: Any, beam: int, limit: int, found: Any) -> list[Hypothesis]:
        return [
            generate(model, torch.tensor([ids]), search=Search(beam=beam, max_new_tokens=limit))[0][0]
            for ids in sources
        ]

    def checked(change: Callable[[Hypothesis], Hypothesis]) -> dict[str, Any]:
        return same_targets(model, lambda *a: [change(h) for h in ours(*a)], sample, lambda text: None)

    assert checked(lambda h: h)["beam 4"]["equal"] == 2
    with pytest.raises(CheckFailed, match="with a beam of 1"):
        checked(lambda h: Hypothesis([*h.ids, 4], h.score))
    with pytest.raises(CheckFailed, match=r"more than 0\.0001 apart"):
        checked(lambda h: Hypothesis(h.ids, h.score + 1e-3))
    with pytest.raises(CheckFailed, match="has the score nan"):
        checked(lambda h: Hypothesis(h.ids, float("nan")))
    with torch.no_grad():  # two tokens that are always as likely as each other
        model.head.weight[9] = model.head.weight[10]
        model.head.bias[9:11] = 9.0
    swapped = {9: 10, 10: 9}
    assert checked(lambda h: Hypothesis([swapped.get(id, id) for id in h.ids], h.score))["greedy"]["tied"] == 2
    assert check.smallest_gap(model, [4, 5, 6], 4, 5) == 0
