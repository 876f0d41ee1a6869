"""Draw the rooms of the package and their imports, docs/figures/house.en.svg and .zh.svg, from the source.

python docs/make_house.py            writes both
python docs/make_house.py --check    writes nothing, and exits with 1 if one is not fresh

A room is a folder of src/glassformer. Its floor is one above the highest room that it imports. An arrow that follows
from others is left out of the drawing: `cli` imports `model` too, but a path of arrows leads there already.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "glassformer"
FIGURES = ROOT / "docs" / "figures"

ROOMS = {  # its column in the drawing, and what it holds
    "cli": (1, "one file per command", "命令行，一个命令一个文件"),
    "deploy": (1, "server, bulk jobs, export", "服务器、大规模任务、导出"),
    "train": (0, "recipe, loop, checkpoint, evaluation", "配方、训练循环、检查点、评测"),
    "explain": (2, "trace, what-if, drawings", "追踪、假设实验、示意图"),
    "labs": (1, "claims as experiments", "把说法做成实验"),
    "pipelines": (0, "translator, texts, documents", "翻译模型、文本、文档"),
    "decode": (1, "greedy, beam, kernels in C", "贪心、束搜索、C 算子"),
    "weights": (1, "bundle, LoRA, hub, other families", "模型目录、LoRA、hub、各家权重"),
    "model": (0, "the Transformer: tensors only", "Transformer 本身，只有张量"),
    "data": (1, "corpora, tokenizer, batches", "语料、分词器、批次"),
    "common": (0, "errors, files, device", "错误、文件、设备"),
    "page": (2, "the web page: JavaScript", "网页：JavaScript"),
}
WIDTH, BOX, HIGH, ROW = 900, 250, 52, 92


def imports(file: Path) -> Iterator[str]:
    """Every module of the package that a file imports, in full: for `from a import b`, both `a` and `a.b`."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are written in full"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        yield from (name for name in names if name.startswith("glassformer."))


def room_imports() -> dict[str, set[str]]:
    """For each room the other rooms that its files import."""
    found: dict[str, set[str]] = {room: set() for room in ROOMS}
    for room, others in found.items():
        for file in (PACKAGE / room).rglob("*.py"):
            others |= {name.split(".")[1] for name in imports(file)} & set(ROOMS) - {room}
    return found


def floors(arrows: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each room, from 1; a RecursionError if they import each other in a circle."""

    def floor(room: str) -> int:
        return 1 + max(map(floor, arrows[room]), default=0)

    return {room: floor(room) for room in arrows}


def reduced(arrows: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the arrows that follow from others."""

    def below(room: str) -> set[str]:
        return arrows[room].union(*map(below, arrows[room]))

    return {room: others - set().union(*map(below, others)) for room, others in arrows.items()}


def draw(language: str) -> str:
    arrows = room_imports()
    level = floors(arrows)
    top = max(level.values())
    gap = (WIDTH - 3 * BOX) / 4
    place = {room: (gap + column * (BOX + gap), 20 + (top - level[room]) * ROW) for room, (column, *_) in ROOMS.items()}
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top * ROW + 10}" font-family="sans-serif">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#8a94a6"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{top * ROW + 10}" fill="#fff"/>',
    ]
    for room, others in reduced(arrows).items():
        for other in sorted(others):
            (x, y), (to_x, to_y) = place[room], place[other]
            x, y, to_x = x + BOX / 2, y + HIGH, to_x + BOX / 2
            middle = (y + to_y) / 2
            lines.append(
                f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {middle:.0f} {to_x:.0f} {middle:.0f} {to_x:.0f} {to_y:.0f}" '
                'fill="none" stroke="#8a94a6" stroke-width="1.5" marker-end="url(#tip)"/>'
            )
    for room, (x, y) in place.items():
        caption = ROOMS[room][1 if language == "en" else 2]
        lines += [
            f'<rect x="{x:.0f}" y="{y}" width="{BOX}" height="{HIGH}" rx="8" fill="#eef3fb" stroke="#5b7db1"/>',
            f'<text x="{x + BOX / 2:.0f}" y="{y + 22}" text-anchor="middle" font-size="16" font-weight="bold" '
            f'fill="#1d2b44">{room}/</text>',
            f'<text x="{x + BOX / 2:.0f}" y="{y + 41}" text-anchor="middle" font-size="13" fill="#41506b">'
            f"{escape(caption)}</text>",
        ]
    return "\n".join([*lines, "</svg>"]) + "\n"


def main() -> int:
    drawn = {FIGURES / f"house.{language}.svg": draw(language) for language in ("en", "zh")}
    stale = [file for file, svg in drawn.items() if not file.exists() or file.read_text(encoding="utf-8") != svg]
    for file in stale:
        if "--check" in sys.argv:
            print(f"{file.name} is not fresh")
        else:
            file.write_text(drawn[file], encoding="utf-8")
            print(f"drew docs/figures/{file.name}")
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
