"""Money and other units: found, told apart, and written as a language does."""

import timeit
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.pipelines.language.measures import (
    LANGUAGES,
    UNITS,
    Measure,
    find_measures,
    format_measure,
    mentioned_units,
)


def seen(text, language):
    return [(text[one.start : one.end], one.unit) for one in find_measures(text, language)]


@pytest.mark.parametrize("unit", UNITS)
def test_what_is_written_is_found_again(unit):
    for language, number in product(LANGUAGES, ("5", "1", "1,234.5", "5–10")):
        text = format_measure(number, unit, language)
        start = text.index(number)
        assert find_measures(text, language) == [Measure(0, len(text), unit, (start, start + len(number)))]
        assert mentioned_units(text, language)[unit] >= 1


@pytest.mark.parametrize(
    ("number", "unit", "texts"),
    [
        ("20", "EUR", ("€20", "20 €", "20欧元")),
        ("20", "USD", ("$20", "20 $", "20美元")),
        ("250", "CNY", ("250 yuan", "250 Yuan", "250元")),
        ("5", "mile", ("5 miles", "5 Meilen", "5 英里")),
        ("1", "mile", ("1 mile", "1 Meile", "1 英里")),
        ("5", "mg", ("5 mg", "5 mg", "5 mg")),
        ("5", "%", ("5%", "5 %", "5%")),
        ("5", "month", ("5 months", "5 Monate", "5 个月")),
        ("5", "foot", ("5 feet", "5 Fuß", "5 英尺")),
    ],
)
def test_each_language_writes_in_its_own_way(number, unit, texts):
    assert tuple(format_measure(number, unit, language) for language in LANGUAGES) == texts


ALIKE = [
    ("EUR", "It costs 20 euros.", "Das kostet 20 €.", "价格是20欧元。"),
    ("EUR", "It costs €1,250.50 now.", "Es kostet jetzt 1.250,50 Euro.", "现在售价1250.50欧元。"),
    ("USD", "It costs $20.", "Es kostet 20 Dollar.", "售价20美元。"),
    ("USD", "US$99 or more", "99 US-Dollar oder mehr", "99美金以上"),
    ("GBP", "It was £5.", "Es waren 5 £.", "那是5英镑。"),
    ("GBP", "5 pounds sterling", "5 Pfund Sterling", "5 英镑"),
    ("CNY", "250 yuan", "250 Yuan", "250元"),
    ("CNY", "RMB 250", "250 CNY", "人民币250元"),
    ("¥", "¥300", "300 ¥", "￥300"),
    ("CHF", "40 Swiss francs", "40 Franken", "40瑞士法郎"),
    ("KRW", "₩9,000", "9.000 Won", "9000韩元"),
    ("cent", "It costs 50 cents.", "Es kostet 50 Cent.", "售价50美分。"),
    ("pound", "She lost 5 pounds.", "Sie hat 5 Pfund abgenommen.", "她瘦了5磅。"),
    ("lb", "5 lbs", "5 lb", "5 lb"),
    ("kg", "3.5 kg of rice", "3,5 Kilogramm Reis", "3.5公斤大米"),
    ("g", "100 g of sugar", "100 Gramm Zucker", "100克糖"),
    ("l", "2 litres of milk", "2 Liter Milch", "2升牛奶"),
    ("m", "100m away", "100 Meter entfernt", "100米外"),
    ("m²", "80 square metres", "80 Quadratmeter", "80平方米"),
    ("km/h", "120 km/h", "120 Stundenkilometer", "120公里/小时"),
    ("mph", "60 mph", "60 Meilen pro Stunde", "60英里/小时"),
    ("°C", "It is -5°C.", "Es sind -5 Grad Celsius.", "零下5摄氏度"),
    ("°F", "70 degrees Fahrenheit", "70 °F", "华氏70度"),
    ("degree", "Turn it 90 degrees.", "Um 90 Grad drehen.", "旋转90度。"),
    ("GHz", "2.4 GHz", "2,4 GHz", "2.4 GHz的频率"),
    ("mile", "5 miles", "5 Meilen", "5英里"),
    ("%", "5 percent", "5 Prozent", "百分之5"),
    ("percentage point", "2 percentage points", "2 Prozentpunkte", "2个百分点"),
    ("second", "in 5 secs", "in 5 Sekunden", "5秒内"),
    ("minute", "10 mins", "10 Minuten", "10分钟"),
    ("hour", "3 hrs later", "nach 3 h", "3个小时后"),
    ("month", "6 months", "6 Monate", "6个月"),
    ("year", "3 years old", "3 Jahre alt", "3岁"),
]


