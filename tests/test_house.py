"""The house: imports go one way, files stay small enough to read, help is instant, the README is true."""

import ast
import re
import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from docs import make_house

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src" / "glassformer"

# A room may import from the rooms of earlier lines, and from itself; rooms of one line never meet.
STOREYS = [
    ["common", "page"],
    ["model", "data"],
    ["weights"],
    ["decode"],
    ["pipelines"],
    ["train", "explain", "labs"],
    ["deploy"],
    ["cli"],
]
LEVEL = {room: level for level, rooms in enumerate(STOREYS) for room in rooms}
FILES = sorted(file for room in LEVEL for file in (HOUSE / room).rglob("*.py"))
LONGEST = 500  # lines of a file


def room_of(file):
    return file.relative_to(HOUSE).parts[0]


def test_every_room_has_its_place():
    rooms = {path.name for path in HOUSE.iterdir() if path.name != "__pycache__"}
    assert rooms == {*LEVEL, "__init__.py", "__main__.py", "py.typed"}
    assert set(make_house.ROOMS) == set(LEVEL)


def test_imports_go_one_way():
    for room, others in make_house.room_imports().items():
        assert not [other for other in others if LEVEL[other] >= LEVEL[room]], f"{room} must not import these"


def test_no_files_import_each_other_in_a_circle():
    modules = {}
    for file in FILES:
        parts = file.relative_to(HOUSE.parent).with_suffix("").parts
        modules[".".join(parts).removesuffix(".__init__")] = file
    arrows = {name: {other for other in make_house.imports(file) if other in modules} for name, file in modules.items()}
    done, path = set(), []

    def visit(name):
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            path.append(name)
            for other in arrows[name] - {name}:
                if modules[other].name != "__init__.py":  # a folder's front hands on the names of its files
                    visit(other)
            done.add(path.pop())

    for name in arrows:
        visit(name)


def test_the_drawing_of_the_rooms_is_fresh():
    for language in ("en", "zh"):
        drawn = (ROOT / "docs" / "figures" / f"house.{language}.svg").read_text(encoding="utf-8")
        assert drawn == make_house.draw(language), "run: python docs/make_house.py"


def test_a_file_is_read_in_one_sitting():
    sizes = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    assert not {file: lines for file, lines in sizes.items() if lines > LONGEST}


def test_no_string_leads_where_no_import_may():
    """A room's files are asked of the room; a module that a string names is of this room or of one below."""
    for file in FILES:
        if file == HOUSE / "common" / "aliases.py":
            continue  # each module's earlier place, and where it is now
        room, tree = room_of(file), ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("files", "resources.files"):
                assert [ast.unparse(argument) for argument in node.args] == ["__name__"], (
                    f"{file} reads another's files"
                )
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value:
                for other in re.findall(r"\bglassformer[./](\w+)", node.value):
                    lower = other in LEVEL and LEVEL[other] < LEVEL[room]
                    assert other == room or lower or other not in LEVEL, f"{file} names {other} in a string"


def test_files_of_tests_have_names_of_their_own():
    """Without packages, pytest collects only one of two files of one name."""
    names = [file.name for file in (ROOT / "tests").rglob("test_*.py")]
    assert not {name for name in names if names.count(name) > 1}


def test_the_heart_stays_small():
    sizes = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in (HOUSE / "model").glob("*.py")}
    assert sum(sizes.values()) <= 1300
    assert max(sizes.values()) <= 300


def test_model_names_no_architecture():
    for file in (HOUSE / "model").glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        names |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
        }
        tables = {table.stem for table in (HOUSE / "weights" / "pretrained").glob("*.py")} - {
            "__init__",
            "family",
            "loader",
        }
        assert {"bert", "llama", "vit"} < tables
        assert not {n for n in names if n.lower() in tables}, file


def test_help_needs_no_torch_and_answers_at_once():
    probe = """
import sys
sys.argv = ["glassformer", "--help"]
try:
    import glassformer.cli
    glassformer.cli.main()
except SystemExit:
    pass
assert "torch" not in sys.modules, "torch was imported"
"""
    subprocess.run([sys.executable, "-c", probe], check=True, capture_output=True)
    # The processor's time, not the clock's: other tests run beside this one.
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "glassformer", "--help"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.5


def test_translating_loads_nothing_of_training():
    probe = """
import sys
import glassformer.cli
try:
    glassformer.cli.main()
except SystemExit as end:
    assert not end.code, end.code
loaded = {name.split(".")[1] for name in sys.modules if name.startswith("glassformer.")}
assert "pipelines" in loaded
assert not loaded & {"train", "explain", "labs"}, loaded
assert "glassformer.deploy.server" not in sys.modules
"""
    command = [sys.executable, "-c", probe, "translate", "--device", "cpu", str(ROOT / "tests" / "bundle-1"), "one"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nothing_is_tracked_that_git_ignores():
    """A link or folder of one's own, such as .venv, would replace what others have in its place."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a checkout")
    listed = ["git", "-C", str(ROOT), "ls-files", "--cached", "--ignored", "--exclude-standard"]
    assert subprocess.run(listed, check=True, capture_output=True, text=True).stdout == ""


def test_constraints_pin_what_pyproject_asks_for():
    pins = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {requirement.split(">=")[0].lower() for requirement in project["dependencies"]}
    assert asked <= pins
    assert "torch==2.13.0" in (ROOT / "constraints.txt").read_text()


def test_nothing_is_said_of_the_place_it_was_written_in():
    for file in [*HOUSE.rglob("*.py"), *ROOT.glob("README*.md")]:
        text = file.read_text(encoding="utf-8")
        assert "/home/" not in text, file
        assert "/root/" not in text, file
