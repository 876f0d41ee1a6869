"""What a user gets: the wheel and the source distribution are built, and the wheel is used where nothing else is.

`make package` runs it. The wheel goes, without extras, into an empty environment outside the checkout, and there every
command runs, or says in one line which extra it lacks. Not a part of `make test`: pip needs a minute for torch.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUNDLE = ROOT / "tests" / "bundle-1"  # a trained model, a small one
BUILD = "from setuptools import build_meta; print(build_meta.build_{kind}({out!r}))"
LARGEST = 32_000_000  # bytes of the wheel, its translators included
NOT_PACKED = (".ci/", ".gitignore")  # of a clone: for the place where it is developed
TINY = "--set train.steps=3 --set train.warmup_steps=1 --set train.batch_tokens=256 --set model.d_model=32"

# A line of the shell, and what it must print.
WORKS = {
    "glassformer --help": "A Transformer you can see through, and ship.",
    "glassformer --version": "glassformer {version}",
    "python -m glassformer --version": "glassformer {version}",
    "glassformer translate 'Where is the nearest station?' --to de": "Bahnhof",
    "glassformer translate page.md --to zh --output page.zh.md && cat page.zh.md": "`pip install`",
    "glassformer trace": "softmax",
    "glassformer trace bundle twenty-one": "cross_attention",
    "glassformer trace bundle twenty-one --html one.html": "",
    "glassformer train numerals --out runs/tiny --device cpu " + TINY: "exact match",
    "glassformer translate runs/tiny twenty-one": "\n",
    "glassformer translate bundle 'one two three'": "drei zwei eins",
    "glassformer score bundle --src a.en --tgt a.de": "",
    "glassformer evaluate bundle --src a.en --ref a.de": "BLEU",
    "glassformer bulk a.en rows --model bundle && cat rows/a.en": "\n",
    "glassformer lab permutation": "permutation",
    "glassformer doctor": "no matplotlib",
}
# A line of the shell, and the line of pip that it must advise.
LACKS = {
    "glassformer serve bundle": "pip install 'glassformer[web]'",
    "cp a.en a.parquet; glassformer bulk a.parquet tables --model bundle": "pip install 'glassformer[bulk]'",
    "glassformer bulk a.en there --model bundle --address auto": "pip install 'glassformer[bulk]'",
    "glassformer lab permutation --out labs": "pip install 'glassformer[plot]'",
    "glassformer train numerals --out runs/log --set train.tensorboard=true": "pip install 'glassformer[log]'",
    "glassformer train hub.toml --out runs/hub": "pip install 'glassformer[hub]'",
    "glassformer doctor --parity": "pip install transformers",
    "glassformer bench train": "python -m benchmarks train",
}


class Fault(Exception):
    """What a user would meet."""


def run(*words: str | Path, cwd: Path, **options: str) -> subprocess.CompletedProcess[str]:
    """In an environment that knows nothing of this checkout."""
    known = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(words, cwd=cwd, env=known | options, text=True, capture_output=True, timeout=900)


def done(*words: str | Path, cwd: Path, **options: str) -> str:
    ended = run(*words, cwd=cwd, **options)
    if ended.returncode:
        raise Fault(f"`{shlex.join(map(str, words))}` ended with {ended.returncode}:\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def copied(folder: Path) -> set[str]:
    """The files of a clone, put into `folder`; what was built earlier is none of them."""
    listed = done("git", "ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    names = {name for name in listed if (ROOT / name).is_file()}
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return names


def build(kind: str, source: Path, out: Path) -> Path:
    """The wheel or the sdist of a source, by the setuptools that is here."""
    out.mkdir()
    return out / done(sys.executable, "-c", BUILD.format(kind=kind, out=str(out)), cwd=source).splitlines()[-1]


def content(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_builds(folder: Path) -> Path:
    """Both are complete, and the wheel made of the sdist is the same; the wheel."""
    cloned = copied(folder / "clone")
    sdist = build("sdist", folder / "clone", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
        packed = {name.partition("/")[2] for name in archive.getnames()}
    if missing := {name for name in cloned - packed if not name.startswith(NOT_PACKED)}:
        raise Fault(
            f"the sdist lacks {sorted(missing)}; MANIFEST.in, and package-data in pyproject.toml, say what goes in"
        )
    wheel = build("wheel", folder / "clone", folder / "wheel")
    (unpacked,) = (folder / "unpacked").iterdir()
    if (size := wheel.stat().st_size) > LARGEST:
        raise Fault(f"the wheel has {size:,} bytes, more than {LARGEST:,}; is the box stored in int8?")
    ours, theirs = content(wheel), content(build("wheel", unpacked, folder / "again"))
    if missing := {name for name in cloned if name.startswith("src/")} - {f"src/{name}" for name in ours}:
        raise Fault(f"the wheel lacks {sorted(missing)}; package-data in pyproject.toml says what goes in")
    if ours != theirs:
        other = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        raise Fault(f"the sdist builds another wheel than the checkout: {other}")
    return wheel


def installed(wheel: Path, place: Path) -> Path:
    """An empty environment with the wheel and what it asks for, nothing else; its folder of programs."""
    done(sys.executable, "-m", "venv", "--without-pip", place, cwd=place.parent)
    pip = (sys.executable, "-m", "pip", "--quiet", "--python", place / "bin" / "python")
    done(*pip, "install", "--no-compile", "-c", ROOT / "constraints.txt", wheel, cwd=place.parent)
    done(*pip, "check", cwd=place.parent)
    return place / "bin"


def check_commands(programs: Path, version: str, desk: Path) -> list[str]:
    """What is wrong with the commands, used at a `desk` that holds a model and two files."""
    shutil.copytree(BUNDLE, desk / "bundle")
    (desk / "a.en").write_text("twenty-one\n", encoding="utf-8")
    (desk / "page.md").write_text("# Setup\n\nTo begin, run `pip install` in a terminal.\n", encoding="utf-8")
    (desk / "a.de").write_text("einundzwanzig\n", encoding="utf-8")
    (desk / "hub.toml").write_text('[[data.train]]\nhub = "someone/pairs"\n', encoding="utf-8")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    faults = []
    for line, wanted in WORKS.items():
        ended = run("bash", "-c", line, cwd=desk, PATH=path)
        if ended.returncode or wanted.format(version=version) not in ended.stdout:
            faults.append(f"`{line}` should print {wanted!r}; {told(ended)}")
    for line, wanted in LACKS.items():
        ended = run("bash", "-c", line, cwd=desk, PATH=path)
        lines = ended.stderr.splitlines()
        if ended.returncode != 2 or len(lines) != 1 or wanted not in lines[0] or ended.stdout:
            faults.append(f"`{line}` should end with 2 and one line that says {wanted!r}; {told(ended)}")
    if not (desk / "one.html").read_text(encoding="utf-8").count("<script"):
        faults.append("the page that `trace --html` keeps has none of its code")
    return faults


def told(ended: subprocess.CompletedProcess[str]) -> str:
    return f"it ended with {ended.returncode} and printed\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}"


def main() -> None:
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {text}", flush=True)

    with tempfile.TemporaryDirectory(prefix="glassformer-package-") as place:
        folder = Path(place)
        try:
            wheel = check_builds(folder)
            say(f"built {wheel.name}, the same from the checkout and from its sdist")
            programs = installed(wheel, folder / "environment")
            say("installed into an empty environment, without extras")
            (folder / "desk").mkdir()
            faults = check_commands(programs, wheel.name.split("-")[1], folder / "desk")
        except Fault as fault:
            sys.exit(f"package: {fault}")
    for fault in faults:
        print(f"package: {fault}", file=sys.stderr)
    say(f"{len(WORKS)} commands that must work, {len(LACKS)} that must say what they lack: {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
