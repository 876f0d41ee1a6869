"""A model by its name on the hub: the real client, a server that speaks its protocol, and all that can go wrong."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from test_loader import save
from tiny_translators import write_marian

import glassformer as gf
from glassformer.common.errors import ConfigError, WeightsError
from glassformer.weights import hub as names
from glassformer.weights.hub import TEXT_FILES

ROOT = Path(__file__).parents[3]
NAME = "tiny-org/opus-mt-en-de"


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    return write_marian(tmp_path_factory.mktemp("marian") / "model", shared=True)


@pytest.fixture
def there(hub, marian):
    more = {"README.md": b"# A model", "pytorch_model.bin": b"a pickle", "tf_model.h5": b"another"}
    return hub.add(NAME, {p.name: p.read_bytes() for p in marian.iterdir()} | more)


def names_in(folder):
    return {path.name for path in folder.iterdir()}


def test_the_first_load_fetches_what_is_needed_and_the_second_nothing(hub, there, marian):
    translator = gf.Translator.load(NAME)
    assert translator("one two") == gf.Translator.load(marian)("one two")
    assert set(hub.fetched()) == {"config.json", "model.safetensors", "source.spm", "target.spm", "vocab.json"} | {
        file for file in there.files if file in TEXT_FILES
    }
    assert not {"README.md", "pytorch_model.bin", "tf_model.h5"} & set(hub.fetched())
    hub.requests.clear()
    gf.Translator.load(NAME)
    assert not hub.fetched()


def test_a_cached_model_is_loaded_when_the_hub_is_gone(hub, there):
    before = gf.load_model(NAME)
    hub.close()
    with pytest.warns(UserWarning, match=f"does not answer.*the copy of {NAME} in the cache is used"):
        again = gf.load_model(NAME)
    assert torch.equal(before.head.weight, again.head.weight)
    gf.load_model(NAME, offline=True)  # and nobody is asked
    gf.load_model(NAME, revision=there.commit)


def test_without_a_network_what_was_never_fetched_is_told(hub):
    hub.close()
    with pytest.raises(WeightsError, match=rf"{NAME} is not a folder here, and not in the cache.*does not answer"):
        gf.load_model(NAME)
    with pytest.raises(WeightsError, match=r"not in the cache.*nothing is fetched, as was asked \(offline\)"):
        gf.load_model(NAME, offline=True)


def test_the_environment_can_say_offline(hub, there, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(WeightsError, match="nothing is fetched, since HF_HUB_OFFLINE is set"):
        gf.load_model(NAME)
    assert not hub.requests


def test_an_unknown_name_and_an_unknown_revision(hub, there):
    with pytest.raises(WeightsError, match=r"tiny-org/none is not a folder here, and no model of http.*private"):
        gf.Translator.load("tiny-org/none")
    with pytest.raises(WeightsError, match=f"{NAME} has no revision v9; a branch, a tag or a commit"):
        gf.Translator.load(NAME, revision="v9")
    there.revisions["refs/pr/3"] = there.commit
    gf.load_model(NAME, revision="refs/pr/3")


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ({"gated": True}, "is gated.*agreed to the terms.*hf auth login"),
        ({"forbidden": True}, r"\(403\); log in with"),
        ({"gone": {"model.safetensors"}}, f"{NAME} lists model.safetensors, but does not hold it"),
        ({"sizes": {"model.safetensors": 10**18}}, r"takes 1,000,000,000,000 MB more, but .* free; make room, or set"),
        ({"sent": {"model.safetensors": b"short"}}, rf"{NAME} came short"),
        ({"files": {"model.safetensors": b""}}, f"{NAME} holds no config.json"),
        ({"files": {"config.json": b"{}"}}, r"holds no model.safetensors, nor shards of it"),
    ],
)
def test_what_a_repository_or_the_disk_lacks(hub, marian, fault, message):
    vars(hub.add(NAME, marian)).update(fault)
    with pytest.raises(WeightsError, match=message):
        gf.load_model(NAME)
    assert "sizes" not in fault or not hub.fetched()  # the disk is looked at first


def test_pickled_weights_are_refused_with_what_to_do(hub, marian):
    files = {p.name: p.read_bytes() for p in marian.iterdir() if p.suffix != ".safetensors"}
    repository = hub.add(NAME, files | {"pytorch_model.bin": b"cos\nsystem\n(S'touch caught'\ntR."})
    with pytest.raises(WeightsError, match=r"pickled alone \(pytorch_model.bin\).*convert it.*save_pretrained"):
        gf.load_model(NAME)
    repository.pull_request = 12
    with pytest.raises(WeightsError, match=r"the hub's converter offers.*if you trust that, revision=refs/pr/12"):
        gf.load_model(NAME)
    assert not hub.fetched()


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.json"])
def test_a_file_with_another_hash_is_not_kept(hub, there, file):
    true = there.files[file]
    there.sent[file] = true[:-1] + bytes([true[-1] ^ 1])
    with pytest.raises(WeightsError, match=rf"{file} came damaged .*is not kept; load it again"):
        gf.Translator.load(NAME)
    there.sent.clear()
    gf.Translator.load(NAME)


def test_shards(hub, tmp_path):
    save("marian", tmp_path / "sharded", max_shard_size="20KB")
    repository = hub.add(NAME, tmp_path / "sharded")
    model = gf.load_model(NAME)
    assert torch.equal(model.head.bias, gf.load_model(tmp_path / "sharded").head.bias)
    shard = next(file for file in repository.files if file.startswith("model-00002"))
    folder = names.fetch(NAME, offline=True)
    (folder / shard).unlink()
    with pytest.raises(WeightsError, match=rf"in part: {shard} is missing; nothing is fetched"):
        gf.load_model(NAME, offline=True)
    gf.load_model(NAME)
    del repository.files[shard]
    with pytest.raises(WeightsError, match=rf"{NAME} lacks {shard}, which its model.safetensors.index.json names"):
        gf.load_model(NAME)


def test_a_new_commit_is_fetched_and_a_broken_one_leaves_the_old(hub, there):
    first = names.fetch(NAME)
    there.files["config.json"] += b"\n"
    there.sent["config.json"] = b"{}"
    with pytest.raises(WeightsError, match=r"config.json came damaged"):
        names.fetch(NAME)
    assert names.fetch(NAME, offline=True) == first
    there.sent.clear()
    second = names.fetch(NAME)
    assert second != first
    assert names.fetch(NAME, offline=True) == second
    assert names.model_name(second) == "opus-mt-en-de"
    assert sum(path.endswith("model.safetensors") for _, path, _ in hub.requests if "/cdn/" in path) == 1


def test_a_folder_of_that_name_wins(hub, there, marian, tmp_path):
    (tmp_path / "tiny-org").mkdir()
    with pytest.raises(WeightsError, match="is not a folder"):  # an owner's folder is here: the slip of a pen
        gf.Translator.load("tiny-org/opus-mt-en-d")
    (tmp_path / NAME).symlink_to(marian)
    gf.Translator.load(NAME)
    assert not hub.requests
    with pytest.raises(ConfigError, match=f"revision=v1 goes with a name of the hub.*; {NAME} is none"):
        gf.Translator.load(NAME, revision="v1")
    gf.Translator.load(f"hf://{NAME}")
    assert hub.requests
    with pytest.raises(ConfigError, match="hf://gpt2 names no model of the hub"):
        gf.load_model("hf://gpt2")
    assert names.hub_name(Path(NAME)) is None


def test_without_the_client_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(WeightsError, match=r"pip install 'glassformer\[hub\]'"):
        gf.load_model(NAME)


DOWNLOAD = f"""
import huggingface_hub.constants
huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE = 1024  # else the client writes 10 MB at a time
from glassformer.weights.hub import fetch
print(fetch({NAME!r}))
"""


def test_a_killed_download_is_resumed(hub, tmp_path):
    whole, cache = random.Random(0).randbytes(70_000), tmp_path / "cache"
    hub.add(NAME, {"config.json": b"{}", "model.safetensors": whole})
    environment = os.environ | {"HF_ENDPOINT": hub.address, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "0"}
    process = {"args": [sys.executable, "-c", DOWNLOAD], "env": environment, "cwd": ROOT, "text": True}
    hub.slow_after = 50_000
    with subprocess.Popen(**process) as child:
        deadline = time.monotonic() + 60
        while not (partial := [p for p in cache.rglob("*.incomplete") if p.stat().st_size > 20_000]):
            assert child.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        child.kill()
    size = partial[0].stat().st_size
    hub.slow_after = None
    hub.requests.clear()
    done = subprocess.run(**process, check=True, stdout=subprocess.PIPE, timeout=120)
    assert (Path(done.stdout.strip()) / "model.safetensors").read_bytes() == whole
    ranges = [asked for method, path, asked in hub.requests if method == "GET" and path.endswith("model.safetensors")]
    assert set(ranges) == {f"bytes={size}-"}
    assert not list(cache.rglob("*.incomplete"))
