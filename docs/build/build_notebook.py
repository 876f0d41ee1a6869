"""The build pages as one notebook: their prose and code as cells, and in place of each measured row a training run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

COMMENT = re.compile(r"^<!-- .*? -->\n", re.M)
ROWS = re.compile(r"<!-- rows: \d+-(?P<last>\d+) -->\n.*?<!-- /rows -->", re.S)
BLOCK = re.compile(r"^```(?P<kind>\w+)[^\n]*\n(?P<body>.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"^!\[[^\]]*\]\([^)]*\)\n", re.M)
LINK = re.compile(r"\]\((?!https?:)(?P<target>[^)\s]+\.md[^)]*)\)")

START = {
    "en": """# Build it by hand

The pages of `docs/en/build` as cells: the parts of a Transformer one after the other, and after each of them a short
training run, whose loss is one more row in the table. Run the cells in order; a definition that comes again replaces
the one before it.

`STEPS` is the training of each row. 30 steps show the way in seconds; the rows of the handbook have 300, and five
seeds.""",
    "zh": """# 手撕 Transformer

`docs/zh/build` 那几页做成的单元：把 Transformer 的零件一个个写出来，每写完一个就训练一小会儿，损失就是表里新的一行。
请按顺序运行；同名的定义再次出现时，会替换掉前面的。

`STEPS` 是每一行训练多少步。30 步只要几秒，够看出走势；手册里的表是 300 步、五个随机种子。""",
}
# What the added cells say, in each language. The words in a figure stay English: matplotlib's own font has no Chinese.
WORDS: dict[str, tuple[tuple[str, str], ...]] = {
    "en": (),
    "zh": (
        (
            "Train what the file is by now: a row for the table, a curve for the figure.",
            "训练到目前为止的文件：表里一行，图里一条曲线。",
        ),
        (
            "greedy search: {right} of {len(found)} without a fault",
            "贪心搜索：{right} 句一字不差，共 {len(found)} 句",
        ),
        (
            "beam search: {right} of the first {len(found)} without a fault",
            "束搜索：{right} 句一字不差，只看前 {len(found)} 句",
        ),
        ("`make demo` trains the model that this cell needs", "这一格要用的模型由 `make demo` 训练"),
    ),
}
SETUP = '''import matplotlib.pyplot as plt

STEPS = 30
LEDGER = []


def add_row(part):
    """Train what the file is by now: a row for the table, a curve for the figure."""
    model, curve = learn(task, STEPS)
    LEDGER.append((part, curve))
    for number, (name, points) in enumerate(LEDGER, 1):
        print(f"{number:3} {name:20} {points[-1][1]:.3f}")
    return model


def show_curves():
    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (name, points) in enumerate(LEDGER, 1):
        ax.plot(*zip(*points), label=f"{number} {name}")
    ax.set(xlabel="step", ylabel="held-out loss, nats per piece")
    ax.legend(fontsize="small", ncols=2)
    plt.show()'''
RIGHT = """src, _, _ = task.batch(task.held_out)
found = greedy(model, src)
right = sum(ids == wanted for ids, (_, wanted) in zip(found, task.held_out))
print(f"greedy search: {right} of {len(found)} without a fault")"""
RIGHT_BEAM = """found = [beam(model, table([ids])) for ids, _ in task.held_out[:4]]
right = sum(ids == wanted for ids, (_, wanted) in zip(found, task.held_out))
print(f"beam search: {right} of the first {len(found)} without a fault")"""
# The pages of the last step need the demo's weights; a notebook may be run before there are any.
FIND = """from pathlib import Path

ready = [folder for folder in ("runs/demo", "../../runs/demo") if Path(folder, "model.safetensors").exists()]
if not ready:
    print("`make demo` trains the model that this cell needs")"""


def written(pages: Sequence[str], language: str) -> str:
    """The notebook as text. `pages` are the build pages in order, the first of them the index."""
    cells = [("markdown", START[language]), ("code", SETUP)]
    for page in pages[1:]:
        last = page is pages[-1]
        cells += list(of_page(page, language, needs_demo=last))
        if ROWS.search(page) and not last:
            cells.append(("code", "show_curves()"))
    cells = [(kind, in_words_of(text, language) if kind == "code" else text) for kind, text in cells]
    return json.dumps(notebook(cells), ensure_ascii=False, indent=1) + "\n"


def in_words_of(code: str, language: str) -> str:
    for english, other in WORDS[language]:
        code = code.replace(english, other)
    return code


def of_page(page: str, language: str, needs_demo: bool) -> Iterator[tuple[str, str]]:
    page = ROWS.sub(lambda found: f"```row\n{found['last']}\n```", page)
    page = PICTURE.sub("", COMMENT.sub("", page))
    place, looked = 0, False
    for block in BLOCK.finditer(page):
        kind, body = block["kind"], block["body"].rstrip()
        if kind == "text":
            continue
        prose = page[place : block.start()]
        place = block.end()
        if prose.strip():
            yield "markdown", linked(prose, language)
        if kind == "row":
            if trained := row(int(body)):
                yield "code", trained
        elif kind == "python" and needs_demo and "def load" not in body:
            if not looked:
                yield "code", FIND
                looked = True
            yield "code", "if ready:\n" + indented(body.replace('"runs/demo"', "ready[0]"))
        elif kind == "python":
            yield "code", body.split("\n\n\nif __name__")[0]
    if page[place:].strip():
        yield "markdown", linked(page[place:], language)


def row(step: int) -> str:
    from build_rows import part_of

    part = part_of(step)
    return {"greedy": RIGHT, "beam": RIGHT_BEAM}.get(part, f'model = add_row("{part}")')


def indented(code: str) -> str:
    return "\n".join(f"    {line}" if line else line for line in code.splitlines())


def linked(prose: str, language: str) -> str:
    """Links as they are from the notebook's folder."""

    def one(found: re.Match[str]) -> str:
        target = found["target"]
        folder = f"../../docs/{language}"
        return f"]({folder}/{target[3:]})" if target.startswith("../") else f"]({folder}/build/{target})"

    return re.sub(r"\n{3,}", "\n\n", LINK.sub(one, prose)).strip()


def notebook(cells: Sequence[tuple[str, str]]) -> dict[str, Any]:
    told = []
    for number, (kind, text) in enumerate(cells):
        cell: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number:02}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": []}
        told.append(cell | {"source": text.splitlines(keepends=True)})
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": told,
        "metadata": {"kernelspec": spec, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
