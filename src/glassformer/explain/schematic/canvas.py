"""A drawing of boxes, frames around them and wires between them, as SVG that names the module of each part.

The page's `schematic.css` alone styles it. A page uses that sheet; an SVG file carries it inside, with the page's
colours in the place of their names, for a light page and for a dark one.
"""

from __future__ import annotations

import re
from html import escape
from typing import Literal, NamedTuple

from glassformer.common.strings import Text
from glassformer.page import page_files

WIDTH = 440  # on a phone's screen its letters are still read
Point = tuple[float, float]
Wire = Literal["wire", "stream", "memory", "mask"]
_VARIABLE = re.compile(r"var\((--[\w-]+)\)")
_VALUE = re.compile(r"(--[\w-]+):\s*([^;]+);")
_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
_TIP, _BEND = 8, 7


# The words of the drawings: titles, names of parts, letters of shapes; and where each part is explained.
Role = Literal[
    "stack", "block", "residual", "embedding", "tokens", "positions", "norm", "self_attention", "cross_attention",
    "feed_forward", "linear", "activation", "dropout", "sum", "head", "ends", "memory", "projection", "heads", "query",
    "key", "value", "step", "mask", "pattern", "merged",
]  # fmt: skip


class Place(NamedTuple):
    """Where a part is explained: a chapter of the handbook, a view of the page."""

    chapter: str
    view: str = ""


_ROLES: dict[Place, tuple[Role, ...]] = {
    Place("01-tokens", "flow"): ("ends",),
    Place("02-embedding", "cell"): ("embedding", "tokens"),
    Place("03-positions", "positions"): ("positions",),
    Place("04-attention", "block"): ("self_attention", "query", "key", "value", "step", "pattern"),
    Place("05-heads", "block"): ("projection", "heads", "merged"),
    Place("06-masks", "whatif"): ("mask",),
    Place("07-residual-and-norm", "block"): ("residual", "norm", "sum"),
    Place("08-feed-forward", "block"): ("feed_forward", "linear", "activation"),
    Place("09-encoder", "flow"): ("stack",),
    Place("09-encoder", "block"): ("block",),
    Place("09-encoder", "cache"): ("memory",),
    Place("10-decoder", "block"): ("cross_attention",),
    Place("11-generator", "decode"): ("head",),
    Place("13-training"): ("dropout",),
}
PLACES = {role: place for place, roles in _ROLES.items() for role in roles}

LETTERS = {
    "B": Text("sentences in a batch", "批次里的句子数"),
    "S": Text("source tokens", "源词元数"),
    "T": Text("target tokens", "目标词元数"),
    "D": Text("model width", "模型宽度"),
    "H": Text("heads", "头数"),
    "G": Text("key/value heads", "键值头数"),
    "d": Text("head width", "头的宽度"),
    "F": Text("inner width", "中间宽度"),
    "V": Text("vocabulary", "词表大小"),
    "N": Text("layers", "层数"),
}

TITLES = {
    "model": Text("The whole Transformer", "整个 Transformer"),
    "encoder-layer": Text("One encoder layer", "一个编码器层"),
    "decoder-layer": Text("One decoder layer", "一个解码器层"),
    "attention": Text("Attention with its heads", "注意力与它的头"),
    "masks": Text("Where masks act", "掩码作用在哪里"),
}

