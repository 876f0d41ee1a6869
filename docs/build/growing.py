"""The reader's file after each step: what a step defines is added, or takes the place of what had its name.

A step is a file of definitions in docs/build/steps. `# --- Parts ---` says in which section of the file they belong,
`del name` takes one away. docs/build/transformer.py is what all steps together give; a test holds it to that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).parent
STEPS = sorted((FOLDER / "steps").glob("*.py"))
WHOLE = FOLDER / "transformer.py"
MARK = re.compile(r"^# --- (.+) ---$")
SECTIONS = ("The task", "Parts", "The model", "Learning", "Writing", "The shipped model's weights")
LIBRARIES = ("torch", "safetensors")
HEAD = '''"""A Transformer by hand: the file that the pages of docs/en/build and docs/zh/build grow, part by part.

Shapes: B batch, S source, T target, D model width, H heads, d = D / H, F feed-forward width, V vocabulary.
"""'''


def step(name: str) -> Path:
    """The file of the step of this name."""
    path = FOLDER / "steps" / f"{name}.py"
    if path not in STEPS:
        raise LookupError(f"there is no step `{name}` in docs/build/steps")
    return path


def code(step: Path) -> str:
    """What a step says, without its first line, which says what it is for."""
    text = step.read_text(encoding="utf-8")
    first = ast.parse(text).body[0]
    return "\n".join(text.splitlines()[first.end_lineno :]).strip() + "\n"


def assembled(steps: Iterable[Path]) -> str:
    """The file after these steps."""
    sections: dict[str, dict[str, str]] = {name: {} for name in SECTIONS}
    imports: dict[str, set[str]] = {}
    for step in steps:
        read(code(step), sections, imports)
    parts = [HEAD, imported(imports)]
    for name, definitions in sections.items():
        if definitions:
            first, *rest = definitions.values()
            parts += [f"{leading(first)}# --- {name} ---\n{first.lstrip()}", *rest]
    return "\n\n".join(parts) + "\n"


def leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip())]


def read(text: str, sections: dict[str, dict[str, str]], imports: dict[str, set[str]]) -> None:
    lines, section, done = text.splitlines(), SECTIONS[0], 0
    for node in ast.parse(text).body:
        first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
        for line in lines[done:first]:
            if mark := MARK.match(line):
                section = mark[1]
        done = node.end_lineno or first
        if isinstance(node, ast.Import):
            for alias in node.names:
                imports.setdefault(f"import {alias.name}", set())
        elif isinstance(node, ast.ImportFrom):
            names = {ast.unparse(alias) for alias in node.names}
            imports.setdefault(f"from {node.module} import", set()).update(names)
        elif isinstance(node, ast.Delete):
            for target in node.targets:
                forget(ast.unparse(target), sections, imports)
        else:
            # Two empty lines before a definition and after it, one around a constant, as formatters have it.
            space = "\n" if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.If) else ""
            sections[section][defined(node)] = space + "\n".join(lines[first:done])


def defined(node: ast.stmt) -> str:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    return ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.test)  # type: ignore[attr-defined]


def forget(name: str, sections: dict[str, dict[str, str]], imports: dict[str, set[str]]) -> None:
    for definitions in sections.values():
        definitions.pop(name, None)
    for module, names in list(imports.items()):
        kept = {one for one in names if name not in (one, one.rpartition(" as ")[2])}
        if kept or not names:
            imports[module] = kept
        else:
            del imports[module]


def imported(imports: dict[str, set[str]]) -> str:
    """Python's own modules, libraries, ours, each group in the order of the alphabet."""
    groups: list[list[str]] = [[], [], []]
    for module in sorted(imports, key=lambda line: (line.startswith("from"), line.lower())):
        names = ", ".join(sorted(imports[module], key=lambda name: (name.islower(), name)))
        root = module.split()[1].split(".")[0]
        groups[2 if root == "glassformer" else int(root in LIBRARIES)].append(f"{module} {names}".strip())
    return "\n\n".join("\n".join(group) for group in groups if group)


def names_after(steps: Iterable[Path], name: str = "transformer") -> dict[str, object]:
    """What the file defines, run as it stands after these steps."""
    return run(assembled(steps), name)


def run(text: str, name: str = "transformer") -> dict[str, object]:
    import sys
    import types

    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look their module up
    exec(compile(text, f"<{name}.py>", "exec"), vars(module))
    return vars(module)
