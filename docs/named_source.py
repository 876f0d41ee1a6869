"""The text of a function, class, method or constant by its dotted name, as it stands in the source today."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Source:
    path: str  # from the project's root
    line: int
    text: str


def find(name: str) -> Source:
    """The source that `name` stands for; a LookupError says how far it was understood."""
    file, rest = _module(name)
    lines = file.read_text(encoding="utf-8").splitlines()
    node: ast.AST = ast.parse("\n".join(lines))
    for part in rest:
        inner = [child for child in ast.iter_child_nodes(node) if part in _names(child)]
        if not inner:
            raise LookupError(f"`{name}`: {file.relative_to(ROOT)} defines no `{part}`")
        node = inner[-1]
    if not isinstance(node, ast.stmt):
        raise LookupError(f"`{name}` is a whole module; name a function, class, method or constant of it")
    first = min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])
    text = dedent("\n".join(lines[first - 1 : node.end_lineno]))
    return Source(file.relative_to(ROOT).as_posix(), first, text)


def _module(name: str) -> tuple[Path, list[str]]:
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        for place in (ROOT.joinpath("src", *parts[:cut]), ROOT.joinpath(*parts[:cut])):
            for file in (place.with_suffix(".py"), place / "__init__.py"):
                if file.is_file():
                    return file, parts[cut:]
    raise LookupError(f"`{name}`: there is no such module in src/, nor from the project's root")


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [target.id for target in targets if isinstance(target, ast.Name)]
