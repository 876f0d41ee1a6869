"""The schematics are the model: every module where it is called, every wire a value that is handed on."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from xml.etree import ElementTree

import pytest
import torch
from drawn import SVG, Truth, faults, read

import glassformer as gf
from glassformer.explain.schematic import DRAWINGS
from glassformer.explain.schematic.canvas import PLACES, SAY
from glassformer.explain.schematic.forward_pass import record_calls
from glassformer.page import page_files

CHECKED = [kind for kind in DRAWINGS if kind != "masks"]
CHOICES = {
    "pre": {},
    "post": {"norm": "post"},
    "gated": {"gated": True, "activation": "silu", "norm_type": "rms"},
    "learned": {"positions": "learned", "tied": False, "embedding_scale": False},
}


@cache
def config(choice: str = "pre") -> gf.ModelConfig:
    return gf.ModelConfig(vocab_size=480, d_model=128, heads=4, d_ff=512, layers=2, **CHOICES[choice])


@cache
def truth(choice: str = "pre") -> Truth:
    return Truth(config(choice))


@cache
def drawing(kind: str, choice: str = "pre", language: str = "en") -> str:
    return DRAWINGS[kind](record_calls(config(choice)), language).svg()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("kind", CHECKED)
def test_a_drawing_shows_the_model_as_it_is(kind: str, choice: str, language: str) -> None:
    assert faults(drawing(kind, choice, language), kind, truth(choice)) == []


def test_together_they_show_every_module() -> None:
    shown = {part.name for kind in CHECKED for part in read(drawing(kind))[0]}
    # Both stacks' attentions are written out once, and what is within a norm is told in its chapter.
    alike = re.compile(r"(encoder|decoder)\.blocks\.0\.(self|cross)_attention\.")
    modules = {
        alike.sub("decoder.blocks.0.cross_attention.", name)
        for name, module in truth().model.named_modules(remove_duplicate=False)
        if name and not isinstance(module, torch.nn.Identity | torch.nn.ModuleList) and not name.endswith("normalised")
    }
    assert modules <= shown


def test_masks_hide_what_the_model_does_not_see() -> None:
    parts, wires = read(drawing("masks"))
    attentions = [name for name, given in truth().mask.items() if name.endswith("attention")]
    assert [part.name for part in sorted(parts, key=lambda part: part.y) if part.kind == "frame"] == attentions
    padded = [name for name in attentions if truth().mask[name].bias is not None]
    assert [wire.to for wire in wires if wire.of == "src_mask"] == padded
    assert "decoder.blocks.0.self_attention" not in padded
    cells = re.findall(r'<path class="(seen|hidden) \w+" d="([^"]*)"', drawing("masks"))
    drawn = [(look, path.count("M")) for look, path in cells]
    # 7 source tokens, 2 of them padding; 5 target tokens.
    assert drawn == [("seen", 35), ("hidden", 14), ("seen", 15), ("hidden", 10), ("seen", 25), ("hidden", 10)]
    for name in attentions:
        masked, pattern = truth().gave[f"{name}.masked"], truth().gave[f"{name}.pattern"]
        hidden = masked == float("-inf")
        assert hidden.any()
        assert torch.equal(pattern == 0, hidden)


def changed(svg: str, change: Callable[[ElementTree.Element, Callable[[str], ElementTree.Element]], None]) -> str:
    """The drawing with something moved, taken away or said otherwise."""
    root = ElementTree.fromstring(svg)

    def part(name: str) -> ElementTree.Element:
        return next(one for one in root.iter(f"{SVG}g") if one.get("data-part") == name)

    change(root, part)
    return ElementTree.tostring(root, encoding="unicode")


def test_cross_attention_after_both_stacks_is_refused() -> None:
    """As one tutorial draws it: the stacks end, then one cross-attention joins them."""
    cross, norm = "decoder.blocks.0.cross_attention", "decoder.norm"

    def move(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
        below = part("decoder").findall(f"{SVG}rect")[-1]
        area = part(cross).find(f"{SVG}rect")
        area.set("y", str(float(below.get("y")) + float(below.get("height")) + 4))
        for wire in list(root):
            ends = wire.get("data-from"), wire.get("data-to")
            if ends == (norm, "head"):
                wire.set("data-to", cross)
            elif cross in ends and ends[0] != "memory":
                wire.set("data-to", "head")

    found = faults(changed(drawing("model"), move), "model", truth())
    assert f"{cross} lies in nothing, but is called in decoder.blocks.0" in found
    assert f"no wire from {norm} to head" in found
    assert f"no wire from {cross} to {cross}_residual.+" in found


def test_the_other_placement_of_norms_is_refused() -> None:
    for kind in CHECKED[:3]:
        for one, other in (("pre", "post"), ("post", "pre")):
            found = faults(drawing(kind, one), kind, truth(other))
            assert any("norm" in fault and "wire" in fault for fault in found), kind
            assert any("is called after" in fault for fault in found), kind


def drop_part(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
    root.remove(part("decoder.blocks.0.feed_forward.dropout"))


def show_twice(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
    root.append(part("decoder.blocks.0.self_attention"))


def say_other_shape(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
    shape = next(one for one in part("decoder.blocks.0.cross_attention").iter() if one.get("class") == "shape")
    shape.text = "(B, S, D)"


def move_memory_wire(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
    next(one for one in root if one.get("data-from") == "memory").set("data-to", "decoder.blocks.0.self_attention")


def cross_a_box(root: ElementTree.Element, part: Callable[[str], ElementTree.Element]) -> None:
    box = part("decoder.blocks.0.cross_attention").find(f"{SVG}rect")
    box.set("x", "10")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (drop_part, "decoder.blocks.0.feed_forward.dropout is missing"),
        (show_twice, "decoder.blocks.0.self_attention is shown 2 times"),
        (say_other_shape, "decoder.blocks.0.cross_attention says (B, S, D), but gives (B, T, D)"),
        (move_memory_wire, "no wire from memory to decoder.blocks.0.cross_attention"),
        (cross_a_box, "crosses decoder.blocks.0.cross_attention"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_wrong_drawing_is_refused(change: Callable, told: str) -> None:
    found = faults(changed(drawing("decoder-layer"), change), "decoder-layer", truth())
    assert any(told in fault for fault in found), found


def test_both_languages_draw_the_same() -> None:
    def geometry(svg: str) -> list[tuple[object, ...]]:
        parts, wires = read(svg)
        return [
            *((p.kind, p.name, p.x, p.y, p.right, p.bottom) for p in parts),
            *((w.of, w.to, *w.points) for w in wires),
        ]

    for kind in DRAWINGS:
        assert geometry(drawing(kind)) == geometry(drawing(kind, language="zh"))
        assert drawing(kind) != drawing(kind, language="zh")


def test_a_file_of_its_own_needs_nothing() -> None:
    svg = drawing("model")
    assert "var(" not in svg
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"\b(?:href|src|url)\b", svg)
    classes = set(re.findall(r"\.schematic \.?([a-z_]+)", page_files()["schematic.css"])) - {"text", "g", "draws"}
    used = {
        word for kind in DRAWINGS for words in re.findall(r'class="([^"]+)"', drawing(kind)) for word in words.split()
    }
    assert classes <= used


def test_what_is_said_is_used() -> None:
    roles = {
        word
        for kind in DRAWINGS
        for choice in CHOICES
        for words in re.findall(r'<g class="([^"]+)"', drawing(kind, choice))
        for word in words.split()
    }
    assert set(PLACES) <= roles
    assert all(one.en and one.zh for one in SAY.values())
