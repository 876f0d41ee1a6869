"""A lab as it ships, run once; what it says must be said in both languages."""

import re

import pytest

from glassformer.labs.figures import Text
from glassformer.labs.seeds import merge

SAME_IN_EVERY_LANGUAGE = r"[a-z]|[\d /n]+|b?float\d+"  # a letter, a number, a type

LANGUAGES = ("en", "zh")


@pytest.fixture
def shipped():
    def run(lab):
        finding = lab.LAB.run(0)
        summary = merge([finding]).summary
        assert finding.quoted
        assert not re.search(r"[{}]", summary.en + summary.zh)
        assert all(
            re.search(rf"{{{name}:", finding.summary.say(language)) for name in finding.quoted for language in LANGUAGES
        )
        for language in LANGUAGES:
            assert len({name.say(language) for name in finding.numbers}) == len(finding.numbers)  # no two of one name
        assert all(re.search("[一-鿿]", name.zh) for name in finding.numbers)
        for panel in finding.figure.panels:
            for name in (*panel.ticks, *panel.rows):
                assert isinstance(name, Text) or re.fullmatch(SAME_IN_EVERY_LANGUAGE, name)
        return finding

    return run
