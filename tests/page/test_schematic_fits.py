"""In a real browser, the words of a schematic stay within their boxes, and no wire runs through them."""

from __future__ import annotations

from pathlib import Path

import pytest

FIGURES = sorted((Path(__file__).parents[2] / "docs" / "figures").glob("schematic-*.svg"))
LOOK = """() => {
    const svg = document.querySelector("svg");
    const room = svg.viewBox.baseVal;
    const within = (low, size, from, room) => low >= from && low + size <= from + room;
    const inside = (a, b) => within(a.x, a.width, b.x, b.width) && within(a.y, a.height, b.y, b.height);
    const faults = [];
    const texts = [...svg.querySelectorAll("text")];
    for (const text of texts) {
        if (!inside(text.getBBox(), room)) faults.push(`${text.textContent} leaves the picture`);
        const rects = text.closest("[data-part]")?.querySelectorAll("rect") ?? [];
        const own = rects[rects.length - 1];
        if (own && !inside(text.getBBox(), own.getBBox())) faults.push(`${text.textContent} leaves its box`);
    }
    for (const [i, one] of texts.entries()) for (const other of texts.slice(i + 1)) {
        const [a, b] = [one.getBBox(), other.getBBox()];
        const beside = a.x + a.width <= b.x || b.x + b.width <= a.x;
        const below = a.y + a.height - 3 <= b.y || b.y + b.height - 3 <= a.y;
        if (!beside && !below) faults.push(`${one.textContent} lies on ${other.textContent}`);
    }
    for (const wire of svg.querySelectorAll("[data-from]")) {
        const line = wire.querySelector("path");
        for (let at = 0; at <= line.getTotalLength(); at += 2) {
            const { x, y } = line.getPointAtLength(at);
            for (const text of texts) {
                const b = text.getBBox();
                if (x > b.x - 1 && x < b.x + b.width + 1 && y > b.y + 2 && y < b.y + b.height - 2)
                    faults.push(`a wire to ${wire.dataset.to} runs through ${text.textContent}`);
            }
        }
    }
    return [...new Set(faults)];
}"""


@pytest.fixture(scope="module")
def page(chromium):
    opened = chromium.new_page()
    yield opened
    opened.close()


@pytest.mark.parametrize("file", FIGURES, ids=lambda file: file.stem)
def test_words_have_room(page, file: Path) -> None:
    page.set_content(file.read_text(encoding="utf-8"))
    assert page.evaluate(LOOK) == []


def test_a_word_too_long_is_noticed(page) -> None:
    text = FIGURES[0].read_text(encoding="utf-8")
    page.set_content(text.replace(">context<", ">context of every head, and more words than there is room for<"))
    assert any("leaves its box" in fault for fault in page.evaluate(LOOK))
