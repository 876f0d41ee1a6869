"""Lines joined and sentences found, soon in whatever text."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from glassformer.pipelines.documents.segments import LINE_END, SENTENCE_END
from glassformer.pipelines.text.sentence_translator import BREAK

# As they would be written if only what they find mattered.
PLAIN = {
    LINE_END: re.compile(r"[ \t]*[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+[ \t]*"),
    SENTENCE_END: re.compile(r"[.!?]+[\"'”’)]*\s+(?=[^a-z\s])|[。！？]+[”’」）]*"),
    BREAK: re.compile(r"\s*[\n\r\u2028\u2029]\s*"),
}


@given(st.text(alphabet=" \t\n\r\u2028.!?\"')”。」aA1", max_size=30))
def test_what_is_found_is_the_same(text: str) -> None:
    for pattern, plain in PLAIN.items():
        assert [one.span() for one in pattern.finditer(text)] == [one.span() for one in plain.finditer(text)]
