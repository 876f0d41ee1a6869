"""Times and dates, told in digits where they can mean nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.pipelines.language.normalize import LANGUAGES, Rewrite, find_rewrites


def told(text, language, target):
    for one in reversed(find_rewrites(text, language, target)):
        text = text[: one.start] + one.text + text[one.end :]
    return text


@pytest.mark.parametrize(
    ("text", "german", "chinese"),
    [
        ("at half past seven.", "at 7:30.", None),
        ("Half-past 12", "12:30", None),
        ("a quarter past eight", "8:15", None),
        ("quarter to one", "12:45", None),
        ("twenty-five minutes to six", "5:35", None),
        ("ten past six", "6:10", None),
        ("at ten to six.", "at 5:50.", None),
        ("half past five in the evening", "17:30", None),
        ("3:30 pm", "15:30", None),
        ("at seven o'clock", "at 7:00 o'clock", "at 7 o'clock"),
        ("We met at 3 p.m.", "We met at 15:00 o'clock.", "We met at 15 o'clock."),
        ("at 3 p.m. The shop", "at 15:00 o'clock. The shop", "at 15 o'clock. The shop"),
        ("at 3 p.m. Monday", "at 15:00 o'clock Monday", "at 15 o'clock Monday"),
        ("12 a.m. and 12 PM", "0:00 and 12:00", None),
        ("at three in the afternoon", "at 15:00 o'clock", "at 15 o'clock"),
        ("at 15:00", "at 15:00", "at 15 o'clock"),
        ("from 3 to 5 p.m.", "from 15:00 to 17:00.", None),
        ("3-5 pm", "15:00 to 17:00", None),
        ("11 am-2:30 pm", "11:00 to 14:30", None),
        ("between 3 and 5 pm", "between 15:00 and 17:00", None),
        ("3 May 2026", "May 3, 2026", "May 3 in 2026"),
        ("on the 3rd of May, 2026", "on May 3, 2026", "on May 3 in 2026"),
        ("May 3rd, 2026", "May 3, 2026", "May 3rd, 2026"),
        ("Monday, Jan. 28, 1999", "Monday, January 28, 1999", "Monday, January 28 in 1999"),
        ("28 Jan 1999", "January 28, 1999", "January 28 in 1999"),
        ("on Feb. 12, we", "on February 12th, we", "on the 12th of February, we"),
        ("the Dec 22 concert", "the 22 December concert", "the December 22nd concert"),
        ("on 28 Dec.", "on December 28th.", "on the 28th of December."),
        ("on 3 May", "on 3 May", "on the 3rd of May"),
        ("in Jan. 1999", "in January 1999", None),
    ],
)
def test_english(text, german, chinese):
    assert told(text, "en", "de") == german
    assert told(text, "en", "zh") == (chinese or german)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("um halb acht ab", "um 7:30 ab"),
        ("um halb acht Uhr", "um 7:30"),
        ("Halb eins", "12:30"),
        ("Viertel nach acht", "8:15"),
        ("Viertel vor drei nachmittags", "14:45"),
        ("um viertel acht", "um 7:15"),
        ("um dreiviertel acht", "um 7:45"),
        ("zehn vor acht", "7:50"),
        ("fünf nach halb acht", "7:35"),
        ("acht Uhr dreißig", "8:30"),
        ("zweiundzwanzig Uhr fünfundvierzig", "22:45"),
        ("20 Uhr", "20:00"),
        ("20.15 Uhr", "20:15"),
        ("acht Uhr abends", "20:00"),
        ("um acht abends", "um 20:00"),
        ("zwölf Uhr nachts", "0:00"),
        ("von 8 bis 10 Uhr abends", "von 20:00 bis 22:00"),
        ("zwischen 8 und 10 Uhr", "zwischen 8:00 und 10:00"),
        ("am 3. Jan. 2026", "am 3. Januar 2026"),
        ("am 3. Dez.", "am 3. Dezember."),
        ("am 3. Dez. kommt", "am 3. Dezember kommt"),
    ],
)
def test_german(text, expected):
    assert told(text, "de", "en") == told(text, "de", "zh") == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("火车七点半开。", "火车7:30开。"),
        ("七点三刻", "7:45"),
        ("8点半", "8:30"),
        ("下午三点", "15:00"),
        ("星期一下午五点半", "星期一17:30"),
        ("星期二十点半", "星期二10:30"),
        ("上午十点二十分之前", "10:20之前"),
        ("晚上十二点", "0:00"),
        ("凌晨两点", "2:00"),
        ("差五分八点", "7:55"),
        ("八点差一刻", "7:45"),
        ("今晚八点", "今晚20:00"),
        ("三点钟", "3:00"),
        ("下午3时30分", "15:30"),
        ("下午三点到五点", "15:00到17:00"),
    ],
)
def test_chinese(text, expected):
    assert told(text, "zh", "en") == expected


@pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for language, texts in {
        "en": ["half seven", "10 to 2 pm", "five to six people", "from ten to six", "odds of ten to one",
               "may 5 people", "May 5", "March 3", "at 3 and 5 pm", "one in the morning and two in the evening",
               "one am I", "a quarter to two people", "five minutes to three people", "noon",
               "1/3/1999", "05.06.2026", "2026-05-03", "at seven-thirty", "at 7:30", "eight in the afternoon"],
        "de": ["zehn vor acht Jahren", "im Viertel acht", "halb ein Dutzend", "eine Uhr", "acht Uhren", "gib acht",
               "um 7 oder 8 Uhr", "um 8 Uhr 30 Leute", "der 3. Jan", "3. Mai 2026", "der 8-Uhr-Zug"],
        "zh": ["三点", "三点建议", "下午一点都不累", "三点五分", "三点十分重要", "一点半点", "第三点", "三点一四",
               "百分点", "上午十点到两点", "晚上一点", "三小时半", "一百零三点半", "五月三日"],
        "fr": ["3 PM"],
    }.items() for text in texts],
)  # fmt: skip
def test_what_is_in_doubt_is_left_alone(language, text):
    assert told(text, language, "zh" if language != "zh" else "en") == text


def test_only_the_languages_that_were_measured():
    assert find_rewrites("at 3 pm", "en", "fr") == find_rewrites("at 3 pm", "en", "en") == []
    assert find_rewrites("at 3 pm", "en", "de") == [Rewrite(3, 7, "15:00 o'clock")]


PIECES = (
    "half past quarter to at from 3 12 seven o'clock pm p.m. - and in the afternoon Jan. May 3rd of , 2026 halb acht "
    "vor nach Uhr abends 20.15 bis 3. Dez. 下午 三 点 半 十 分 差 刻 到 今晚"
)


@given(
    st.lists(st.sampled_from(PIECES.split()), max_size=12),
    st.sampled_from(["", " "]),
    st.sampled_from(LANGUAGES),
    st.sampled_from(LANGUAGES),
)
def test_they_are_in_order_and_do_not_overlap(words, space, language, target):
    text = space.join(words)
    end = 0
    for one in find_rewrites(text, language, target):
        assert end <= one.start < one.end <= len(text)
        assert one.text != ""
        end = one.end
