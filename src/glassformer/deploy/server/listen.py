"""From a model's folder to a server that answers."""

from __future__ import annotations

import errno
import gc
import ipaddress
import math
import os
import re
import signal
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType

import torch
import uvicorn

from glassformer.common.errors import ConfigError, why
from glassformer.deploy.server.app import create_app
from glassformer.deploy.server.connection import Connection
from glassformer.deploy.server.directions import Directions, Served
from glassformer.deploy.server.handbook import SITE, is_handbook
from glassformer.deploy.server.keys import Gate
from glassformer.deploy.server.middleware import LOCAL
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.routes import Routes

FIRST_PORT, TRIED = 8017, 20
SMALL = 20_000_000  # parameters
TIMEOUT = 600.0  # seconds
YOUNG = 10_000  # objects made before garbage is looked for among them
TURN = 1e-4  # seconds for which one thread may keep the interpreter while another asks for it; Python says 0.005
SITE_NAME = re.compile(r"https?://([\w.-]+|\[[0-9a-f:]+\])(:\d{1,5})?", re.IGNORECASE)


def listen(host: str, port: int | None) -> socket.socket:
    """A bound socket: at `port`, or at the first free one where none was asked for."""
    for tried in range(FIRST_PORT, FIRST_PORT + TRIED) if port is None else [port]:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise ConfigError(f"--host {host}: {why(error)}; 127.0.0.1 is this machine") from None
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(128)  # from now on the port is ours, and who comes early waits
            return found
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"{host}:{tried} cannot be served ({why(error)}); choose another") from None
            if port is not None:
                raise ConfigError(
                    f"port {port} is in use; choose another, or leave --port out for a free one"
                ) from None
    raise ConfigError(f"the ports {FIRST_PORT} to {FIRST_PORT + TRIED - 1} are all in use; choose one with --port")


def own_names(host: str) -> frozenset[str]:
    """The names by which other machines may know this one; any other name in a request is someone's trick."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return LOCAL | {host.lower(), name, short, f"{short}.local"}


def own_addresses(any_family: bool) -> list[str]:
    """The addresses at which other machines can reach this one, as far as it knows."""
    found = []
    outside = {socket.AF_INET: "192.0.2.1"} | ({socket.AF_INET6: "2001:db8::1"} if any_family else {})
    for family, other in outside.items():
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((other, 9))  # sends nothing: it only picks the way out
                found.append(probe.getsockname()[0])
            found += [entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None, family)]
        except OSError:
            continue  # no way out by this family, or a name that nobody knows
    given = {address: ipaddress.ip_address(address) for address in map(str, found) if "%" not in address}
    return [address for address, known in given.items() if not (known.is_loopback or known.is_link_local)]


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_outside(bound: socket.socket) -> bool:
    """Whether other machines can reach it."""
    return not ipaddress.ip_address(bound.getsockname()[0].partition("%")[0]).is_loopback


def announce(title: str, host: str, bound: socket.socket, by_key: bool = False) -> tuple[str, list[str]]:
    """Where the page is for this machine, and what a user is told; `title` says what is shown there."""
    at, port = bound.getsockname()[:2]
    where = ipaddress.ip_address(at.partition("%")[0])
    here = url("127.0.0.1" if where.is_unspecified else host, port)
    if where.is_loopback:
        return here, [f"{title} at {here} (Ctrl-C stops it)"]
    others = own_addresses(where.version == 6) if where.is_unspecified else [host]
    reached = ", ".join(url(one, port) for one in others) or "an address that this machine does not know"
    if by_key:
        return here, [f"{title} at {here}, to other machines that have a key at {reached} (Ctrl-C stops it)"]
    return here, [
        f"{title} at {here}, to other machines at {reached} (Ctrl-C stops it)",
        "open to the network: whoever reaches this port can use the model, read its weights and run labs (not with "
        "--only api), and nothing asks who they are; leave --host out to keep it to this machine",
    ]


def origin_of(given: str) -> str:
    """Another site, as a browser names it."""
    if given != "*" and not SITE_NAME.fullmatch(given):
        raise ConfigError(f"--cors {given!r} names no site; say one such as https://example.org, or * for all")
    return given.lower()


def cores_each(served: Served, turns: int) -> int:
    """The cores for one request: a small model gains nothing from a second, and loses much where others are at work."""
    small = sum(weight.numel() for weight in served.model.parameters()) < SMALL
    return 1 if small else max(1, torch.get_num_threads() // turns)


class Server(uvicorn.Server):
    """The first Ctrl-C breaks off what is being answered, or lets it finish within the grace; a second ends everything
    at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        vars(self.server_state)["ending"] = True
        await super().shutdown(sockets)