@pytest.mark.parametrize(("unit", "english", "german", "chinese"), ALIKE)
def test_languages_agree_on_a_unit(unit, english, german, chinese):
    for text, language in zip((english, german, chinese), LANGUAGES, strict=True):
        assert [one.unit for one in find_measures(text, language)] == [unit], text
        assert mentioned_units(text, language)[unit] >= 1, text


def test_every_pair_of_units_is_told_apart():
    """What one row says in one language is not what another says in any, unless it is meant to be as good."""
    as_good = {
        *[("¥", "CNY"), ("¥", "JPY"), ("CNY", "¥"), ("JPY", "¥"), ("pound", "GBP"), ("GBP", "pound"), ("lb", "pound")],
        *[("pound", "lb"), ("°C", "degree"), ("degree", "°C"), ("°F", "degree"), ("kcal", "cal"), ("km/h", "km")],
        *[("mph", "mile"), ("cent", "minute"), ("mph", "hour"), ("km/h", "hour")],
        ("mg", "day"),  # 5 mg a day
        ("°F", "°C"),  # 华氏70度, of which 度 may be either
    }
    for unit, *texts in ALIKE:
        for other in {row[0] for row in ALIKE} - {unit}:
            for text, language in zip(texts, LANGUAGES, strict=True):
                if mentioned_units(text, language)[other]:
                    assert (unit, other) in as_good, text


@pytest.mark.parametrize(
    ("language", "text", "stretch", "unit", "scale"),
    [
        ("en", "It made $20k.", "$20k", "USD", 3),
        ("en", "worth €1.5m today", "€1.5m", "EUR", 6),
        ("en", "worth $3bn", "$3bn", "USD", 9),
        ("en", "worth $2 million", "$2 million", "USD", 6),
        ("en", "2 million dollars", "2 million dollars", "USD", 6),
        ("en", "5m euros", "5m euros", "EUR", 6),
        ("en", "4 billion years ago", "4 billion years", "year", 9),
        ("de", "etwa 5 Mio. € mehr", "5 Mio. €", "EUR", 6),
        ("de", "3 Milliarden Dollar", "3 Milliarden Dollar", "USD", 9),
        ("zh", "共5万元", "5万元", "CNY", 4),
        ("zh", "3亿美元", "3亿美元", "USD", 8),
        ("zh", "$5万", "$5万", "USD", 4),
        ("zh", "500多公里", "500多公里", "km", 0),
        ("en", "a 5-mile run", "5-mile", "mile", 0),
        ("en", "a 3-year-old boy", "3-year", "year", 0),
        ("de", "ein 20-Euro-Schein", "20-Euro", "EUR", 0),
    ],
)
def test_what_is_more_than_number_and_unit_is_told(language, text, stretch, unit, scale):
    (one,) = find_measures(text, language)
    assert (text[one.start : one.end], one.unit, one.scale, one.plain) == (stretch, unit, scale, False)
    assert text[slice(*one.number)].replace(".", "").isdecimal()


@pytest.mark.parametrize(
    ("language", "text", "found"),
    [
        ("en", "$5-10 and 5–10 km", [("$5-10", "USD"), ("5–10 km", "km")]),
        ("en", "USD 20, EUR 30", [("USD 20", "USD"), ("EUR 30", "EUR")]),
        ("en", "20 EUR 30 USD", [("20 EUR", "EUR"), ("30 USD", "USD")]),
        ("en", "20 $30", [("$30", "USD")]),
        ("en", "$20 USD", [("$20 USD", "USD")]),
        ("en", "$20 5 kg", [("$20", "USD"), ("5 kg", "kg")]),
        ("en", "5 mg/l at 10x15 cm", [("5 mg", "mg"), ("15 cm", "cm")]),
        ("en", "5m, 5g, 5l, 5V, 5 s, 5 A", [("5m", "m"), ("5g", "g"), ("5l", "l"), ("5V", "V"), ("5 s", "second"), ("5 A", "A")]),  # noqa: E501
        ("en", "5\u00a0km and 5\u202fkg", [("5\u00a0km", "km"), ("5\u202fkg", "kg")]),
        ("en", "5 years' work, 5 MILES", [("5 years", "year"), ("5 MILES", "mile")]),
        ("de", "10 000 € und 1.234,5 kg", [("10 000 €", "EUR"), ("1.234,5 kg", "kg")]),
        ("zh", "￥２５０和３公里", [("￥２５０", "¥"), ("３公里", "km")]),
        ("zh", "10年5个月", [("10年", "year"), ("5个月", "month")]),
        ("zh", "¥250元", [("¥250元", "CNY")]),
    ],
)  # fmt: skip
def test_measures_are_found_where_they_stand(language, text, found):
    assert seen(text, language) == found