SAY = {
    "encoder": Text("Encoder", "编码器"),
    "decoder": Text("Decoder", "解码器"),
    "encoder.layer": Text("Encoder layer", "编码器层"),
    "decoder.layer": Text("Decoder layer", "解码器层"),
    "layer.short": Text("Layer", "层"),
    "short.causal": Text("causal mask", "因果掩码"),
    "short.padding": Text("padding mask", "填充掩码"),
    "source": Text("source ids", "源句编号"),
    "target": Text("target ids, shifted", "目标编号（右移一位）"),
    "logits": Text("logits", "logit"),
    "embedding": Text("Embedding", "嵌入"),
    "tokens": Text("tokens", "词元"),
    "tokens.scaled": Text("tokens · √D", "词元 · √D"),
    "positions": Text("positions", "位置"),
    "rotary": Text("turns q and k", "旋转 q 和 k"),
    "distance": Text("distance, to scores", "距离项，加到分数"),
    "segments": Text("segments", "分段"),
    "layer": Text("LayerNorm", "层归一化"),
    "rms": Text("RMSNorm", "RMS 归一化"),
    "self_attention": Text("Self-attention", "自注意力"),
    "cross_attention": Text("Cross-attention", "交叉注意力"),
    "feed_forward": Text("Feed-forward", "前馈网络"),
    "head": Text("Generator", "生成器"),
    "up": Text("widen", "展宽"),
    "down": Text("narrow", "收窄"),
    "gated": Text("{0}, times the gate", "{0}，再乘门"),
    "tied": Text("shares the embedding's matrix", "与嵌入共用矩阵"),
    "memory": Text("memory", "记忆"),
    "memory.every": Text("for every decoder layer", "供解码器的每一层使用"),
    "in": Text("stream in", "流入"),
    "out": Text("out, to the next layer", "流出，送往下一层"),
    "mask.padding": Text("mask: padding of the source", "掩码：源句的填充"),
    "mask.causal": Text("mask: causal, no look ahead", "掩码：因果，看不到后面"),
    "mask": Text("mask", "掩码"),
    "memory.or": Text("memory (or x itself)", "记忆（或 x 自身）"),
    "projection": Text("Projection", "投影"),
    "W.query": Text("x · W_Q", "x · W_Q"),
    "W.key": Text("memory · W_K", "记忆 · W_K"),
    "W.value": Text("memory · W_V", "记忆 · W_V"),
    "W.output": Text("merged · W_O", "merged · W_O"),
    "query": Text("q queries", "q 查询"),
    "key": Text("k keys", "k 键"),
    "value": Text("v values", "v 值"),
    "heads": Text("H heads", "H 个头"),
    "heads.apart": Text("each on its own", "各算各的"),
    "products": Text("q · kᵀ", "q · kᵀ"),
    "scores": Text("products / √d", "products / √d"),
    "scores.scaled": Text("products · {0}", "products · {0}"),
    "masked": Text("scores + mask", "scores + 掩码"),
    "pattern": Text("softmax over the keys", "在键上做 softmax"),
    "context": Text("pattern · v", "注意力权重 · v"),
    "merged": Text("heads side by side", "各头并排"),
    "to.sum": Text("out, to be added to the stream", "输出，加回残差流"),
    "src_mask": Text("which tokens are real", "哪些是真词元"),
    "why.causal": Text("no query looks ahead;\nmade from the positions", "查询看不到后面；\n由位置得出"),
    "why.padding": Text("no query sees padding;\nmade from src_mask", "查询看不到填充；\n由 src_mask 得出"),
    "keys.axis": Text("keys, {0}", "键，{0}"),
    "queries.axis": Text("queries, {0}", "查询，{0}"),
    "padding": Text("padding", "填充"),
    "mask.within": Text("Within each of them:", "在每个注意力里："),
    "mask.scores": Text("any number", "任意数"),
    "mask.masked": Text("−∞ if hidden", "看不到则 −∞"),
    "mask.pattern": Text("softmax gives 0", "softmax 后为 0"),
}


class Area(NamedTuple):
    x: float
    y: float
    w: float
    h: float

    @property
    def right(self) -> float:
        return self.x + self.w

    @property
    def bottom(self) -> float:
        return self.y + self.h

    @property
    def middle(self) -> float:
        return self.x + self.w / 2

    @property
    def centre(self) -> float:
        return self.y + self.h / 2


