"""From models to a server that listens: sockets, connections with time limits, and `serve`."""

from __future__ import annotations

import asyncio
import errno
import gc
import ipaddress
import json
import logging
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
from pathlib import Path
from types import FrameType
from typing import Any, cast

import h11
import torch
import uvicorn
from uvicorn.config import LOGGING_CONFIG
from uvicorn.protocols.http.h11_impl import H11Protocol

from glassformer.common.errors import ConfigError, why
from glassformer.deploy.server.app import SITE, create_app, is_handbook
from glassformer.deploy.server.directions import Directions, Model
from glassformer.deploy.server.keys import ApiKeys, network
from glassformer.deploy.server.middleware import LOCAL
from glassformer.deploy.server.queue import Queue
from glassformer.deploy.server.translation_service import TranslationService

FIRST_PORT, PORTS = 8017, 20
SMALL_MODEL = 20_000_000  # parameters
TIMEOUT = 600.0  # seconds
GC_THRESHOLD = 10_000  # new objects before garbage collection
SWITCH_INTERVAL = 1e-4  # seconds that a thread may keep the interpreter while another waits; Python's default is 0.005
HEAD_TIMEOUT = 10.0  # seconds for the head of a request
WRITE_TIMEOUT = 30.0  # seconds in which the client reads nothing of a response
GRACE_MARGIN = 0.5  # seconds of the grace period, for the server's own shutdown
PROBE = 1.0  # seconds between looks whether a client that sends no more has left
MAX_CONNECTIONS = 500  # a process may have about 1,000 open files
SITE_NAME = re.compile(r"https?://([\w.-]+|\[[0-9a-f:]+\])(:\d{1,5})?", re.IGNORECASE)


class JsonFormatter(logging.Formatter):
    """A line of JSON for each message, as for each request."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        return json.dumps({"time": moment, "level": record.levelname.lower(), "message": super().format(record)})


class JoiningTransport:
    """Sends the head of a response together with what is written next, or alone at the next turn of the loop."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop, self._head = transport, loop, b""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        held, self._head = self._head, b""
        if data.startswith(b"HTTP/") and not held:
            self._head = data
            self._loop.call_soon(self._flush)
        else:
            self._transport.write(held + data)

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._head:
            self.write(b"")


