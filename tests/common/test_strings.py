"""What a reader is told: in their own language, and in lines that fit."""

import pytest
from rich.cells import cell_len

from glassformer.common.strings import Text, wrap


def test_a_text_says_its_values_in_either_language():
    text = Text("{0} more columns", "还有 {0} 列")
    assert (text.say("en", 3), text.say("zh", 3)) == ("3 more columns", "还有 3 列")
    assert (
        Text("a set {0}", "集合 {0}").say("en") == "a set {0}"
    )  # braces of its own, where there is nothing to fill in


def test_lines_break_at_spaces_and_between_chinese_signs():
    assert wrap("one two three", 8) == "one two\nthree"
    assert wrap("位置编码就是旋转，对吗", 8) == "位置编码\n就是旋\n转，对吗"
    assert wrap("除以 sqrt(d_k) 之后", 11) == "除以\nsqrt(d_k)\n之后"
    assert wrap("first part\n\nsecond part", 6) == "first\npart\n\nsecond\npart"


@pytest.mark.parametrize("width", range(4, 30))
def test_a_line_is_no_wider_than_it_may_be_and_no_stop_begins_one(width):
    text = "先读“一 (two)”，再读「三」：four, five。然后（six）停！"
    lines = wrap(text, width).split("\n")
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    assert not any(line[0] in "，。；：、！？）」”,.)" for line in lines)
    assert not any(line[-1] in "（「“(" for line in lines)
    longest = 10  # what holds together: the five signs around one word
    assert max(map(cell_len, lines)) <= max(width, longest)


def test_a_command_is_never_broken():
    assert wrap("see `glassformer trace --json -` now", 12) == "see\n`glassformer trace --json -`\nnow"
