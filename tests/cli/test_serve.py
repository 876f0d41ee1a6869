"""`glassformer serve` as a real process."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from small_run import call, command, launch

from glassformer.common.errors import ConfigError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines import box
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator
from glassformer.weights import bundle

PATIENCE = 60  # seconds, for a machine that is busy with other things
HALF = b"POST /api/trace HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"


@contextmanager
def serving(folder, *words):
    pipe = subprocess.PIPE
    with launch(command("serve", folder, "--port", "0", *words), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def fetch(address: str, host: str) -> int:
    """The status of the page, asked for by some name."""
    try:
        with urllib.request.urlopen(
            urllib.request.Request(address, headers={"Host": host}), timeout=PATIENCE
        ) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def tiny(folder: Path) -> Path:
    tokenizer = Tokenizer.train([("one two", "eins zwei")], TokenizerOptions(kind="words"))
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, d_model=8, heads=2, d_ff=16, layers=1))
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    return folder


def test_without_a_model_and_with_an_empty_box_it_says_how_to_get_one(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(box, "HERE", tmp_path)
    assert "glassformer demo" in cli.fails("serve")


def test_a_folder_that_is_no_model_and_a_host_that_is_none(tmp_path):
    from glassformer.deploy.server.listen import listen

    found = call(command("serve", tmp_path))
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    with pytest.raises(ConfigError, match="--host no such host"):
        listen("no such host", None)


def test_it_names_a_port_in_use_and_ctrl_c_ends_it_while_half_a_request_is_on_its_way(tmp_path):
    folder = tiny(tmp_path / "tiny")
    with serving(folder) as process, ExitStack() as open_sockets:
        address = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        assert fetch(address[0], "127.0.0.1") == 200
        busy = call(command("serve", folder, "--port", address[1]))
        assert busy.returncode == 2
        assert (
            busy.stderr
            == f"glassformer: port {address[1]} is in use; choose another, or leave --port out for a free one\n"
        )
        for half in (b"", b"POST /api/tr", HALF, HALF + b'{"te'):
            one = open_sockets.enter_context(socket.create_connection(("127.0.0.1", int(address[1])), PATIENCE))
            one.sendall(half)
        assert fetch(address[0], "127.0.0.1") == 200  # by now it has taken the others in
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.communicate() == ("", "")


def test_open_to_the_network_it_says_so_and_gives_addresses_of_use(tmp_path):
    with serving(tiny(tmp_path / "tiny"), "--host", "0.0.0.0", "--open-to-all") as process:
        shown, warned = process.stdout.readline(), process.stdout.readline()
        assert "0.0.0.0" not in shown
        here, *others = re.findall(r"http://[\w.]+:\d+", shown)
        assert here.startswith("http://127.0.0.1:")
        assert others or "does not know" in shown
        for told in ("open to the network", "weights", "labs", "--host"):
            assert told in warned
        for address in (here, *others):
            assert fetch(address, address.removeprefix("http://")) == 200
        assert fetch(here, socket.gethostname()) == 200
        assert fetch(here, "evil.example") == 403


def test_it_is_opened_to_the_network_only_where_that_is_said(tmp_path):
    with serving(tiny(tmp_path / "tiny"), "--host", "0.0.0.0") as process:
        assert process.wait(PATIENCE) == 2
        assert "--open-to-all" in process.stderr.read()


def test_a_model_of_ones_own_beside_the_box_is_reached_by_way_of_english(tmp_path):
    folder = tiny(tmp_path / "mine")
    (folder / "recipe.toml").write_text('[about]\nsource = "en"\ntarget = "fr"\n', encoding="utf-8")
    own, box_way = Translator.load(folder, precision="auto"), Translator.load("en-de", precision="auto", to="en")
    german = "Wo ist der nächste Bahnhof?"
    with serving(folder, "en-de", "--only", "api", "--threads", "1") as process:
        said = process.stdout.readline()
        assert said.startswith(f"{folder} and en-de translate at")
        address = re.search(r"http://[\w.]+:\d+", said)[0]

        def ask(**fields):
            body = json.dumps(fields).encode()
            asked = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                return json.load(answer)["translatedText"]

        assert ask(q="one two", source="en", target="fr") == TextTranslator(own)("one two")
        by_english = TextTranslator(box_way, own, source="de", target="fr")(german)
        assert ask(q=german, source="de", target="fr") == by_english
        with urllib.request.urlopen(f"{address}/languages", timeout=PATIENCE) as answer:
            known = {one["code"]: set(one["targets"]) for one in json.load(answer)}
        assert known == {"en": {"en", "de", "fr"}, "de": {"en", "de", "fr"}, "fr": {"fr"}}
        with pytest.raises(urllib.error.HTTPError, match="400"):
            ask(q="un", source="fr", target="de")


def test_models_of_one_name_get_names_of_their_own(tmp_path):
    from glassformer.deploy.server.directions import load_directions

    folders = [tiny(tmp_path / "a" / "mine"), tiny(tmp_path / "b" / "mine"), tiny(tmp_path / "c" / "other")]
    for folder in folders[:2]:
        (folder / "recipe.toml").write_text('[about]\nsource = "en"\ntarget = "de"\n', encoding="utf-8")
    found = load_directions(folders, "cpu")
    assert [tuple(one) for one in found.by_name.values()] == [
        ("en-de", "mine", "en", "de"),
        ("en-de-2", "mine-2", "en", "de"),
        ("other", "other", "", ""),
    ]
    assert [found.get(name).loader.name for name in (None, "en-de-2", "other")] == ["mine", "mine-2", "other"]
    assert TranslationService(found, None).route("en", "de") == ["en-de"]


def test_what_has_been_begun_is_finished_within_the_grace():
    lines = [f"This is sentence number {i}, and it is a little longer than the others." for i in range(40)]
    with serving("en-de", "--only", "api", "--threads", "1", "--grace", "60") as process:
        address = re.search(r"http://[\w.]+:\d+", process.stdout.readline())[0]
        body = json.dumps({"q": lines, "source": "en", "target": "de"}).encode()
        asked = urllib.request.Request(f"{address}/translate", body, {"Content-Type": "application/json"})
        answers = []

        def ask():
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                answers.append(json.load(answer))

        asking = threading.Thread(target=ask)
        asking.start()
        while b"glassformer_waiting_tokens 0.0" in urllib.request.urlopen(f"{address}/metrics").read():
            assert asking.is_alive()
        process.send_signal(signal.SIGINT)
        asking.join(PATIENCE)
        assert len(answers[0]["translatedText"]) == 40
        with pytest.raises(urllib.error.URLError):
            urllib.request.urlopen(f"{address}/health", timeout=PATIENCE)
        assert process.wait(PATIENCE) == 130


def test_a_second_ctrl_c_ends_it_at_once(monkeypatch):
    from glassformer.deploy.server import listen

    ended = []
    monkeypatch.setattr(listen.os, "_exit", ended.append)
    server = listen.Server(listen.uvicorn.Config(app=None))
    server.handle_exit(signal.SIGINT, None)
    assert (server.should_exit, ended) == (True, [])
    server.handle_exit(signal.SIGINT, None)
    assert ended == [130]


def test_requests_share_the_cores_and_a_small_model_takes_one_for_each(tmp_path, monkeypatch):
    from glassformer.deploy.server import listen

    translator = Translator.load(tiny(tmp_path / "tiny"))
    monkeypatch.setattr(listen.torch, "get_num_threads", lambda: 16)
    assert listen.threads_per_request(translator, 4) == 1
    monkeypatch.setattr(listen, "SMALL_MODEL", 0)
    assert [listen.threads_per_request(translator, concurrency) for concurrency in (1, 4, 32)] == [16, 4, 1]


def test_a_free_port_is_found_where_none_was_asked_for(tmp_path):
    from glassformer.deploy.server.listen import FIRST_PORT, listen

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", FIRST_PORT))
            taken.listen()
        except OSError:
            pass  # someone else has it: just as well
        with listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] > FIRST_PORT


def test_threads_do_not_wait_awake_for_long_unless_the_user_says_so():
    code = "import os, sys; from glassformer.cli.serve import wait_briefly; early = 'torch' not in sys.modules; "
    code += "wait_briefly(); print(early, os.environ.get('GOMP_SPINCOUNT'))"

    def told(**given: str) -> str:
        plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        return subprocess.check_output([sys.executable, "-c", code], env=plain | given, text=True).strip()

    assert told() == "True 5000"  # before PyTorch is there, else it would come too late
    assert told(GOMP_SPINCOUNT="7") == "True 7"
    assert told(OMP_WAIT_POLICY="active") == "True None"
