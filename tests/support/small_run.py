"""A training run small enough for a test: toy sentences, a recipe, and the command line as a real process."""

import hashlib
import io
import json
import random
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from warm import Warm

from glassformer.cli import main
from glassformer.train import Report, read_recipe
from glassformer.train import train as run_training
from glassformer.train.evaluation.evaluate import validation_bleu
from glassformer.train.folder import saved_recipe

OLD = Path(__file__).parents[1] / "bundle-1"  # a trained model, a small one
PATIENCE = 600  # seconds; only what will never come takes so long, even where every core is busy
WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "fünf", "six": "sechs"}

RECIPE = """
[[data.train]]
src = "train.en"
tgt = "train.de"

[[data.valid]]
src = "valid.en"
tgt = "valid.de"

[tokenizer]
kind = "words"

[model]
d_model = 32
heads = 2
d_ff = 64
layers = 1
max_length = 272
dropout = 0.1

[train]
steps = 60
batch_tokens = 256
shapes = 4
lr = 0.01
warmup_steps = 10
precision = "fp32"
ema = 0.9
log_every = 5
valid_every = 20
save_every = 10
"""


def write_corpus(folder: Path, name: str, pairs: int, seed: int) -> None:
    """Sentences of number words and their German, the word order turned round."""
    chance = random.Random(seed)
    sources = [[chance.choice(list(WORDS)) for _ in range(chance.randint(1, 9))] for _ in range(pairs)]
    targets = [[WORDS[word] for word in reversed(source)] for source in sources]
    for suffix, lines in (("en", sources), ("de", targets)):
        (folder / f"{name}.{suffix}").write_text("".join(" ".join(line) + "\n" for line in lines), encoding="utf-8")


def write_recipe(folder: Path, text: str = RECIPE) -> Path:
    """A folder with `recipe.toml` and its corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    write_corpus(folder, "train", 300, seed=1)
    write_corpus(folder, "valid", 30, seed=2)
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


def train_here(recipe: Path | None, out: Path, *changes: str, resume: bool = False) -> str:
    """Train in this process; the run's report comes back."""
    stream = io.StringIO()
    loaded = saved_recipe(out, changes) if recipe is None else read_recipe(str(recipe), changes)
    run_training(loaded, out, resume=resume, device="cpu", report=Report(stream), make_judge=validation_bleu)
    return stream.getvalue()


def command(*words: str | Path) -> list[str]:
    return [sys.executable, "-m", "glassformer", *map(str, words)]


def torchrun(*words: str | Path) -> list[str]:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    return [sys.executable, *launch, *map(str, words)]


def launch(words: list[str], **options: Any) -> subprocess.Popen[Any]:
    """A process of `command(...)`, or of anything else; see warm.py."""
    if words[:3] == command() and options.get("env") is None and sys.platform == "linux":
        return Warm(words[3:], **options)
    return subprocess.Popen(words, **options)


def call(
    words: list[str], cwd: Path | None = None, input: Any = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """A process from its start to its end."""
    pipe = subprocess.PIPE
    options = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True, "encoding": "utf-8"} | options
    with launch(words, cwd=cwd, **options) as process:
        try:
            stdout, stderr = process.communicate(input, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def metrics(out: Path) -> list[dict[str, float]]:
    """The rows of metrics.jsonl without the speed, the one value that a repetition may change."""
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{key: value for key, value in row.items() if key not in ("tokens_per_second", "seconds")} for row in rows]


class Cli:
    """The command line in this process: exit code, standard output and standard error."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def __call__(self, *words: object, stdin: bytes | str | None = None) -> tuple[int, str, str]:
        self.monkeypatch.setattr(sys, "argv", ["glassformer", *map(str, words)])
        if stdin is not None:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *self.capsys.readouterr()

    def fails(self, *words: object) -> str:
        """The one line a mistake is answered with."""
        code, out, err = self(*words)
        assert code == 2, err
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("glassformer: ")
        return err.removeprefix("glassformer: ").strip()


def by_hand(*words: str | Path, codes: tuple[int, int] = (0, 0)) -> tuple[str, str]:
    """The same without the wait for torchrun: its variables are set for two processes that have torch loaded."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    ranks = [Warm(words, env=meeting | {"RANK": rank, "LOCAL_RANK": rank}, **pipes) for rank in "01"]
    with ThreadPoolExecutor(2) as readers:
        outputs = list(readers.map(lambda process: process.communicate(timeout=PATIENCE), ranks))
    assert tuple(process.returncode for process in ranks) == codes, outputs
    return outputs[0][0] + outputs[1][0], outputs[0][1] + outputs[1][1]