class Canvas:
    """Takes words in both languages and draws them in one."""

    def __init__(self, title: Text, language: str) -> None:
        self.title, self.language = title.say(language), language
        self.frames: list[tuple[float, str]] = []  # the larger lie below
        self.wires: list[str] = []
        self.parts: list[str] = []
        self.letters = ""
        self.bottom = 0.0

    def say(self, words: Text | str) -> str:
        return words if isinstance(words, str) else words.say(self.language)

    def text(self, at: Point, words: Text | str, look: str, anchor: str = "start") -> str:
        place = f'x="{at[0]:g}" y="{at[1]:g}"'
        side = "" if anchor == "start" else f' text-anchor="{anchor}"'
        return f'<text class="{look}" {place}{side}>{self.markup(words)}</text>'

    def markup(self, words: Text | str) -> str:
        """Words escaped for SVG, W_Q with its letter below the line."""
        return re.sub(r"\bW_(\w)", r'W<tspan class="sub" dy="4">\1</tspan>', escape(self.say(words)))

    def note(self, at: Point, words: Text | str, look: str = "note", anchor: str = "start") -> None:
        """Words that belong to no part."""
        self.parts.append(self.text(at, words, look, anchor))
        self.bottom = max(self.bottom, at[1] + 6)

    def _group(self, kind: str, role: Role, part: str, inside: str) -> str:
        place = PLACES[role]
        links = f' data-chapter="{place.chapter}"' + (f' data-view="{place.view}"' if place.view else "")
        stack = part.split(".")[0] if part.startswith(("encoder", "decoder")) else "neither"
        return f'<g class="{kind} {role} {stack}" data-part="{escape(part)}"{links}>{inside}</g>'

    def frame(
        self,
        role: Role,
        part: str,
        area: Area,
        words: Text | str = "",
        name: str = "",
        indent: float = 12,
        copies: int = 0,
        beside: float = 0,
    ) -> None:
        """A border around parts, with `copies` of it behind where there are several such parts.

        Its name follows the title, or stands `beside` it, that far from the border.
        """
        inside = "".join(_rect(Area(area.x + 5 * i, area.y - 5 * i, area.w, area.h), 10) for i in range(copies, -1, -1))
        titled = self._titled(words, "" if beside else name)
        inside += f'<text x="{area.x + indent:g}" y="{area.y + 20:g}">{titled}</text>'
        if beside:
            inside += self.text((area.x + beside, area.y + 20), name, "name")
        self.frames.append((-area.w * area.h, self._group("frame", role, part, inside)))
        self.bottom = max(self.bottom, area.bottom)

    def box(
        self,
        role: Role,
        part: str,
        area: Area,
        words: Text | str,
        name: str = "",
        shape: str = "",
        note: Text | str = "",
        centred: bool = False,
    ) -> Area:
        self.letters += shape
        inside = _rect(area, 7)
        if centred:
            below = [(shape, "shape")] if shape else [(self.say(note), "note")] if note else []
            lines = [(self.say(words), "title"), *below]
            top = area.centre + 5 - 8.5 * (len(lines) - 1)
            inside += "".join(
                self.text((area.middle, top + 17 * i), line, look, "middle") for i, (line, look) in enumerate(lines)
            )
        else:
            at = area.centre + 5 - (9 if note else 0)
            inside += f'<text x="{area.x + 12:g}" y="{at:g}">{self._titled(words, name)}</text>'
            if shape:
                inside += self.text((area.right - 12, at), shape, "shape", "end")
            if note:
                inside += self.text((area.x + 12, at + 19), note, "note")
        self.parts.append(self._group("box", role, part, inside))
        self.bottom = max(self.bottom, area.bottom)
        return area

    def sum(self, part: str, at: Point) -> None:
        x, y = at
        cross = f'<path d="M{x - 5:g} {y:g}h10M{x:g} {y - 5:g}v10"/>'
        circle = f'<circle cx="{x:g}" cy="{y:g}" r="{SUM:g}"/>'
        self.parts.append(self._group("sum", "sum", part, circle + cross))

    def wire(self, of: str, to: str, points: list[Point], look: Wire = "wire") -> None:
        """From one part to another, by right angles; it ends in an arrow."""
        self.wires.append(
            f'<g class="{look}" data-from="{escape(of)}" data-to="{escape(to)}"><path d="{_path(points)}"/>'
            f'<path class="tip" d="{_tip(points, 0.8 if look == "stream" else 0.6)}"/></g>'
        )
        self.bottom = max(self.bottom, *(y for _, y in points))

    def _titled(self, words: Text | str, name: str) -> str:
        title = f'<tspan class="title">{self.markup(words)}</tspan>' if words else ""
        if not name:
            return title
        # After a letter below the line, back onto it.
        apart = f' dx="7" dy="{-4 * self.markup(words).count("dy=")}"' if words else ""
        return f'{title}<tspan class="name"{apart}>{name}</tspan>'

    def legend(self) -> None:
        """The meaning of the letters in shapes, as many to a line as fit."""
        used = [letter for letter in LETTERS if letter in re.findall(r"\w", self.letters)]
        lines, room = [""], 0.0
        for letter in used:
            entry = f"{letter} {self.say(LETTERS[letter])}"
            wide = sum(12.6 if ord(sign) > 0x2E7F else 6.8 for sign in entry) + 16
            if lines[-1] and room + wide > WIDTH - 32:
                lines.append("")
                room = 0.0
            lines[-1] += ("   ·   " if lines[-1] else "") + entry
            room += wide
        top = self.bottom + 26
        for i, line in enumerate(lines):
            self.note((WIDTH / 2, top + 17 * i), line, "legend", "middle")

    def svg(self, standalone: bool = True) -> str:
        """One `<svg>` element, with its styles inside if it is `standalone`."""
        self.legend()
        height = self.bottom + 8
        lang = "zh-Hans" if self.language == "zh" else "en"
        size = f'viewBox="0 0 {WIDTH:g} {height:g}" width="{WIDTH:g}" height="{height:g}"'
        paper = f'<rect class="paper" width="{WIDTH:g}" height="{height:g}"/>'
        sheet = f"<style>{styles()}</style>" if standalone else ""
        inside = "\n".join((paper, *(frame for _, frame in sorted(self.frames)), *self.wires, *self.parts))
        return (
            f'<svg class="schematic" xmlns="http://www.w3.org/2000/svg" {size} role="img" lang="{lang}">'
            f"<title>{escape(self.title)}</title>{sheet}\n{inside}\n</svg>\n"
        )


