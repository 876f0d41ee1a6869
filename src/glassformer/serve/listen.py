"""From a model's folder to a server that answers."""

from __future__ import annotations

import errno
import ipaddress
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from glassformer.errors import ConfigError
from glassformer.serve.app import create_app
from glassformer.serve.door import LOCAL
from glassformer.translator import Translator

FIRST_PORT, TRIED = 8017, 20
ANYTHING = ("Hello, world!",)  # to try on a model that names no examples


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int | None) -> socket.socket:
    """A bound socket: at `port`, or at the first free one where none was asked for."""
    for tried in range(FIRST_PORT, FIRST_PORT + TRIED) if port is None else [port]:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise ConfigError(f"--host {host}: {error.strerror or error}; 127.0.0.1 is this machine") from None
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(128)  # from now on the port is ours, and who comes early waits
            return found
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"{host}:{tried} cannot be served ({error.strerror}); choose another") from None
            if port is not None:
                raise ConfigError(
                    f"port {port} is in use; choose another, or leave --port out for a free one"
                ) from None
    raise ConfigError(f"the ports {FIRST_PORT} to {FIRST_PORT + TRIED - 1} are all in use; choose one with --port")


def make_app(folder: Path, host: str, device: str = "cpu") -> FastAPI:
    """The server of a model's folder; on loopback it answers to this machine's names only."""
    translator = Translator.load(folder, device)
    hosts = LOCAL | {host} if is_loopback(host) else None
    examples = translator.about.examples or ANYTHING
    return create_app(translator, folder.resolve().name, examples, hosts=hosts)


def serve(
    folder: Path, host: str, port: int | None, device: str, open_browser: bool, say: Callable[[str], None] = print
) -> None:
    """Serve until interrupted."""
    bound = listen(host, port)
    with bound:
        app = make_app(folder, host, device)
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{bound.getsockname()[1]}"
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False))
        if open_browser:
            threading.Thread(target=open_when_ready, args=(server, address), daemon=True).start()
        say(f"{folder} is shown at {address} (Ctrl-C stops it)")
        server.run(sockets=[bound])


def open_when_ready(server: uvicorn.Server, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)