@dataclass(frozen=True)
class Options:
    """Where to listen, for whom, and how translations are made.

    host, port      an address, and a free port where none is said
    open_browser    show the page at once
    workers         batches that are translated at once
    threads         cores for each of them; those that are free, if none is said
    open_to_all     other machines may come in without a key
    keys            a file of keys: programs need one of them
    grace           seconds in which what has been begun may be finished, when the server is told to stop
    log             write a line for every request to stderr
    origins         other sites whose pages may ask for translations; `*`: all
    timeout         seconds for one translation; 0: as long as it takes
    """

    host: str = "127.0.0.1"
    port: int | None = None
    open_browser: bool = False
    workers: int = 1
    threads: int | None = None
    open_to_all: bool = False
    keys: Path | None = None
    grace: float = 0.0
    log: bool = False
    origins: tuple[str, ...] = ()
    timeout: float = TIMEOUT


def serve(
    title: str,
    page: Callable[[], Directions] | None,
    models: Callable[[], Directions] | None,
    options: Options,
    say: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted: a `page` that shows models, and translations by `models`, or one of both; `title` is
    what the user is told."""
    gate = None if options.keys is None else Gate(options.keys)
    origins = [origin_of(one) for one in options.origins]
    with listen(options.host, options.port) as bound:
        here, told = announce(title, options.host, bound, gate is not None and page is None)
        outside = is_outside(bound)
        if outside and not options.open_to_all and (gate is None or page is not None):
            asked = "nothing asks who they are" if gate is None else "the page asks nobody for a key"
            raise ConfigError(
                f"--host {options.host} lets other machines in, and {asked}; say --open-to-all if that is what you "
                "want, or --only api --keys FILE, or leave --host out"
            )
        shown = None if page is None else page()
        routes = None if models is None else Routes(models(), Queue(options.workers, options.threads))
        if routes is not None and not routes.languages:
            if shown is None:
                raise ConfigError(
                    "the model does not say which languages it knows, so nobody could ask for them; add `[about]` with "
                    "`source` and `target` to its recipe.toml"
                )
            routes.queue.close()
            routes = None
        if routes is not None:
            threading.Thread(target=settle, args=(routes,), daemon=True).start()  # nobody should wait for it
        site = SITE if is_handbook(SITE) else None
        app = create_app(
            shown,
            hosts=own_names(options.host),
            by_address=outside,
            routes=routes,
            handbook=site,
            gate=gate,
            log=partial(print, file=sys.stderr, flush=True) if options.log else None,
            origins=origins,
            seconds=options.timeout,
        )
        if shown is not None:
            torch.set_num_threads(cores_each(shown.shown().served, app.state.turns.at_once))
        patient = type("Patient", (Connection,), {"grace": options.grace})
        longest = math.ceil(options.grace) + 5 if options.grace else None  # for what does not end when it is broken off
        server = Server(
            uvicorn.Config(
                app,
                http=patient,
                ws="none",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=longest,
            )
        )
        if options.open_browser:
            threading.Thread(target=open_when_ready, args=(server, here), daemon=True).start()
        for line in told:
            say(line)
        sys.stdout.flush()
        server.run(sockets=[bound])


def settle(routes: Routes) -> None:
    """Load the models. All that is there then will stay, and is not to be searched for garbage again and again while
    everybody waits. And whoever answers requests is not to keep the interpreter from the models for long."""
    routes.load()
    sys.setswitchinterval(TURN)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *gc.get_threshold()[1:])


def open_when_ready(server: uvicorn.Server, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)
