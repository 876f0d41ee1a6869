"""Amounts of money and of other units: where a text has one, which it is, and how a language writes it.

A translator that keeps a number may still make euros of dollars, or kilometres of kilograms. `measures` is strict and
finds what the source surely says; `units_of` is lenient and tells all that a translation may have said. Some forms mean
one of several units, as ¥ and "pounds": they are units of their own, and any of those they may mean is as good.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import NamedTuple

from glassformer.common.strings import HAN
from glassformer.pipelines.language.numbers import LANGUAGES, SCALES


class Forms(NamedTuple):
    """How a unit is written: by symbols, which are the same everywhere, and in words, a plural behind its singular."""

    symbols: str
    en: str = ""
    de: str = ""
    zh: str = ""


MONEY = {
    "EUR": Forms("€, EUR", "euro, euros", "Euro, Euros", "欧元"),
    "USD": Forms(
        "$, US$, US $, $US, USD",
        "dollar, dollars, US dollar, US dollars, U.S. dollars, American dollars",
        "Dollar, Dollars, US-Dollar, US-Dollars, US Dollar",
        "美元, 美金, 美圆",
    ),
    "GBP": Forms(
        "£, GBP",
        "pound sterling, pounds sterling, British pound, British pounds",
        "Pfund Sterling, britische Pfund, britischen Pfund",
        "英镑",
    ),
    "CNY": Forms(
        "CNY, RMB", "yuan, yuan, Chinese yuan, renminbi", "Yuan, Yuan, Renminbi", "元, 人民币, 元人民币, 块钱"
    ),
    "JPY": Forms("JPY", "yen, yen, Japanese yen", "Yen", "日元, 日圆"),
    "¥": Forms("¥"),
    "CHF": Forms("CHF", "Swiss franc, Swiss francs, franc, francs", "Franken, Schweizer Franken", "瑞士法郎, 法郎"),
    "INR": Forms("₹, INR, Rs, Rs.", "rupee, rupees, Indian rupees", "Rupie, Rupien", "卢比, 印度卢比"),
    "KRW": Forms("₩, KRW", "Korean won, South Korean won", "Won", "韩元, 韩圆"),
    "cent": Forms("¢, ct", "cent, cents", "Cent, Cent, Cents", "分钱, 美分, 欧分"),
    "pence": Forms("", "penny, pence", "Penny, Pence", "便士"),
}
TIMES = {
    "second": Forms("s, sec, secs", "second, seconds", "Sekunde, Sekunden, Sek", "秒, 秒钟"),
    "minute": Forms("min, mins", "minute, minutes", "Minute, Minuten, Min", "分钟"),
    "hour": Forms("h, hr, hrs", "hour, hours", "Stunde, Stunden, Std", "小时, 个小时, 个钟头"),
    "day": Forms("", "day, days", "Tag, Tage, Tagen", "天"),
    "week": Forms("wks", "week, weeks", "Woche, Wochen", "周, 星期, 个星期, 礼拜, 个礼拜"),
    "month": Forms("", "month, months", "Monat, Monate, Monaten", "个月"),
    "year": Forms("yr, yrs", "year, years", "Jahr, Jahre, Jahren", "年, 岁, 周年, 周岁"),
}
OTHERS = {  # where the name is one of the symbols, that is how it is written
    "ms": Forms("ms", "millisecond, milliseconds", "Millisekunde, Millisekunden", "毫秒"),
    "µs": Forms("µs, μs", "microsecond, microseconds", "Mikrosekunde, Mikrosekunden", "微秒"),
    "ns": Forms("ns", "nanosecond, nanoseconds", "Nanosekunde, Nanosekunden", "纳秒"),
    "µg": Forms("µg, μg", "microgram, micrograms", "Mikrogramm", "微克"),
    "mg": Forms("mg", "milligram, milligrams, milligrammes", "Milligramm", "毫克"),
    "g": Forms("g", "gram, grams, gramme, grammes", "Gramm", "克"),
    "kg": Forms("kg, ㎏", "kilogram, kilograms, kilogrammes, kilo, kilos", "Kilogramm, Kilo, Kilos", "公斤, 千克"),
    "t": Forms("t", "tonne, tonnes, ton, tons, metric tons", "Tonne, Tonnen", "吨, 公吨"),
    "ml": Forms("ml, mL, ㎖", "millilitre, millilitres, milliliter, milliliters", "Milliliter, Millilitern", "毫升"),
    "cl": Forms("cl, cL", "centilitre, centilitres, centiliter, centiliters", "Zentiliter", "厘升"),
    "l": Forms("l, L", "litre, litres, liter, liters", "Liter, Litern", "升, 公升"),
    "nm": Forms("nm", "nanometre, nanometres, nanometer, nanometers", "Nanometer, Nanometern", "纳米"),
    "µm": Forms("µm, μm", "micrometre, micrometres, micrometers", "Mikrometer, Mikrometern", "微米"),
    "mm": Forms("mm, ㎜", "millimetre, millimetres, millimeter, millimeters", "Millimeter, Millimetern", "毫米"),
    "cm": Forms("cm, ㎝", "centimetre, centimetres, centimeter, centimeters", "Zentimeter, Zentimetern", "厘米, 公分"),
    "m": Forms("m", "metre, metres, meter, meters", "Meter, Metern", "米, 公尺"),
    "km": Forms("km, ㎞", "kilometre, kilometres, kilometer, kilometers", "Kilometer, Kilometern", "公里, 千米"),
    "cm²": Forms("cm², cm2", "square centimetres, square centimeters", "Quadratzentimeter", "平方厘米"),
    "m²": Forms("m², m2, ㎡, sqm, qm", "square metres, square meters", "Quadratmeter, Quadratmetern", "平方米, 平米"),
    "km²": Forms("km², km2", "square kilometres, square kilometers", "Quadratkilometer", "平方公里, 平方千米"),
    "m³": Forms("m³, m3", "cubic metres, cubic meters", "Kubikmeter, Kubikmetern", "立方米"),
    "ha": Forms("ha", "hectare, hectares", "Hektar", "公顷"),
    "m/s": Forms("m/s", "metres per second, meters per second", "Meter pro Sekunde", "米/秒, 米每秒"),
    "km/h": Forms(
        "km/h, kph, kmh",
        "kilometres per hour, kilometers per hour, kilometres an hour, kilometers an hour",
        "Kilometer pro Stunde, Stundenkilometer, Kilometern pro Stunde, Stundenkilometern",
        "公里/小时, 千米/小时, 公里每小时",
    ),
    "mph": Forms("mph", "miles per hour, miles an hour", "Meilen pro Stunde", "英里/小时, 英里每小时"),
    "°C": Forms(
        "°C, ° C, ℃, ° Celsius",
        "degrees Celsius, degree Celsius, degrees C, degrees centigrade",
        "Grad Celsius",
        "摄氏度",
    ),
    "°F": Forms(
        "°F, ° F, ℉, ° Fahrenheit", "degrees Fahrenheit, degree Fahrenheit, degrees F", "Grad Fahrenheit", "华氏度"
    ),
    "K": Forms("K", "kelvin, kelvins", "Kelvin", "开尔文"),
    "degree": Forms("°", "degree, degrees", "Grad, Grad", "度"),
    "mW": Forms("mW", "milliwatt, milliwatts", "Milliwatt", "毫瓦"),
    "W": Forms("W", "watt, watts", "Watt", "瓦, 瓦特"),
    "kW": Forms("kW", "kilowatt, kilowatts", "Kilowatt", "千瓦"),
    "MW": Forms("MW", "megawatt, megawatts", "Megawatt", "兆瓦"),
    "GW": Forms("GW", "gigawatt, gigawatts", "Gigawatt", "吉瓦"),
    "Wh": Forms("Wh", "watt-hours, watt hours", "Wattstunde, Wattstunden", "瓦时"),
    "kWh": Forms("kWh", "kilowatt-hours, kilowatt hours", "Kilowattstunde, Kilowattstunden", "千瓦时"),
    "mAh": Forms("mAh", "milliamp hours", "Milliamperestunden", "毫安时"),
    "mV": Forms("mV", "millivolt, millivolts", "Millivolt", "毫伏"),
    "V": Forms("V", "volt, volts", "Volt", "伏, 伏特"),
    "kV": Forms("kV", "kilovolt, kilovolts", "Kilovolt", "千伏"),
    "mA": Forms("mA", "milliamp, milliamps, milliamperes", "Milliampere", "毫安"),
    "A": Forms("A", "amp, amps, ampere, amperes", "Ampere", "安培"),
    "Hz": Forms("Hz", "hertz", "Hertz", "赫兹, 赫"),
    "kHz": Forms("kHz", "kilohertz", "Kilohertz", "千赫, 千赫兹"),
    "MHz": Forms("MHz", "megahertz", "Megahertz", "兆赫, 兆赫兹"),
    "GHz": Forms("GHz", "gigahertz", "Gigahertz", "吉赫, 吉赫兹, 千兆赫"),
    "B": Forms("B", "byte, bytes", "Byte, Bytes", "字节"),
    "KB": Forms("KB, kB, KiB", "kilobyte, kilobytes", "Kilobyte, Kilobytes", "千字节"),
    "MB": Forms("MB, MiB", "megabyte, megabytes", "Megabyte, Megabytes", "兆字节"),
    "GB": Forms("GB, GiB", "gigabyte, gigabytes", "Gigabyte, Gigabytes", "吉字节, 千兆字节"),
    "TB": Forms("TB, TiB", "terabyte, terabytes", "Terabyte, Terabytes", "太字节"),
    "bit": Forms("bit", "bits", "Bit, Bits", "比特"),
    "Mbit": Forms("Mbit", "megabit, megabits", "Megabit, Megabits", "兆比特"),
    "Gbit": Forms("Gbit", "gigabit, gigabits", "Gigabit, Gigabits", "吉比特, 千兆比特"),
    "MB/s": Forms("MB/s, MBps", "megabytes per second", "Megabyte pro Sekunde", "兆字节/秒, 兆字节每秒"),
    "Mbit/s": Forms("Mbit/s, Mbps, Mb/s", "megabits per second", "Megabit pro Sekunde", "兆比特/秒, 兆比特每秒"),
    "Gbit/s": Forms("Gbit/s, Gbps, Gb/s", "gigabits per second", "Gigabit pro Sekunde", "吉比特/秒, 吉比特每秒"),
    "cal": Forms("cal", "calorie, calories", "Kalorie, Kalorien", "卡路里"),
    "kcal": Forms("kcal", "kilocalorie, kilocalories", "Kilokalorie, Kilokalorien", "千卡, 大卡"),
    "J": Forms("J", "joule, joules", "Joule", "焦耳"),
    "kJ": Forms("kJ", "kilojoule, kilojoules", "Kilojoule", "千焦, 千焦耳"),
    "Pa": Forms("Pa", "pascal, pascals", "Pascal", "帕, 帕斯卡"),
    "hPa": Forms("hPa", "hectopascals", "Hektopascal", "百帕"),
    "kPa": Forms("kPa", "kilopascals", "Kilopascal", "千帕"),
    "bar": Forms("bar", "", "Bar", "巴"),
    "dB": Forms("dB", "decibel, decibels", "Dezibel", "分贝"),
    "dpi": Forms("dpi, DPI"),
    "px": Forms("px", "pixel, pixels", "Pixel, Pixeln", "像素"),
    "pt": Forms("pt"),
    "lb": Forms("lb, lbs, Lbs"),
    "pound": Forms("", "pound, pounds", "Pfund, Pfund", "磅"),
    "ounce": Forms("oz", "ounce, ounces", "Unze, Unzen", "盎司"),
    "inch": Forms("", "inch, inches", "Zoll, Zoll", "英寸"),
    "foot": Forms("ft", "foot, feet", "Fuß, Fuß, Fuss", "英尺"),
    "yard": Forms("yd, yds", "yard, yards", "Yard, Yards", "码"),
    "mile": Forms("mi", "mile, miles", "Meile, Meilen", "英里"),
    "square foot": Forms("ft², ft2, sq ft", "square foot, square feet", "Quadratfuß, Quadratfuß", "平方英尺"),
    "square mile": Forms("", "square mile, square miles", "Quadratmeile, Quadratmeilen", "平方英里"),
    "acre": Forms("", "acre, acres", "Acre, Acres, Acre", "英亩"),
    "gallon": Forms("gal", "gallon, gallons", "Gallone, Gallonen", "加仑"),
    "%": Forms("%", "percent, per cent", "Prozent", ""),
    "‰": Forms("‰", "per mille", "Promille", ""),
    "percentage point": Forms(
        "", "percentage point, percentage points", "Prozentpunkt, Prozentpunkte, Prozentpunkten", "个百分点"
    ),
}
UNITS = MONEY | TIMES | OTHERS

WRITTEN = {  # as the languages write what they write in ways of their own
    "en": {"EUR": "€{}", "USD": "${}", "GBP": "£{}", "¥": "¥{}", "CHF": "CHF {}", "KRW": "₩{}", "%": "{}%", "‰": "{}‰",
           "°C": "{}°C", "°F": "{}°F"},
    "de": {"EUR": "{} €", "USD": "{} $", "GBP": "{} £", "¥": "{} ¥", "CHF": "{} CHF"},
    "zh": {"¥": "¥{}", "%": "{}%", "‰": "{}‰", "°C": "{}°C", "°F": "{}°F"},
}  # fmt: skip

BEFORE = {"人民币": "CNY", "百分之": "%", "千分之": "‰", "摄氏": "°C", "华氏": "°F"}  # what stands before a number
SHORT_SCALES = {"k": 3, "K": 3, "m": 6, "M": 6, "mn": 6, "b": 9, "B": 9, "bn": 9, "tn": 12}  # of money alone
WRITTEN_SCALES = {
    "en": SCALES["en"],
    "de": SCALES["de"] | {"Millionen": 6, "Milliarden": 9, "Billionen": 12},
    "zh": SCALES["zh"] | {"百": 2, "十万": 5},
}

MEANT = {  # what a unit in a translation may stand for, beside itself
    "¥": "CNY, JPY", "CNY": "¥", "JPY": "¥", "pound": "lb, GBP", "lb": "pound", "GBP": "pound", "degree": "°C",
    "°C": "degree", "°F": "degree", "kcal": "cal", "km/h": "km, hour", "mph": "mile, hour", "m/s": "m, second",
    "MB/s": "MB, second", "Mbit/s": "Mbit, second", "Gbit/s": "Gbit, second",
}  # fmt: skip
MADE = {  # units that a translation may put together, as in 每小时60英里
    "km/h": ("km", "hour"), "mph": ("mile", "hour"), "m/s": ("m", "second"), "MB/s": ("MB", "second"),
    "Mbit/s": ("Mbit", "second"), "Gbit/s": ("Gbit", "second"),
}  # fmt: skip
LOOSE = {  # words that are no measure for sure, or mean another thing, and may still be what a translation says
    "en": {"calorie": "cal, kcal", "calories": "cal, kcal", "won": "KRW", "buck": "USD", "bucks": "USD",
           "quid": "GBP, pound", "pt": "pt, pound", "point": "pt, pound", "points": "pt, pound", "old": "year",
           "age": "year", "ages": "year", "aged": "year", "birthday": "year", "anniversary": "year"},
    "de": {"kalorie": "cal, kcal", "kalorien": "cal, kcal", "füße": "foot", "füßen": "foot", "abschlüsse": "degree",
           "abschluss": "degree", "alter": "year"},
    "zh": {"卡路里": "cal, kcal", "卡": "cal, kcal", "磅": "pound, lb, pt", "块": "CNY", "圆": "CNY", "欧罗": "EUR",
           "円": "JPY", "月": "month", "日": "day", "分": "minute, cent", "钟头": "hour", "时速": "hour, km/h",
           "学位": "degree", "百分之": "%", "千分之": "‰", "百分点": "percentage point", "摄氏": "°C, degree",
           "华氏": "°F, degree", "平方": "m²", "安": "A", "焦": "J", "吋": "inch", "呎": "foot",
           "位": "bit", "百分百": "%"},
}  # fmt: skip
LOOSE_SYMBOLS = {  # the same behind a number
    "in": "inch", '"': "inch", "″": "inch", "”": "inch", "'": "foot", "′": "foot", "G": "GB", "M": "MB", "kb": "KB",
    "Kb": "KB", "mb": "MB", "Mb": "MB, Mbit", "gb": "GB", "Gb": "GB, Gbit",
}  # fmt: skip
PARTS = {  # of German words, wherever they stand: Arbeitsstunden, 3-jährig
    "jahr": "year", "jährig": "year", "monat": "month", "woche": "week", "wöchig": "week", "tage": "day",
    "tägig": "day", "stunde": "hour", "stündig": "hour", "minute": "minute", "minütig": "minute", "sekunde": "second",
    "sekündig": "second", "prozentig": "%", "%ig": "%",
}  # fmt: skip
TRAPS = {  # words that begin or end as a unit and are none
    "en": "",
    "de": "Altern, Europa, Europä, Literat, Literal, Gradi, Gramma, Centr, Center, Meilenstein, Jahrhundert, Jahrzehnt",
    "zh": "今天, 明天, 昨天, 后天, 前天, 白天, 聊天, 春天, 夏天, 秋天, 冬天, 天气, 元素, 元组, 元件, 元旦, 单元, 公元, "
    "港元, 澳元, 加元, 新元, 加拿大元, 澳大利亚元, 新加坡元, 玉米, 大米, 米饭, 克拉, 克服, 升级, 升高, 上升, 提升, "
    "年级, 年代, 年度, 今年, 去年, 明年, 周围, 周边, 周末, 日本, 今日, 生日, 节日, 角度, 速度, 温度, 程度, 制度, 高度, "
    "长度, 宽度, 深度, 强度, 密度, 态度, 进度, 度假, 印度, 季度, 密码, 代码, 号码, 源码, 编码, 码头, 秒杀, 瓦片, 巴士, "
    "巴黎, 部分, 分别, 分为, 分析, 分享, 充分, 安全, 安装, 平安, 卡片, 卡车, 月亮, 个月度, 单位",
}


def split(forms: str) -> list[str]:
    return forms.split(", ") if forms else []


Span = tuple[int, int]


@dataclass(frozen=True)
class Measure:
    """A number with its unit."""

    start: int
    end: int
    unit: str
    number: Span
    scale: int = 0  # the power of ten that is written between or behind them: 3 in $20k, 4 in 5万元
    plain: bool = True  # nothing but number, space and unit; not so with a scale, in 5-mile and in 500多公里


_SPACE = "[ \u00a0\u2009\u202f]?"
_LETTER = rf"[^\W{HAN}]"  # or digit: what ends no word where Chinese is written without spaces
_SINGLE_END = rf"(?!{_LETTER}|['’&+#-]|\.\w)"
_UNGLUED = set("sABKJ")  # iPhone 5s, 5A, 4K
_WIDE = {ord("０") + n: str(n) for n in range(10)} | {ord("＄"): "$", ord("￥"): "¥", ord("％"): "%", ord("￡"): "£"}
_WIDE |= {ord("º"): "°", ord("˚"): "°"}  # often typed for it
_DIGIT = re.compile("[0-9０-９]")
_RUN = r"[0-9]+(?:[.,:/'’–-][0-9]+|[\u00a0\u202f][0-9]{3}(?![0-9]))*"
_NUMBER = re.compile(_RUN)
_SPACED = re.compile(rf"[0-9]{{1,3}}(?: [0-9]{{3}})+(?![0-9])(?:,[0-9]+)?|{_RUN}")  # 10 000 in German
_STUCK = re.compile(rf"(?:(?:(?<![0-9])[xX]|(?![xX]){_LETTER})-?|[#@\\]|第 ?)\Z")  # a name or a rank
_YEAR = re.compile("1[0-9]{3}|2[01][0-9]{2}")
_MONTH = re.compile("[ 0-9]*月")
_LABEL = re.compile(  # what a number with a letter behind it is the name of
    r"(?:\b(?:section|chapter|figure|fig|table|part|paragraph|article|appendix|room|class|type|level|no|number|model|"
    r"version|page|seat|gate|line|route|group|size|step|vitamin|iphone|abschnitt|kapitel|abbildung|abb|tabelle|teil|"
    r"absatz|artikel|paragraf|anhang|raum|zimmer|klasse|typ|stufe|nr|nummer|modell|seite|platz|linie|gruppe|größe|"
    r"schritt)|§)\.?[ \u00a0]?\Z",
    re.IGNORECASE,
)


def find_measures(text: str, language: str) -> list[Measure]:
    """The numbers in digits that have a unit beside them, in order."""
    if not _DIGIT.search(text) or language not in LANGUAGES:
        return []
    text = text if text.isascii() else text.translate(_WIDE)
    found: list[Measure] = []
    for match in (_SPACED if language == "de" else _NUMBER).finditer(text):
        taken = found[-1].end if found else 0
        measure = _unit_first(text, match, language, taken) or _unit_last(text, match, language)
        found += [measure] if measure else []
    return found


def mentioned_units(text: str, language: str) -> Counter[str]:
    """All units that `text` names, or may name, with a number or without."""
    if language not in LANGUAGES:
        return Counter()
    text = text if text.isascii() else text.translate(_WIDE)
    names = _loose_names(language)
    found: Counter[str] = Counter()
    for match in _loose(language).finditer(text):
        form = match[match.lastgroup or 0]
        found.update(names.get(form) or names.get(form.lower(), ()))
    for unit, (first, second) in MADE.items():
        found[unit] = max(found[unit], min(found[first], found[second]))
    return +found


def format_measure(number: str, unit: str, language: str) -> str:
    """A number with its unit as `language` usually writes it."""
    if style := WRITTEN[language].get(unit):
        return style.format(number)
    forms = UNITS[unit]
    if unit in split(forms.symbols) and unit not in MONEY:
        return f"{number} {unit}"
    words = split(getattr(forms, language))
    if language == "zh":
        return number + ("" if unit in MONEY and unit not in ("cent", "pence") else " ") + words[0]
    return f"{number} {words[0] if number == '1' else words[:2][-1]}"


def _unit_first(text: str, number: re.Match[str], language: str, taken: int) -> Measure | None:
    """The measure whose unit stands before its number, with what is said of it again behind: $2 million, $20 USD."""
    start, end = number.span()
    before = _before().search(text, max(taken, start - 6), start) if start > taken else None
    if before is None:
        return None
    unit, scale = _names(language)[before["unit"]], 0
    if multiple := _scale_behind(language).match(text, end):
        scale, end = _power(multiple["scale"], language), multiple.end()
    again = _unit_behind(language).match(text, end)
    if again and again["unit"]:
        other = _name(again["unit"], language)
        if other == unit or other in split(MEANT.get(unit, "")) or unit in split(MEANT.get(other, "")):
            end, unit = again.end(), other if unit == "¥" else unit
    return Measure(before.start(), end, unit, number.span(), scale, multiple is None)


def _unit_last(text: str, number: re.Match[str], language: str) -> Measure | None:
    """The measure whose unit stands behind its number."""
    start, end = number.span()
    behind = _unit_behind(language).match(text, end)
    if behind is None or _STUCK.search(text, max(0, start - 2), start):
        return None
    form = behind["money"] or behind["unit"] or behind["many"] or behind["joined"]
    unit, glued = _name(form, language), not behind["gap"]
    if len(form) == 1 and form.isascii() and form.isalpha():
        label = _LABEL.search(text, max(0, start - 14), start)
        if label or (glued and form in _UNGLUED):
            return None
    if unit in TIMES and _YEAR.fullmatch(number[0]) and _dates(form, unit, language):
        return None
    if not unit or (form == "年" and _MONTH.match(text, behind.end())):
        return None
    scale = _power(behind["scale"] or behind["scales"] or "", language)
    return Measure(start, behind.end(), unit, (start, end), scale, bool(behind["unit"]))


def _dates(form: str, unit: str, language: str) -> bool:
    """Whether the word is none of many, so that a number which may be a year is one: 2026年, "in 2026 second place"."""
    first = split(getattr(UNITS[unit], language))[0]
    return form.lower() == first.lower() or form == "s"


def _power(form: str, language: str) -> int:
    """The power of ten that a scale stands for."""
    bare = form.rstrip("多余").capitalize() if language == "de" else form.rstrip("多余").lower()
    return SHORT_SCALES.get(form) or WRITTEN_SCALES[language].get(bare, 0)


def _name(form: str, language: str) -> str:
    """The unit that is written so; nothing for a word that only looks like one."""
    names = _names(language)
    return names[form] if form in names else names[form.lower()]


@cache
def _names(language: str) -> dict[str, str]:
    """Units by their symbols, their words in small letters, and what stands before a number."""
    traps = dict.fromkeys((word.lower() for word in split(TRAPS[language])), "")
    words = {word.lower(): name for name, forms in UNITS.items() for word in split(getattr(forms, language))}
    symbols = {symbol: name for name, forms in UNITS.items() for symbol in split(forms.symbols)}
    return traps | words | BEFORE | symbols


@cache
def _loose_names(language: str) -> dict[str, tuple[str, ...]]:
    """All units that a form may mean in a translation."""
    names = {form: (unit, *split(MEANT.get(unit, ""))) for form, unit in _names(language).items() if unit}
    parts = {form: (unit,) for form, unit in PARTS.items()} if language == "de" else {}
    loose = {form: tuple(split(units)) for form, units in (LOOSE[language] | LOOSE_SYMBOLS).items()}
    return parts | names | loose


def _one_of(forms: Iterable[str], exact: bool = True) -> str:
    """A pattern of the forms, longest first, that is left at the first letter where none of them begins so."""

    def alike(form: str) -> str:
        return form[0] if exact else form[0].lower()

    groups = []
    for first, group in groupby(sorted(set(forms), key=lambda form: (alike(form), -len(form), form)), key=alike):
        rests = "|".join(re.escape(form[1:]) for form in group)
        begin = re.escape(first) if exact or first.upper() == first else f"[{first}{first.upper()}]"
        groups.append(f"{begin}(?:{rests})" if exact else f"{begin}(?ai:{rests})")
    return f"(?:{'|'.join(groups)})"


def _words(units: Iterable[Forms], language: str) -> str:
    words = [word for forms in units for word in split(getattr(forms, language))]
    if language == "zh":
        return _one_of([*words, *split(TRAPS["zh"])])
    return rf"{_one_of(words, exact=False)}(?!{_LETTER})"


def _symbols(units: Iterable[Forms], single: bool) -> Iterator[str]:
    """Either the symbols that are one letter, or all others."""
    for symbol in (symbol for forms in units for symbol in split(forms.symbols)):
        if (len(symbol) == 1 and symbol.isascii() and symbol.isalpha()) is single:
            yield symbol


@cache
def _before() -> re.Pattern[str]:
    signs = [symbol for forms in MONEY.values() for symbol in split(forms.symbols) if symbol not in ("¢", "ct")]
    return re.compile(rf"(?<!{_LETTER})(?P<unit>{_one_of([*signs, *BEFORE])}){_SPACE}\Z")


@cache
def _scales(language: str, money: bool) -> str:
    if language == "zh":
        words = rf"(?:{_one_of(WRITTEN_SCALES['zh'])}[多余]?|[多余])"
    else:
        words = rf"{_one_of(WRITTEN_SCALES[language], exact=False)}(?!{_LETTER})"
    return rf"(?:{words}|{_one_of(SHORT_SCALES)})" if money else words


@cache
def _scale_behind(language: str) -> re.Pattern[str]:
    return re.compile(rf"{_SPACE}(?P<scale>{_scales(language, True)})(?!{_LETTER})")


@cache
def _unit_behind(language: str) -> re.Pattern[str]:
    """A unit, maybe behind a scale; where money is, the scale may be a letter, and "5m euros" are no metres."""
    money, units = MONEY.values(), UNITS.values()
    coins = rf"(?:{_one_of(_symbols(money, False))}(?!{_LETTER})|{_words(money, language)})"
    full = rf"(?:{_one_of(_symbols(units, False))}(?!{_LETTER})|{_words(units, language)})"
    unit = rf"(?:{full}|{_one_of(_symbols(units, True))}{_SINGLE_END})"
    return re.compile(
        rf"(?P<gap>{_SPACE})(?:(?P<scale>{_scales(language, True)})\.?{_SPACE}(?P<money>{coins})|(?P<unit>{unit})|"
        rf"(?P<scales>{_scales(language, False)})\.?{_SPACE}(?P<many>{unit}))|[-\u2011](?P<joined>{full})"
    )


@cache
def _loose(language: str) -> re.Pattern[str]:
    units = UNITS.values()
    words = [word for forms in units for word in split(getattr(forms, language))] + [*LOOSE[language]]
    begin = rf"(?<![^\W\d{HAN}])"
    single = [*_symbols(units, True), *LOOSE_SYMBOLS]
    parts = [
        rf"{begin}(?P<symbol>{_one_of(_symbols(units, False))})(?![^\W\d{HAN}])",
        rf"(?:(?<=[0-9])|(?<=[0-9][ \u00a0\u2009\u202f-]))(?P<single>{_one_of(single)})(?!{_LETTER})",
    ]
    traps = split(TRAPS[language])
    if language == "zh":
        parts.append(rf"(?P<word>{_one_of([*words, *traps])})")
    elif language == "en":
        parts.append(rf"{begin}(?P<word>{_one_of(words, exact=False)})(?!{_LETTER})")
    else:  # a longer word may begin so: Eurobetrag, Meilenlauf
        long, short = [word for word in words if len(word) > 3], [word for word in words if len(word) < 4]
        parts.append(rf"{begin}(?P<trap>{_one_of(traps, exact=False)})\w*")
        parts.append(rf"{begin}(?P<long>{_one_of(long, exact=False)})[a-zäöüß]*")
        parts.append(rf"{begin}(?P<word>{_one_of(short, exact=False)})(?!{_LETTER})")
        parts.append(rf"(?P<part>{_one_of(PARTS, exact=False)})")
    return re.compile("|".join(parts))
