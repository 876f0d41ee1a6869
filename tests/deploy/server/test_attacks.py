"""Attacks on a real process: they are refused, others are served meanwhile, and Ctrl-C still ends it."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import zipfile
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path

import httpx
import pytest
from bodies import ASKED, BODIES, kept_headers
from mutations import json_mutations, mutations
from small_run import command, launch
from sockets import PATIENCE, post_bytes, rest, until

from glassformer.deploy.server.keys import add_key

GRACE = 2
READER = b"glassformer.pipelines.documents.sandbox"
BOMB = ("a.md", b"[a](b) *c* " * 40_000)  # keeps its parser busy for minutes


class Server:
    def __init__(self, folder: Path, *words: str) -> None:
        self.wrong = tempfile.TemporaryFile("w+")  # noqa: SIM115  # a pipe that nobody reads holds it up
        asked = command("serve", folder, "--port", "0", "--threads", "1", *words)
        self.process = launch(asked, stdout=subprocess.PIPE, stderr=self.wrong, text=True)
        said = self.process.stdout.readline()
        self.address, port = re.search(r"(http://127\.0\.0\.1:(\d+))", said).groups()
        self.port = int(port)

    def connect(self, said: bytes = b"", buffer: int | None = None) -> socket.socket:
        made = socket.socket()
        made.settimeout(PATIENCE)
        if buffer is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        made.connect(("127.0.0.1", self.port))
        made.sendall(said)
        return made

    def serves(self) -> bool:
        answer = httpx.post(f"{self.address}/translate", json=ASKED, timeout=PATIENCE)
        return answer.json() == {"translatedText": "zwei eins"}

    def complaints(self) -> str:
        """What it has said, less what it says of those who speak no HTTP."""
        self.wrong.seek(0)
        return self.wrong.read().replace("WARNING:  Invalid HTTP request received.\n", "")

    def memory(self) -> int:
        """Megabytes that it holds now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) // 1000

    def readers(self) -> list[int]:
        """The processes that read documents for it, or have done so and are not ended."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            try:
                parent = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                if parent in (self.process.pid, os.getpid(), 1) and READER in (place / "cmdline").read_bytes():
                    found.append(int(place.name))
            except (OSError, IndexError):
                continue  # it has ended meanwhile
        return found


@contextmanager
def serving(folder: Path, *words: str):
    server = Server(folder, *words)
    with server.process:
        try:
            yield server
        finally:
            server.process.kill()
            server.wrong.close()


@pytest.fixture(scope="module")
def named(bundle, tmp_path_factory):
    """A small model that says what its languages are."""
    folder = tmp_path_factory.mktemp("attacked") / "toy"
    shutil.copytree(bundle, folder)
    (folder / "recipe.toml").write_text('[about]\nsource = "en"\ntarget = "de"\n', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def server(named):
    with serving(named) as found:
        yield found
        assert found.process.poll() is None
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(PATIENCE) == 130
        assert found.complaints() == ""


def half_open(server, held):
    """250 who begin a request and do not go on."""
    for i in range(250):
        said = (b"", b"POST /tra", b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")[i % 3]
        held.enter_context(server.connect(said))


def slow_readers(server, held):
    """20 who ask for much and take none of it."""
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for _ in range(20):
        held.enter_context(server.connect(ask * 200, buffer=4096))


def unfinished_uploads(server, held):
    """10 whose 100 MB are on their way."""
    for _ in range(10):
        head = b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000000\r\n\r\n"
        held.enter_context(server.connect(head + b"x" * 500_000))


def slow_documents(server, held):
    """4 whose documents take minutes to read: as many as are read at once."""
    document = post_bytes("/translate_file", files={"file": BOMB}, data={"source": "en", "target": "de"})
    for _ in range(4):
        held.enter_context(server.connect(document))
    until(lambda: len(server.readers()) >= 4)


def long_texts(server, held):
    """4 with much text."""
    texts = post_bytes("/translate", json=ASKED | {"q": [f"one two {i}" for i in range(2000)]})
    for _ in range(4):
        held.enter_context(server.connect(texts))


ATTACKS = [half_open, slow_readers, unfinished_uploads, slow_documents, long_texts]


@pytest.mark.parametrize("attack", ATTACKS)
def test_others_are_served_meanwhile(server, attack):
    with ExitStack() as held:
        attack(server, held)
        assert server.serves()
        assert httpx.get(f"{server.address}/", timeout=PATIENCE).status_code == 200
    until(lambda: not server.readers())  # who leaves takes their document along


def test_the_log_is_json_whatever_is_sent(named, tmp_path):
    file = tmp_path / "keys.json"
    key = add_key(file, "ann")
    with serving(named, "--only", "api", "--log", "--keys", file) as server:
        file.write_text("no keys")
        for said in (
            b"no HTTP\r\n\r\n",
            b"GET /health HTTP/1.1\r\n\r\n",
            b"GET /health HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
            post_bytes("/translate", json=ASKED | {"api_key": key}),
        ):
            with server.connect(said) as sent:
                sent.shutdown(socket.SHUT_WR)
                assert rest(sent).startswith(b"HTTP/1.1 ")
        lines = [json.loads(line) for line in server.complaints().splitlines()]
    assert {one["path"]: one["status"] for one in lines if "path" in one} == {"/health": 200, "/translate": 200}
    messages = [one["message"] for one in lines if "level" in one]
    assert len(messages) + 2 == len(lines)
    for words in ("Invalid HTTP request", "Unsupported upgrade", "keys.json"):
        assert any(words in one for one in messages), words


@pytest.mark.long
def test_ctrl_c_ends_the_server_under_attack(named):
    with serving(named, "--grace", str(GRACE)) as server, ExitStack() as held:
        for attack in ATTACKS:
            attack(server, held)
        assert server.serves()
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(PATIENCE) == 130
        until(lambda: not server.readers())
        assert server.complaints() == ""


def test_heads_of_64_kilobytes_are_refused(server):
    for line in (
        b"X-Long: " + b"y" * 65_536,
        b"Cookie: " + b"a=b; " * 13_000,
        b"\r\n".join(b"X-%d: y" % i for i in range(9000)),
    ):
        with server.connect() as sent:
            try:
                sent.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + line + b"\r\n\r\n")
            except ConnectionError:
                continue  # it has hung up already
            assert rest(sent)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
    with server.connect(b"GET /" + b"a" * 65_536 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n") as sent:
        assert rest(sent)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431", b"")
    assert server.serves()


def test_bodies_of_100_megabytes_are_refused_and_not_kept(server):
    before, part = server.memory(), b"x" * 1_000_000
    for path in ("/translate", "/translate_file", "/v2/translate", "/api/trace"):
        for length in (b"Content-Length: 100000000", b"Transfer-Encoding: chunked"):
            chunked = b"Transfer" in length
            with server.connect(b"POST %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n\r\n" % (path.encode(), length)) as sent:
                try:
                    for _ in range(100):
                        sent.sendall(b"%x\r\n%s\r\n" % (len(part), part) if chunked else part)
                except ConnectionError:
                    pass  # it has answered, and does not read on
                assert rest(sent)[:12] in (b"HTTP/1.1 413", b"")
    assert server.memory() - before < 100
    assert server.serves()


def test_compressed_bodies_and_documents_are_refused(server):
    bomb = gzip.compress(bytes(50_000_000))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(50_000_000))
    before = server.memory()
    for name, content in {
        "a.txt.gz": bomb,
        "a.txt": bomb,
        "a.html": packed.getvalue(),
        "a.docx": packed.getvalue(),
        "a.zip": packed.getvalue(),
    }.items():
        answer = httpx.post(
            f"{server.address}/translate_file",
            files={"file": (name, content)},
            data={"source": "en", "target": "de"},
            timeout=PATIENCE,
        )
        assert (answer.status_code, list(answer.json())) == (400, ["error"])
    head = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    assert httpx.post(f"{server.address}/translate", content=bomb, headers=head, timeout=PATIENCE).status_code == 400
    assert server.memory() - before < 100


def test_forms_of_a_hundred_thousand_fields_are_refused(server):
    one = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n\r\n'
    for kind, body in {
        "multipart/form-data; boundary=x": one * 20_000 + b"--x--\r\n",
        "application/x-www-form-urlencoded": b"q=&" * 100_000,
        "application/json": b'{"q": ' + b"[" * 100_000,
    }.items():
        answer = httpx.post(
            f"{server.address}/translate", content=body, headers={"Content-Type": kind}, timeout=PATIENCE
        )
        assert (answer.status_code, list(answer.json())) == (400, ["error"]), answer.text
    assert server.serves()


def test_every_route_with_a_body_is_among_those_that_are_mutated(server):
    routes = httpx.get(f"{server.address}/openapi.json", timeout=PATIENCE).json()["paths"]
    posted = {re.escape(path).replace(r"\{name\}", "[^/]+") for path, methods in routes.items() if "post" in methods}
    assert len(posted) == 10
    for path in posted:
        assert any(re.fullmatch(path, other) for other, _ in BODIES.values()), path


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/translate_file"])
@pytest.mark.parametrize(("source", "target"), [*product(("en", "de", "zh", "auto"), ("en", "de", "zh"))])
def test_every_pair_of_languages_is_translated_kept_or_refused(server, path, source, target):
    """Of a model from English into German; short texts take a way of their own."""
    way = {"source": source, "target": target}
    contents = [
        {"json": way | {"q": "one two " * count, "format": form}} for count in (1, 100) for form in ("text", "html")
    ]
    if path == "/v2/translate":
        contents = [{"json": {"text": ["one two"], "source_lang": source, "target_lang": target}}]
    if path == "/translate_file":
        contents = [{"files": {"file": ("a.txt", "one two")}, "data": way}]
    for content in contents:
        answer = httpx.post(f"{server.address}{path}", timeout=PATIENCE, **content)
        assert answer.status_code in (200, 400), answer.text


@pytest.mark.parametrize("name", BODIES)
def test_mutated_bodies_are_answered_or_refused(server, name):
    """`python -m benchmarks mutations` tries more."""
    path, content = BODIES[name]
    request = httpx.Request("POST", server.address + path, **content)
    mutate = json_mutations if "json" in content else mutations
    with httpx.Client(timeout=PATIENCE) as client:
        assert client.send(request).status_code == 200
        for body in mutate(request.read(), seed=len(name), count=10):
            answer = client.post(request.url, content=body, headers=kept_headers(request))
            assert answer.status_code < 500, (body, answer.text)
    assert server.memory() < 1000


@pytest.mark.parametrize("sign", [" ", "`", "+", "a+", '." ', "<!-- "])
def test_a_text_of_one_repeated_sign_does_not_block_the_server(server, sign):
    """Hours, if it were looked through again from each of its characters, and nothing else would run meanwhile."""
    with server.connect(post_bytes("/translate", json=ASKED | {"q": sign * (150_000 // len(sign))})):
        assert server.serves()
