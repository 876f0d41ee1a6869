"""Commands as processes of their own that need not load PyTorch first: most of what a small command takes.

One process loads everything and is forked for each command. The fork is cut loose from it and becomes a child of the
tests' process, as if it had been started from there: its signals, pipes and exit code are a process's own. What must
begin from nothing, for its environment or its imports, is started as usual.
"""

import atexit
import contextlib
import ctypes
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from importlib import import_module
from typing import Any

MODES = (
    {"encoding": "utf-8"},
    {"encoding": "utf-8", "mode": "w"},
    {"encoding": "utf-8", "mode": "w", "buffering": 1, "errors": "backslashreplace"},
)
LOADED = (
    *("matplotlib.backends.backend_agg", "matplotlib.figure", "rich.progress", "sacrebleu.metrics"),
    *("torch._dynamo", "torch.distributed.fsdp"),
    *(
        f"glassformer.{name}"
        for name in ("cli", "train.evaluation.evaluate", "explain.trace", "labs.run", "deploy.server.listen")
    ),
    *(f"glassformer.{name}" for name in ("train.run", "pipelines.translator")),
)
CHILD_SUBREAPER = 36  # of prctl: orphans among our descendants become our children


class Warm(subprocess.Popen):
    """A `glassformer` command: the words after the program's name, and what its environment has besides the tests'."""

    def _execute_child(self, args: list[str], *rest: Any) -> None:
        *_, cwd, environment = rest[:6]  # executable, preexec_fn, close_fds, pass_fds, cwd, env
        pipes = rest[9:15]  # after startupinfo, creationflags, shell
        streams = [pipes[place] if pipes[place] != -1 else number for number, place in enumerate((0, 3, 5))]
        request = {
            "words": list(map(str, args)),
            "cwd": os.fspath(cwd or os.getcwd()),
            "environment": environment or {},
        }
        line = fork_server()
        socket.send_fds(line, [json.dumps(request).encode()], streams)
        self.pid = int(line.recv(64))
        self._child_created = True
        self._close_pipe_fds(*pipes)


@cache
def fork_server() -> socket.socket:
    """The connection to the process that is forked, started at the first use."""
    ctypes.CDLL(None).prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    words = [sys.executable, __file__, str(theirs.fileno())]
    environment = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "COLUMNS")}
    quiet = {"stdin": subprocess.DEVNULL, "start_new_session": True, "pass_fds": [theirs.fileno()]}
    process = subprocess.Popen(words, env=environment, **quiet)
    theirs.close()
    if ours.recv(64) != b"ready":
        raise RuntimeError("the process that commands are forked from has died")

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


def serve(line: socket.socket) -> None:
    """Fork for each request; in the fork, return to run the command."""
    while True:
        message, streams, _, _ = socket.recv_fds(line, 1 << 16, 3)
        if not message:
            sys.exit()
        between = os.fork()
        if between:
            os.waitpid(between, 0)
            for number in streams:
                os.close(number)
            line.send(str(int.from_bytes(os.read(BORN[0], 8), "big")).encode())
            continue
        child = os.fork()
        if child:
            os.write(BORN[1], child.to_bytes(8, "big"))
            os._exit(0)
        line.close()
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the tests were started with
        for place, number in enumerate(streams):
            os.dup2(number, place)
            os.close(number)
        # As Python opens them.
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, **kind) for number, kind in enumerate(MODES))
        request = json.loads(message)
        os.environ |= request["environment"]
        os.chdir(request["cwd"])
        sys.argv = [LAUNCHED, *request["words"]]
        return


def run() -> None:
    """The command, to its end as Python has it, less the taking apart of all modules: it would copy their memory."""
    try:
        sys.modules["glassformer.cli"].main()
        code = 0
    except SystemExit as ended:
        if not isinstance(ended.code, int | None):
            raise
        code = ended.code or 0
    threading._shutdown()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        code = 120
    os._exit(code)


if __name__ == "__main__":
    for name in LOADED:
        with contextlib.suppress(ImportError):  # an extra that is not installed
            import_module(name)
    LAUNCHED, BORN = os.path.join(os.path.dirname(sys.modules["glassformer"].__file__), "__main__.py"), os.pipe()
    hand = socket.socket(fileno=int(sys.argv[1]))
    gc.collect()
    gc.freeze()  # nothing of it will be garbage: a fork need not touch, and so copy, it
    hand.send(b"ready")
    serve(hand)
    run()