@pytest.mark.parametrize(
    ("language", "text"),
    [(language, text) for language, texts in {
        "en": ["iPhone 5s", "5A", "5B", "5K", "5G", "4K", "3D", "2nd", "1st", "5x", "section 5 A", "vitamin B 12",
               "10 am", "10 pm", "10 a.m.", "5 A.M.", "5 a", "5 in", '5"', "the 1980s", "A$20", "R$5", "COVID-19 h",
               "mp3 s", "5 B-sides", "5 m's", "5 B&B", "5 Mg", "5 KG", "365 HR", "5%d", "100%20", "5 kmx", "v1.2 km",
               "#5 kg", "in 2026 second place", "5 won", "5. Days", "5  km", "5\nkm", "kg and €", "five miles", ""],
        "de": ["Abschnitt 5 A", "§ 5 A", "um 5 Uhr", "am 5. Tag", "5 am", "Klasse 5 B", "5 Literaten", "5 Europäer"],
        "zh": ["2026年3月5日", "26年3月", "第5天", "第 5 天", "90年代", "3年级", "5克拉", "3元组", "5点", "3月", "5分",
               "五公里"],
    }.items() for text in texts],
)  # fmt: skip
def test_what_is_no_measure(language, text):
    assert seen(text, language) == []


@pytest.mark.parametrize(
    ("language", "text", "units"),
    [
        ("de", "Fünf Meilen und ein paar Dollar", ["mile", "USD"]),
        ("de", "ein 5-Meilen-Lauf mit Eurobeträgen", ["mile", "EUR"]),
        ("de", "3-jährig, dreistündig, Arbeitsstunden", ["year", "hour"]),
        ("de", "5 Füße", ["foot"]),
        ("en", "£5", ["GBP", "pound"]),
        ("en", "5 pounds", ["GBP", "pound", "lb"]),
        ("zh", "五磅", ["pound", "lb"]),
        ("zh", "每小时60英里", ["mph", "mile", "hour"]),
        ("zh", "二十多元，三月五日", ["CNY", "month", "day"]),
        ("zh", "64 位", ["bit"]),
        ("de", "100%ig und fünfprozentig", ["%"]),
        ("en", "at 100ºC and 300° Fahrenheit", ["°C", "°F"]),
        ("en", "¥5", ["¥", "CNY", "JPY"]),
        ("en", "60 miles an hour", ["mph"]),
        ("en", "a 3-year-old", ["year"]),
        ("en", '27" or 27 in', ["inch"]),
    ],
)
def test_all_that_may_be_said_is_heard(language, text, units):
    found = mentioned_units(text, language)
    assert [unit for unit in units if not found[unit]] == []


@pytest.mark.parametrize(
    ("language", "text", "unit"),
    [
        ("en", "That costs 20 $.", "EUR"),
        ("de", "5 Kilogramm", "pound"),
        ("zh", "3.5公里", "kg"),
        ("de", "5 Mg", "mg"),
        ("de", "250 USD", "EUR"),
        ("de", "3 Stunden alt", "year"),
        ("de", "in Europa", "EUR"),
        ("de", "Literatur und Grammatik", "l"),
        ("zh", "5磅", "GBP"),
        ("zh", "20元", "USD"),
        ("zh", "20美元", "CNY"),
        ("zh", "20港元", "CNY"),
        ("zh", "5千米", "m"),
        ("zh", "今天", "day"),
        ("de", "70 Grad", "°F"),
        ("de", "5 Prozent", "percentage point"),
    ],
)
def test_another_unit_is_not_taken_for_it(language, text, unit):
    assert mentioned_units(text, language)[unit] == 0


def test_units_are_counted():
    assert mentioned_units("5 km, 6 km und 7 kg", "de") == {"km": 2, "kg": 1}


def test_other_languages_have_none():
    assert find_measures("5 km", "fr") == []
    assert not mentioned_units("5 km", "fr")


PIECES = [*"5.,-$€¥mksKKİſ年月元多万度美ß＄５° ", "10", "kg", "pounds", "百分之", "US", "USD", "Mio", "Jahr"]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.sampled_from(LANGUAGES))
def test_stretches_are_in_order_and_hold_their_number(text, language):
    end = 0
    for one in find_measures(text, language):
        assert end <= one.start <= one.number[0] < one.number[1] <= one.end <= len(text)
        assert one.unit in UNITS
        end = one.end
    assert set(mentioned_units(text, language)) <= set(UNITS)


def test_a_text_without_digits_costs_one_search():
    text = "A sentence without a digit costs next to nothing, however many words there are in it."

    def cost(text):
        return min(timeit.repeat(lambda: find_measures(text, "en"), number=200, repeat=10))

    assert 3 * cost(text) < cost(f"{text} 5 km, 6 km.")
