"""A hub on this machine: a server of as much of the Hugging Face hub's protocol as its client uses."""

import contextlib
import hashlib
import json
import re
import socket
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit


@dataclass
class Repository:
    files: dict[str, bytes]
    revisions: dict[str, str] = field(default_factory=dict)  # other than main: a name, and its commit
    gated: bool = False
    forbidden: bool = False
    sizes: dict[str, int] = field(default_factory=dict)  # in place of the true ones
    sent: dict[str, bytes] = field(default_factory=dict)  # in place of the true content
    gone: set[str] = field(default_factory=set)  # listed, but missing
    pull_request: int | None = None  # of the hub's converter

    @property
    def commit(self) -> str:
        return hashlib.sha1(repr(sorted((n, sha256(d)) for n, d in self.files.items())).encode()).hexdigest()


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def git_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


def is_large(file: str) -> bool:
    return file.endswith((".safetensors", ".bin", ".spm", ".model"))


class LocalHub:
    """Repositories by name behind an address; `requests` keeps those that came."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.requests: list[tuple[str, str, str | None]] = []  # method, path, range
        self.slow_after: int | None = None  # bytes of a large file that come fast; the rest comes slowly
        self.open: list[socket.socket] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def setup(self) -> None:
                super().setup()
                hub.open.append(self.connection)

            def do_GET(self) -> None:
                hub.respond(self)

            do_HEAD = do_GET

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def add(self, name: str, folder: Path | dict[str, bytes], **faults: object) -> Repository:
        files = folder if isinstance(folder, dict) else {p.name: p.read_bytes() for p in folder.iterdir()}
        self.repositories[name] = Repository(files, **faults)
        return self.repositories[name]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        for connection in self.open:  # those that the client keeps for its next question
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def fetched(self) -> list[str]:
        """The files that were requested whole or in part, each once."""
        paths = [path for method, path, _ in self.requests if method == "GET" and not path.startswith("/api/")]
        return list(dict.fromkeys(path.rpartition("/")[2] for path in paths))

    def respond(self, request: BaseHTTPRequestHandler) -> None:
        path = unquote(urlsplit(request.path).path)
        self.requests.append((request.command, path, request.headers.get("Range")))
        if match := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(revision|discussions)(?:/(.+))?)?", path):
            self.describe(request, *match.groups())
        elif match := re.fullmatch(r"/([^/]+/[^/]+)/resolve/(.+)/([^/]+)", path):
            self.resolve(request, *match.groups())
        elif match := re.fullmatch(r"/cdn/([^/]+/[^/]+)/([^/]+)", path):
            repository = self.repositories[match[1]]
            self.send_file(request, repository.sent.get(match[2], repository.files[match[2]]), {})
        else:
            refuse(request, 404, "")

    def find_repository(self, request: BaseHTTPRequestHandler, name: str, revision: str | None) -> Repository | None:
        repository = self.repositories.get(name)
        if repository is None:
            refuse(request, 401, "RepoNotFound")  # as the hub tells who is not logged in
        elif repository.gated:
            refuse(request, 403, "GatedRepo")
        elif repository.forbidden:
            refuse(request, 403, "")
        elif revision not in (None, "main", repository.commit, *repository.revisions):
            refuse(request, 404, "RevisionNotFound")
        else:
            return repository
        return None

    def describe(self, request: BaseHTTPRequestHandler, name: str, kind: str | None, revision: str | None) -> None:
        repository = self.find_repository(request, name, revision)
        if repository is None:
            return
        if kind == "discussions":
            one = {
                "title": "Adding `safetensors` variant of this model", "num": repository.pull_request, "status": "open",
                "author": {"name": "SFconvertbot"}, "isPullRequest": True, "createdAt": "2024-01-01T00:00:00.000Z",
                "repo": {"name": name, "type": "model"},
            }  # fmt: skip
            several = [one] if repository.pull_request else []
            send_json(request, {"discussions": several, "count": len(several), "start": 0})
            return
        siblings = []
        for file, data in repository.files.items():
            size = repository.sizes.get(file, len(data))
            large = {"lfs": {"size": size, "sha256": sha256(data), "pointerSize": 130}} if is_large(file) else {}
            siblings.append({"rfilename": file, "size": size, "blobId": git_id(data), **large})
        facts = {"id": name, "modelId": name, "sha": repository.commit, "private": False}
        send_json(request, facts | {"siblings": siblings})

    def resolve(self, request: BaseHTTPRequestHandler, name: str, revision: str, file: str) -> None:
        repository = self.find_repository(request, name, revision)
        if repository is None:
            return
        if file not in repository.files or file in repository.gone:
            refuse(request, 404, "EntryNotFound", {"X-Repo-Commit": repository.commit})
            return
        data = repository.files[file]
        headers = {"X-Repo-Commit": repository.commit}
        if not is_large(file):
            self.send_file(request, repository.sent.get(file, data), headers | {"ETag": f'"{git_id(data)}"'})
            return
        headers |= {"X-Linked-Etag": f'"{sha256(data)}"', "X-Linked-Size": str(len(data))}
        cdn = self.address.replace("127.0.0.1", "localhost")  # another host, as the hub's large files have
        send(request, 302, b"", headers | {"Location": f"{cdn}/cdn/{name}/{file}"})

    def send_file(self, request: BaseHTTPRequestHandler, data: bytes, headers: dict[str, str]) -> None:
        part = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range") or "")
        start = int(part[1]) if part else 0
        if part:
            headers = headers | {"Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
        headers = headers | {"Accept-Ranges": "bytes", "Content-Length": str(len(data) - start)}
        slow = self.slow_after is not None and self.slow_after <= len(data)
        send(request, 206 if part else 200, data[start : self.slow_after if slow else None], headers)
        if slow and request.command != "HEAD":
            self.send_slowly(request, data[self.slow_after :])

    def send_slowly(self, request: BaseHTTPRequestHandler, data: bytes) -> None:
        try:
            for place in range(0, len(data), 16):
                request.wfile.write(data[place : place + 16])
                request.wfile.flush()
                time.sleep(0.05)
        except OSError:  # the client is gone
            request.close_connection = True


def send(request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str]) -> None:
    request.send_response(status)
    for key, value in ({"Content-Length": str(len(body))} | headers).items():
        request.send_header(key, value)
    request.end_headers()
    if request.command != "HEAD":
        request.wfile.write(body)


def send_json(request: BaseHTTPRequestHandler, content: object) -> None:
    send(request, 200, json.dumps(content).encode(), {"Content-Type": "application/json"})


def refuse(request: BaseHTTPRequestHandler, status: int, code: str, headers: dict[str, str] | None = None) -> None:
    send(request, status, b"", {"X-Error-Code": code} | (headers or {}))
