"""The card of a translator, made of its recipe, its scores and the attribution of its data."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from glassformer.common.files import write_text
from glassformer.pipelines import box
from glassformer.train import recipes

FILES = {"en": "README.md", "zh": "README.zh-CN.md"}
TEXTS: dict[str, dict[str, Any]] = {
    "en": {
        "title": "# The translator {name}",
        "what": "{a} to {b} and {b} to {a}, one model both ways; {parameters} million parameters, stored as int8 "
        "with a scale for each row. It learnt software documentation and everyday sentences.",
        "languages": {"en": "English", "de": "German", "zh": "Chinese"},
        "good": "## Good and bad at\n\nGood at software documentation, whose markup, code and links it keeps, and at "
        "everyday sentences. Bad at news, literature, law and medicine, and at slang: it has never read any. It may be "
        "wrong anywhere; have a person read what matters.",
        "scores": "## Scores\n\nWith these weights, by sacreBLEU.\n\n| set | BLEU | chrF | sentences |",
        "commands": "The command of each, to be run in the folder that holds the corpora, and BLEU's signature:",
        "recipe": "## Recipe\n\n{first:,} steps by the recipe `box-{name}`. It translated English documentation back, "
        "and {more:,} steps by `box-{name}-more` went on with that. A larger model, `box-teacher`, translated "
        "sentences of the training set into English, and {taught:,} steps by `box-{name}-taught` and {last:,} by "
        "`box-{name}-last`, the `recipe.toml` beside this file, went on with these. "
        "The weights lie between those of the last two, {share:.0%} of the way. Seed {seed}.",
        "data": "## Data\n\nOnly what may be used so, by Creative Commons Attribution; thanks to those who wrote it.",
        "licence": "## Licence\n\nThe weights, like the code, are under Apache-2.0; the texts they learnt from under "
        "the terms above.",
    },
    "zh": {
        "title": "# 翻译模型 {name}",
        "what": "{a}与{b}互译，一个模型双向使用；{parameters}00 万参数，以 int8 存储，每行一个缩放因子。"
        "训练数据是软件文档和日常用语。",
        "languages": {"en": "英语", "de": "德语", "zh": "中文"},
        "good": "## 擅长与不擅长\n\n擅长软件文档（保留其中的标记、代码和链接）和日常用语。"
        "不擅长新闻、文学、法律、医学和俚语："
        "它从未读过这些。任何译文都可能有错，重要内容请由人审阅。",
        "scores": "## 分数\n\n用这里的权重，由 sacreBLEU 计算。\n\n| 测试集 | BLEU | chrF | 句数 |",
        "commands": "各项的命令（在存放语料的目录里运行）和 BLEU 签名：",
        "recipe": "## 训练配方\n\n先按配方 `box-{name}` 训练 {first:,} 步；再用它回译英文文档，"
        "按 `box-{name}-more` 续训 {more:,} 步；然后由更大的教师模型（配方 `box-teacher`）把训练集里的句子译成英语，"
        "按 `box-{name}-taught` 续训 {taught:,} 步，最后按 `box-{name}-last`（即同目录的 `recipe.toml`）"
        "续训 {last:,} 步。"
        "权重取在最后两个阶段之间，走到 {share:.0%} 处。随机种子 {seed}。",
        "data": "## 数据\n\n只使用知识共享署名许可（CC BY）允许的数据；感谢它们的作者。",
        "licence": "## 许可\n\n权重与代码同为 Apache-2.0；训练文本遵循上述条款。",
    },
}


def card(folder: Path, data: Path, name: str, language: str) -> str:
    texts = TEXTS[language]
    recipe = tomllib.loads((folder / "recipe.toml").read_text(encoding="utf-8"))
    scores: dict[str, Any] = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    a, b = (texts["languages"][code] for code in name.split("-"))
    size = (folder / "model.safetensors").stat().st_size / 1e6  # a byte for each parameter, and little else
    train = recipe["train"]
    rows = [
        f"| {judged} | {one['bleu']:.2f} | {one['chrf']:.2f} | {one['sentences']:,} |" for judged, one in scores.items()
    ]
    commands = [f"{judged}\n  {one['command']}\n  {one['bleu_signature']}" for judged, one in scores.items()]
    parts = [
        title(name, language),
        texts["what"].format(a=a, b=b, parameters=f"{size:.0f}"),
        texts["good"],
        "\n".join([texts["scores"], "|---|---|---|---|", *rows]),
        texts["commands"],
        "\n".join(["```text", *commands, "```"]),
        texts["recipe"].format(
            name=name, **steps_before(name), last=train["steps"], share=box.SHARE, seed=train.get("seed", 0)
        ),
        texts["data"],
        *(f"### {corpus}\n\n```text\n{text}\n```" for corpus, text in attributions(recipe, data).items()),
        texts["licence"],
    ]
    return "\n\n".join(parts) + "\n"


def steps_before(name: str) -> dict[str, int]:
    """The steps of the parts that come before the last."""
    parts = {"first": f"box-{name}", "more": f"box-{name}-more", "taught": f"box-{name}-taught"}
    known = recipes.built_in()
    return {part: recipes.read(known[recipe])["train"]["steps"] for part, recipe in parts.items()}


def title(name: str, language: str) -> str:
    return str(TEXTS[language]["title"].format(name=name))


def attributions(recipe: dict[str, Any], data: Path) -> dict[str, str]:
    """What each corpus of the recipe asks to be said of it; one that says nothing must not be in a card."""
    corpora = recipe["data"]["train"]
    names = dict.fromkeys(str(one.get("src") or one.get("tsv")).split("/")[0] for one in corpora)
    names.pop("taught", None)  # made of the others
    return {name: (data / name / "ATTRIBUTION.txt").read_text(encoding="utf-8").strip() for name in names}


def write(folder: Path, data: Path, name: str) -> None:
    """Both cards of a bundle; `data` holds the corpora that its recipe names, each with its ATTRIBUTION.txt."""
    for language, file in FILES.items():
        write_text(folder / file, card(folder, data, name, language))
