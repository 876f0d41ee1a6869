"""`glassformer serve` as a real process, and how it listens."""

import os
import re
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from small_run import call, command, launch

from glassformer.common.errors import ConfigError
from glassformer.data import Tokenizer, TokenizerOptions
from glassformer.deploy.server import listen
from glassformer.deploy.server.directions import load_directions
from glassformer.deploy.server.translation_service import TranslationService
from glassformer.model import EncoderDecoder, ModelConfig
from glassformer.pipelines import box
from glassformer.pipelines.text import TextTranslator
from glassformer.pipelines.translator import Translator
from glassformer.weights import bundle

PATIENCE = 60  # seconds, for a machine that is busy with other things
HALF = b"POST /api/trace HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
ADDRESS = re.compile(r"http://[\w.]+:\d+")


@contextmanager
def serving(folder, *words):
    pipe = subprocess.PIPE
    with launch(command("serve", folder, "--port", "0", *words), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def status(address: str, host: str) -> int:
    """The status of the page for a request with this Host header."""
    return httpx.get(address, headers={"Host": host}, timeout=PATIENCE).status_code


def make_model(folder: Path, about: str = "") -> Path:
    """A tiny random translator; `about` is the table of its recipe."""
    tokenizer = Tokenizer.train([("one two", "eins zwei")], TokenizerOptions(kind="words"))
    model = EncoderDecoder(ModelConfig(vocab_size=tokenizer.tgt_size, d_model=8, heads=2, d_ff=16, layers=1))
    bundle.save(folder, model, bundle.weights(model), tokenizer)
    if about:
        (folder / "recipe.toml").write_text(f"[about]\n{about}\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("serve") / "tiny")


def test_without_a_model_it_names_the_demo(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(box, "HERE", tmp_path)
    assert "glassformer demo" in cli.fails("serve")


def test_a_folder_without_a_model_and_an_unknown_host(cli, tmp_path):
    assert "is not a trained model" in cli.fails("serve", tmp_path)
    with pytest.raises(ConfigError, match="--host no such host"):
        listen.listen("no such host", None)


def test_a_port_in_use_and_ctrl_c_during_half_a_request(folder):
    with serving(folder) as process, ExitStack() as open_sockets:
        address = ADDRESS.search(process.stdout.readline())[0]
        port = address.rpartition(":")[2]
        assert status(address, "127.0.0.1") == 200
        busy = call(command("serve", folder, "--port", port))
        error = f"glassformer: port {port} is in use; choose another, or leave --port out for a free one\n"
        assert (busy.returncode, busy.stderr) == (2, error)
        for half in (b"", b"POST /api/tr", HALF, HALF + b'{"te'):
            client = open_sockets.enter_context(socket.create_connection(("127.0.0.1", int(port)), PATIENCE))
            client.sendall(half)
        assert status(address, "127.0.0.1") == 200  # by now it has taken the others in
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert process.communicate() == ("", "")


def test_open_to_the_network_it_warns_and_prints_usable_addresses(folder):
    with serving(folder, "--host", "0.0.0.0", "--open-to-all") as process:
        shown, warning = process.stdout.readline(), process.stdout.readline()
        assert "0.0.0.0" not in shown
        local, *others = ADDRESS.findall(shown)
        assert local.startswith("http://127.0.0.1:")
        assert others or "does not know" in shown
        assert all(word in warning for word in ("open to the network", "weights", "labs", "--host"))
        for address in (local, *others):
            assert status(address, address.removeprefix("http://")) == 200
        assert status(local, socket.gethostname()) == 200
        assert status(local, "evil.example") == 403


def test_the_network_needs_open_to_all(folder):
    with serving(folder, "--host", "0.0.0.0") as process:
        assert process.wait(PATIENCE) == 2
        assert "--open-to-all" in process.stderr.read()


def test_a_model_and_the_box_translate_by_way_of_english(tmp_path):
    folder = make_model(tmp_path / "mine", 'source = "en"\ntarget = "fr"')
    own, box_way = Translator.load(folder, precision="auto"), Translator.load("en-de", precision="auto", to="en")
    german = "Wo ist der nächste Bahnhof?"
    with serving(folder, "en-de", "--only", "api", "--threads", "1") as process:
        line = process.stdout.readline()
        assert line.startswith(f"{folder} and en-de translate at")
        with httpx.Client(base_url=ADDRESS.search(line)[0], timeout=PATIENCE) as client:

            def translated(**request: str) -> str:
                return client.post("/translate", json=request).json()["translatedText"]

            assert translated(q="one two", source="en", target="fr") == TextTranslator(own)("one two")
            by_english = TextTranslator(box_way, own, source="de", target="fr")(german)
            assert translated(q=german, source="de", target="fr") == by_english
            targets = {one["code"]: set(one["targets"]) for one in client.get("/languages").json()}
            assert targets == {"en": {"en", "de", "fr"}, "de": {"en", "de", "fr"}, "fr": {"fr"}}
            assert client.post("/translate", json={"q": "un", "source": "fr", "target": "de"}).status_code == 400


def test_models_of_one_name_get_names_of_their_own(tmp_path):
    about = 'source = "en"\ntarget = "de"'
    folders = [make_model(tmp_path / "a" / "mine", about), make_model(tmp_path / "b" / "mine", about)]
    directions = load_directions([*folders, make_model(tmp_path / "c" / "other")], "cpu")
    assert [tuple(one) for one in directions.by_name.values()] == [
        ("en-de", "mine", "en", "de"),
        ("en-de-2", "mine-2", "en", "de"),
        ("other", "other", "", ""),
    ]
    assert [directions.get(name).loader.name for name in (None, "en-de-2", "other")] == ["mine", "mine-2", "other"]
    assert TranslationService(directions, None).route("en", "de") == ["en-de"]


def test_requests_are_finished_within_the_grace():
    lines = [f"This is sentence number {i}, and it is a little longer than the others." for i in range(40)]
    with serving("en-de", "--only", "api", "--threads", "1", "--grace", "60") as process:
        address = ADDRESS.search(process.stdout.readline())[0]
        request = {"q": lines, "source": "en", "target": "de"}
        with ThreadPoolExecutor(1) as threads:
            answer = threads.submit(httpx.post, f"{address}/translate", json=request, timeout=PATIENCE)
            while "glassformer_waiting_tokens 0.0" in httpx.get(f"{address}/metrics", timeout=PATIENCE).text:
                assert not answer.done()
            process.send_signal(signal.SIGINT)
            assert len(answer.result(PATIENCE).json()["translatedText"]) == 40
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{address}/health", timeout=PATIENCE)
        assert process.wait(PATIENCE) == 130


def test_a_second_ctrl_c_ends_it_at_once(monkeypatch):
    codes = []
    monkeypatch.setattr(listen.os, "_exit", codes.append)
    server = listen.Server(listen.uvicorn.Config(app=None))
    server.handle_exit(signal.SIGINT, None)
    assert (server.should_exit, codes) == (True, [])
    server.handle_exit(signal.SIGINT, None)
    assert codes == [130]


def test_requests_share_the_cores_and_a_small_model_takes_one_for_each(folder, monkeypatch):
    translator = Translator.load(folder)
    monkeypatch.setattr(listen.torch, "get_num_threads", lambda: 16)
    assert listen.threads_per_request(translator, 4) == 1
    monkeypatch.setattr(listen, "SMALL_MODEL", 0)
    assert [listen.threads_per_request(translator, concurrency) for concurrency in (1, 4, 32)] == [16, 4, 1]


def test_a_free_port_is_the_default():
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", listen.FIRST_PORT))
            taken.listen()
        except OSError:
            pass  # another program has it: just as well
        with listen.listen("127.0.0.1", None) as found:
            assert found.getsockname()[1] > listen.FIRST_PORT


def test_threads_spin_briefly_unless_the_user_sets_it():
    code = "import os, sys; from glassformer.cli.serve import wait_briefly; early = 'torch' not in sys.modules; "
    code += "wait_briefly(); print(early, os.environ.get('GOMP_SPINCOUNT'))"

    def printed(**variables: str) -> str:
        plain = {name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")}
        return subprocess.check_output([sys.executable, "-c", code], env=plain | variables, text=True).strip()

    assert printed() == "True 5000"  # before PyTorch is there, else it would come too late
    assert printed(GOMP_SPINCOUNT="7") == "True 7"
    assert printed(OMP_WAIT_POLICY="active") == "True None"
