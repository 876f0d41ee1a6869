"""Commands that take a model take a name of the hub; here of a hub on this machine."""

import json

import pytest
from small_run import OLD

from glassformer.cli.options import looks_like_hub

NAME = "tiny-org/turn-round-4"


@pytest.fixture(autouse=True)
def tiny_hub(hub):
    hub.add(NAME, OLD)
    return hub


def test_every_command_that_takes_a_model(cli, tmp_path, tiny_hub):
    local = cli("translate", OLD, "one two", "--device", "cpu")
    assert cli("translate", NAME, "one two", "--device", "cpu") == local
    assert local[0] == 0
    lines = tmp_path / "lines"
    lines.write_text("one two\n", encoding="utf-8")
    for words in (
        ("score", NAME, "--src", lines, "--tgt", lines, "--offline"),
        ("evaluate", NAME, "--src", lines, "--ref", lines, "--offline"),
        ("bulk", lines, tmp_path / "out", "--model", NAME, "--from", "en", "--offline", "--workers", "1"),
        ("pack", NAME, "--out", tmp_path / "packed", "--offline"),
    ):
        code, _, err = cli(*words, *() if words[0] == "pack" else ("--device", "cpu"))
        assert code == 0, err
    code, out, _ = cli("trace", f"hf://{NAME}", "one two", "--json", "-", "--device", "cpu")
    assert code == 0
    assert "turn-round-4" in json.dumps(json.loads(out))


def test_errors_name_the_options_of_the_hub(cli, tiny_hub):
    assert f"{NAME} has no revision v9" in cli.fails("translate", NAME, "one", "--revision", "v9")
    assert "--revision v9 goes with a name of the hub" in cli.fails("translate", OLD, "one", "--revision", "v9")
    assert "nothing is fetched, as was asked" in cli.fails("translate", NAME, "one", "--offline")
    export = ("export", NAME, "--to", "ctranslate2", "--out", "elsewhere")
    assert "nothing is fetched, as was asked" in cli.fails(*export, "--offline")
    assert f"{NAME} has no revision v9" in cli.fails(*export, "--revision", "v9")
    tiny_hub.repositories[NAME].files["pytorch_model.bin"] = tiny_hub.repositories[NAME].files.pop("model.safetensors")
    tiny_hub.repositories[NAME].pull_request = 7
    assert "if you trust that, --revision refs/pr/7" in cli.fails("translate", NAME, "one")


def test_without_the_hub_the_cache_is_used(cli, tiny_hub):
    before = cli("translate", NAME, "one two", "--device", "cpu")
    tiny_hub.close()
    code, out, err = cli("translate", NAME, "one two", "--device", "cpu")
    assert (code, out) == before[:2]
    assert err.count("\n") == 1
    assert f"the copy of {NAME} in the cache is used" in err
    assert "is there a network?" in cli.fails("translate", "tiny-org/other-1", "one")


def test_what_looks_like_a_name_of_the_hub(tmp_path):
    for name in ("Helsinki-NLP/opus-mt-en-de", "facebook/nllb-200-distilled-600M", "hf://a/b", "facebook/m2m100_418M"):
        assert looks_like_hub(name), name
    (tmp_path / "docs").mkdir()
    paths = ("docs/01-x", "other/01-tokens.md", "/etc/x-1", "a/b/c-1")
    for text in ("and/or", "24/7", "km/h", "a-b/c d-e", "en-de", *paths):
        assert not looks_like_hub(text), text