class Connection(H11Protocol):
    """uvicorn's protocol with time limits, and a limit of connections, in which the slow give way. A client that closes
    its half gets its answers. On Ctrl-C it aborts, but lets complete requests finish within the `grace` period."""

    head_timeout, write_timeout, max_connections, grace = HEAD_TIMEOUT, WRITE_TIMEOUT, MAX_CONNECTIONS, 0.0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._deadline: asyncio.TimerHandle | None = None
        self._half_closed = False
        # Of each network, those that wait for their client, longest first.
        self.waiting: dict[str, dict[Connection, None]] = vars(self.server_state).setdefault("waiting", {})

    # uvicorn narrows asyncio's type, and so does this.
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast(asyncio.Transport, JoiningTransport(transport, self.loop)))
        self.network = network(self.client[0] if self.client else "")
        self._update_waiting()
        if len(self.connections) > self.max_connections:
            most = max(self.waiting, key=lambda network: len(self.waiting[network]))
            longest = next(iter(self.waiting[most]))
            self.connections.discard(longest)
            longest._update_waiting()
            longest.transport.abort()
        self._set_deadline(self.head_timeout)
        if getattr(self.server_state, "ending", False):  # accepted during the shutdown
            self.shutdown()

    @property
    def idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    @property
    def incomplete(self) -> bool:
        """Whether no request is here that has all of its body."""
        return self.idle or self.cycle.more_body

    def _update_waiting(self) -> None:
        some = self.waiting.setdefault(self.network, {})
        if self in self.connections and (self.incomplete or self.flow.write_paused):
            some[self] = None  # keeps its place, if it has one
        else:
            some.pop(self, None)
            if not some:
                del self.waiting[self.network]

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._update_waiting()
        if self.flow.write_paused:
            return  # sending more does not extend the deadline for reading the response
        if not self.idle:
            self._set_deadline(None)  # the middleware has a timeout for the body
        elif self._deadline is None:
            self._set_deadline(self.head_timeout)

    def eof_received(self) -> bool:  # type: ignore[override]
        """Keep a connection whose complete request is not answered yet."""
        self._half_closed = not self.incomplete
        if self._half_closed:
            self.loop.call_later(PROBE, self._probe)
        return self._half_closed

    def _probe(self, sent: bool = False) -> None:
        """Abort if the client has closed both halves: its machine then refuses the interim response."""
        if self.transport.is_closing():
            return
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        elif not sent and not self.cycle.response_started and self.scope["http_version"] == "1.1":
            self.transport.write(self.conn.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            sent = True
        self.loop.call_later(PROBE, self._probe, sent)

    def on_response_complete(self) -> None:
        super().on_response_complete()  # begins a request that has come already
        self._update_waiting()
        if self._half_closed and self.incomplete:
            self.transport.close()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._update_waiting()
        self._set_deadline(self.write_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._update_waiting()
        self._set_deadline(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_deadline(None)
        super().connection_lost(exc)
        self._update_waiting()

    def shutdown(self) -> None:
        if self.grace and not self.incomplete:
            super().shutdown()
            self.loop.call_later(max(0.0, self.grace - GRACE_MARGIN), self.transport.abort)
        else:
            self.transport.abort()

    def _set_deadline(self, seconds: float | None) -> None:
        """Abort after so many seconds, instead of any earlier deadline."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self.transport.abort)


class Server(uvicorn.Server):
    """The first Ctrl-C stops the server, with its grace period; a second one ends the process at once."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit and sig == signal.SIGINT:
            os._exit(130)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        vars(self.server_state)["ending"] = True
        await super().shutdown(sockets)


def listen(host: str, port: int | None) -> socket.socket:
    """A listening socket at `port`, or at the first free port if it is None."""
    for tried in range(FIRST_PORT, FIRST_PORT + PORTS) if port is None else [port]:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, tried, type=socket.SOCK_STREAM)[0]
        except OSError as error:
            raise ConfigError(f"--host {host}: {why(error)}; 127.0.0.1 is this machine") from None
        found = socket.socket(family, kind, protocol)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind(address)
            found.listen(128)  # early clients wait until the models are loaded
            return found
        except OSError as error:
            found.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"{host}:{tried} cannot be served ({why(error)}); choose another") from None
            if port is not None:
                message = f"port {port} is in use; choose another, or leave --port out for a free one"
                raise ConfigError(message) from None
    raise ConfigError(f"the ports {FIRST_PORT} to {FIRST_PORT + PORTS - 1} are all in use; choose one with --port")


def host_names(host: str) -> frozenset[str]:
    """The names by which other machines may know this one. Any other name in a request is an attack."""
    name = socket.gethostname().lower()
    short = name.partition(".")[0]
    return LOCAL | {host.lower(), name, short, f"{short}.local"}


def own_addresses(any_family: bool) -> list[str]:
    """The addresses at which other machines can reach this one, as far as they can be found."""
    found = []
    outside = {socket.AF_INET: "192.0.2.1"} | ({socket.AF_INET6: "2001:db8::1"} if any_family else {})
    for family, other in outside.items():
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((other, 9))  # sends nothing, but selects the outgoing interface
                found.append(probe.getsockname()[0])
            found += [entry[4][0] for entry in socket.getaddrinfo(socket.gethostname(), None, family)]
        except OSError:
            continue  # no route in this family, or an unknown host name
    given = {address: ipaddress.ip_address(address) for address in map(str, found) if "%" not in address}
    return [address for address, known in given.items() if not (known.is_loopback or known.is_link_local)]


def url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bound_address(bound: socket.socket) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(bound.getsockname()[0].partition("%")[0])


def announcement(title: str, host: str, bound: socket.socket, by_key: bool = False) -> tuple[str, list[str]]:
    """The page's address on this machine, and lines for the user; `title` says what is served."""
    where, port = bound_address(bound), bound.getsockname()[1]
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


def check_origin(given: str) -> str:
    """Another site, in the form of a browser's `Origin` header."""
    if given != "*" and not SITE_NAME.fullmatch(given):
        raise ConfigError(f"--cors {given!r} names no site; say one such as https://example.org, or * for all")
    return given.lower()


def threads_per_request(model: Model, concurrency: int) -> int:
    """A small model is not faster on two cores, and much slower if others compute too."""
    small = sum(weight.numel() for weight in model.model.parameters()) < SMALL_MODEL
    return 1 if small else max(1, torch.get_num_threads() // concurrency)


@dataclass(frozen=True)
class ServeOptions:
    """Where to listen, for whom, and how translations are made."""

    host: str = "127.0.0.1"
    port: int | None = None  # a free one by default
    open_browser: bool = False
    workers: int = 1  # batches that are translated in parallel
    threads: int | None = None  # cores for each of them; by default, those that are free
    open_to_all: bool = False  # other machines may use the server without a key
    keys: Path | None = None  # a file of API keys: programs need one of them
    grace: float = 0.0  # seconds to finish running requests when the server stops
    log: bool = False  # write a line for every request to stderr
    origins: tuple[str, ...] = ()  # other sites whose pages may ask for translations; `*`: all
    timeout: float = TIMEOUT  # seconds for one translation; 0: no limit


def serve(
    title: str,
    page: Callable[[], Directions] | None,
    models: Callable[[], Directions] | None,
    options: ServeOptions,
    report: Callable[[str], None] = print,
) -> None:
    """Serve until interrupted: a `page` that shows models, translations by `models`, or both."""
    api_keys = None if options.keys is None else ApiKeys(options.keys)
    origins = [check_origin(one) for one in options.origins]
    with listen(options.host, options.port) as bound:
        here, lines = announcement(title, options.host, bound, api_keys is not None and page is None)
        outside = not bound_address(bound).is_loopback
        if outside and not options.open_to_all and (api_keys is None or page is not None):
            problem = "nothing asks who they are" if api_keys is None else "the page asks nobody for a key"
            raise ConfigError(
                f"--host {options.host} lets other machines in, and {problem}; say --open-to-all if that is what you "
                "want, or --only api --keys FILE, or leave --host out"
            )
        shown = None if page is None else page()
        directions, service = None if models is None else models(), None
        if directions is not None and any(one.source or one.target for one in directions.by_name.values()):
            service = TranslationService(directions, Queue(options.workers, options.threads))
        elif shown is None:
            raise ConfigError(
                "the model does not say which languages it knows, so nobody could ask for them; add `[about]` with "
                "`source` and `target` to its recipe.toml"
            )
        if service is not None:
            threading.Thread(target=warm_up, args=(service,), daemon=True).start()
        app = create_app(
            shown,
            hosts=host_names(options.host),
            by_address=outside,
            service=service,
            handbook=SITE if is_handbook(SITE) else None,
            api_keys=api_keys,
            log=(lambda line: print(line + "\n", end="", file=sys.stderr)) if options.log else None,
            origins=origins,
            timeout=options.timeout,
        )
        if shown is not None:
            torch.set_num_threads(threads_per_request(shown.get().model, app.state.admission.concurrency))
        config = uvicorn.Config(
            app,
            http=type("GracefulConnection", (Connection,), {"grace": options.grace}),
            ws="none",
            log_config=None if options.log else LOGGING_CONFIG,
            log_level="warning",
            access_log=False,
            # For connections that do not end when they are aborted.
            timeout_graceful_shutdown=math.ceil(options.grace) + 5 if options.grace else None,
        )
        if options.log:
            log_as_json()
        logging.getLogger("python_multipart").setLevel(logging.ERROR)  # malformed forms are answered
        server = Server(config)
        if options.open_browser:
            threading.Thread(target=open_when_ready, args=(server, here), daemon=True).start()
        for line in lines:
            report(line)
        sys.stdout.flush()
        server.run(sockets=[bound])


def warm_up(service: TranslationService) -> None:
    """Load the models, and exempt them from garbage collection, which would pause all requests. Switch threads often,
    so that request handling does not keep the interpreter from the models."""
    service.load()
    sys.setswitchinterval(SWITCH_INTERVAL)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, *gc.get_threshold()[1:])


def log_as_json() -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(handlers=[handler], force=True)
    logging.captureWarnings(True)
    threading.excepthook = lambda given: logging.error("a thread failed", exc_info=given.exc_value)


def open_when_ready(server: uvicorn.Server, address: str) -> None:
    while not server.started:
        time.sleep(0.05)
    webbrowser.open(address)
