"""A lab as it ships, run once; what it says must be said in both languages."""

import re

import pytest

from glassformer.labs.figure import Text

SAME_IN_EVERY_LANGUAGE = r"[a-z]|[\d /n]+|b?float\d+"  # a letter, a number, a type


@pytest.fixture
def shipped():
    def run(lab):
        finding = lab.LAB.run(0)
        for language in ("en", "zh"):
            assert len(finding.named(language)) == len(finding.numbers)  # no two numbers of one name
        assert all(re.search("[一-鿿]", name.zh) for name in finding.numbers)
        for panel in finding.figure.panels:
            for name in (*panel.ticks, *panel.rows):
                assert isinstance(name, Text) or re.fullmatch(SAME_IN_EVERY_LANGUAGE, name)
        return finding

    return run