SUM = 10.0  # the radius of a circled plus


def _rect(area: Area, round_: float) -> str:
    return f'<rect x="{area.x:g}" y="{area.y:g}" width="{area.w:g}" height="{area.h:g}" rx="{round_:g}"/>'


def _toward(a: Point, b: Point, by: float) -> Point:
    """The point on the way from `a` to `b`, `by` away from `a`."""
    (x, y), (u, v) = a, b
    length = abs(u - x) + abs(v - y)
    return (x + (u - x) / length * by, y + (v - y) / length * by)


def _path(points: list[Point]) -> str:
    """Straight between the points, round where it turns; it ends within the arrow's tip."""
    *_, before, last = points
    ends = [*points[:-1], _toward(last, before, _TIP - 1)]
    path = f"M{ends[0][0]:g} {ends[0][1]:g}"
    for a, corner, b in zip(ends, ends[1:], ends[2:], strict=False):
        reach = min(_BEND, *(max(abs(p[0] - corner[0]), abs(p[1] - corner[1])) / 2 for p in (a, b)))
        (x, y), (u, v) = _toward(corner, a, reach), _toward(corner, b, reach)
        path += f"L{x:g} {y:g}Q{corner[0]:g} {corner[1]:g} {u:g} {v:g}"
    return path + f"L{ends[-1][0]:g} {ends[-1][1]:g}"


def _tip(points: list[Point], wide: float) -> str:
    *_, before, (x, y) = points
    back = _toward((x, y), before, _TIP)
    across = (y - back[1], x - back[0])
    (u, v), (p, q) = ((back[0] + sign * wide * across[0], back[1] + sign * wide * across[1]) for sign in (1, -1))
    return f"M{x:g} {y:g}L{u:g} {v:g}L{p:g} {q:g}z"


def styles() -> str:
    """The sheet with the page's colours in the place of their names: light ones, and dark ones for a dark scheme."""
    files = page_files()
    sheet = re.sub(r"/\*.*?\*/", "", files["schematic.css"], flags=re.DOTALL)
    palettes = []
    for start in (":root", ':root[data-theme="dark"]'):
        block = files["base.css"].split(f"{start} {{", 1)[1].split("}", 1)[0]
        palettes.append({name: re.sub(r"\s+", " ", value) for name, value in _VALUE.findall(block)})
    light, dark = palettes
    day, night = "", ""
    for at, inside in _RULE.findall(sheet):
        lines = [line.strip() for line in inside.split(";") if line.strip()]
        both = [[put_in(line, colours) for line in lines] for colours in (light, light | dark)]
        at = re.sub(r"\s+", " ", at).strip()
        day += f"{at}{{{';'.join(both[0])}}}"
        if changed := [now for was, now in zip(*both, strict=True) if was != now]:
            night += f"{at}{{{';'.join(changed)}}}"
    return f"{day}@media (prefers-color-scheme:dark){{{night}}}"


def put_in(line: str, colours: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda name: colours[name[1]], line)
