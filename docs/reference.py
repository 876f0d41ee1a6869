"""The API reference of a public name, from its source: signature and docstring, and those of its public members."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from dataclasses import dataclass
from textwrap import dedent, indent
from typing import get_args

import named_source

COLUMNS = re.compile(r"^(?: {2,}\S|\S+ {2,}\S)", re.M)  # text that is set in columns


@dataclass(frozen=True)
class Entry:
    name: str  # as a user writes it after `gf.`
    signature: str
    text: str  # its docstring
    members: tuple[Entry, ...] = ()


def public() -> list[str]:
    """Every name that a user may rely on: those of the package, and the errors."""
    import glassformer
    from glassformer.common import errors

    raised = [
        name for name, value in vars(errors).items() if isinstance(value, type) and value.__module__ == errors.__name__
    ]
    return [*glassformer.__all__, *(f"errors.{name}" for name in raised)]


def entry(name: str) -> Entry:
    """What there is to say of `name`, `errors.InputError` for example; a LookupError if there is no such name."""
    value: object = importlib.import_module("glassformer")
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            raise LookupError(f"`{name}` is no public name of glassformer") from None
    assert inspect.isclass(value) or inspect.isfunction(value), name
    source = named_source.find(f"{value.__module__}.{value.__qualname__}").text
    (node,) = ast.parse(source).body
    if isinstance(node, ast.FunctionDef):
        return Entry(name, header(node, source), docstring(node))
    assert isinstance(node, ast.ClassDef)
    inner, members = [header(node, source)], functions(name, value)
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name) and not part.target.id.startswith("_"):
            inner.append("    " + source.splitlines()[part.lineno - 1].strip())
        elif isinstance(part, ast.FunctionDef) and part.name == "__init__":
            inner.append(indent(header(part, source), "    "))
    shown = "\n".join([*choices(inner, inspect.getmodule(value)), *inner])
    return Entry(name, shown, docstring(node), members)


def functions(name: str, value: type) -> tuple[Entry, ...]:
    """A class's public functions, its own and those that it has of ours."""
    found: dict[str, Entry] = {}
    for one in inspect.getmro(value):
        if not one.__module__.startswith("glassformer."):
            continue
        source = named_source.find(f"{one.__module__}.{one.__qualname__}").text
        (node,) = ast.parse(source).body
        assert isinstance(node, ast.ClassDef)
        for part in node.body:
            if isinstance(part, ast.FunctionDef) and (not part.name.startswith("_") or part.name == "__call__"):
                found.setdefault(part.name, Entry(f"{name}.{part.name}", header(part, source), docstring(part)))
    return tuple(found.values())


def choices(lines: list[str], module: object) -> list[str]:
    """The closed choices that are named in `lines`, spelt out."""
    words = dict.fromkeys(re.findall(r"[A-Z]\w+", "\n".join(lines)))
    literal = {word: get_args(getattr(module, word, None)) for word in words}
    return [f"{word} = Literal[{', '.join(map(repr, values))}]" for word, values in literal.items() if is_text(values)]


def is_text(values: tuple[object, ...]) -> bool:
    return bool(values) and all(isinstance(value, str) for value in values)


def header(node: ast.FunctionDef | ast.ClassDef, source: str) -> str:
    """The lines that say how it is called, as they stand in the source, less the colon at their end."""
    lines = source.splitlines()[node.lineno - 1 : node.body[0].lineno - 1] or [source.splitlines()[node.lineno - 1]]
    lines = [line.removesuffix("  # fmt: skip") for line in lines]
    while not lines[-1].rstrip().endswith((":", ": ...")):  # a comment, or an empty line, before the body
        lines.pop()
    decorators = [f"@{ast.unparse(one)}" for one in node.decorator_list]
    shown = [one for one in decorators if one in ("@property", "@classmethod", "@staticmethod")]
    return "\n".join([*shown, re.sub(r":(?: \.\.\.)?$", "", dedent("\n".join(lines)).rstrip())])


def docstring(node: ast.FunctionDef | ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


def markdown(one: Entry, level: int = 3) -> str:
    """The entry as a part of a page; columns stay columns."""
    text = "\n\n".join(
        f"```text\n{dedent(part)}\n```" if COLUMNS.search(part) else part for part in one.text.split("\n\n") if part
    )
    title = "" if level == 3 else f"{'#' * level} `{one.name}`\n\n"
    inner = "".join(f"\n{markdown(member, 4)}" for member in one.members)
    return f"{title}```python\n{one.signature}\n```\n\n{text}\n{inner}"
