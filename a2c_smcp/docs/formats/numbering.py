"""The numbers of lists: how a figure is written, and which one comes next in a list of several levels. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

__all__ = ["Counters", "ListLevel", "numeral"]

_LEVELS: Final = 9
_ROMAN: Final = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
        strict=True,
    )
)
_HAN: Final = "〇一二三四五六七八九"
_HAN_UNITS: Final = ("", "十", "百", "千")
_STEMS: Final = {
    "ideographTraditional": "甲乙丙丁戊己庚辛壬癸",
    "ideographZodiac": "子丑寅卯辰巳午未申酉戌亥",
    "aiueoFullWidth": "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモヤユヨラリルレロワヲン",
    "irohaFullWidth": "イロハニホヘトチリヌルヲワカヨタレソツネナラムウヰノオクヤマケフコエテアサキユメミシヱヒモセス",
    "ganada": "가나다라마바사아자차카타파하",
    "decimalEnclosedCircle": "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳",
}
_STEMS_ALIKE: Final = {"aiueo": "aiueoFullWidth", "iroha": "irohaFullWidth"} | dict.fromkeys(
    ("decimalEnclosedCircleChinese", "ideographEnclosedCircle"), "decimalEnclosedCircle"
)


def numeral(number: int, style: str) -> str:
    """A figure as a list writes it. The styles have the names of OOXML; one that is not known here is decimal."""
    stems = _STEMS.get(_STEMS_ALIKE.get(style, style))
    match style:
        case "none":
            return ""
        case _ if number < 1 or number > 9999:
            return str(number)
        case "lowerLetter" | "upperLetter":
            letter = "abcdefghijklmnopqrstuvwxyz"[(number - 1) % 26] * min(9, (number - 1) // 26 + 1)
            return letter.upper() if style == "upperLetter" else letter
        case "lowerRoman" | "upperRoman":
            roman = _roman(number)
            return roman.upper() if style == "upperRoman" else roman
        case "decimalZero":
            return f"{number:02}"
        case "ordinal":
            special = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
            return f"{number}{'th' if number % 100 in (11, 12, 13) else special}"
        case "decimalFullWidth":
            return "".join(chr(ord(digit) + 0xFEE0) for digit in str(number))
        case "numberInDash":
            return f"- {number} -"
        case "chineseCounting" | "chineseCountingThousand" | "taiwaneseCounting" | "japaneseCounting":
            return _han(number)
        case "taiwaneseCountingThousand" | "ideographDigital" | "japaneseDigitalTenThousand":
            return _han(number) if style == "taiwaneseCountingThousand" else "".join(_HAN[int(d)] for d in str(number))
        case _ if stems is not None and number <= len(stems):
            return stems[number - 1]
        case _:
            return str(number)


def _roman(number: int) -> str:
    parts = []
    for value, letters in _ROMAN:
        count, number = divmod(number, value)
        parts.append(letters * count)
    return "".join(parts)


def _han(number: int) -> str:
    """一, 十, 十一, 二十, 一百〇一."""
    digits = str(number)
    parts = []
    for place, digit in enumerate(map(int, digits)):
        if digit:
            parts.append(_HAN[digit] + _HAN_UNITS[len(digits) - 1 - place])
        elif parts and not parts[-1].endswith(_HAN[0]):
            parts.append(_HAN[0])
    text = "".join(parts).rstrip(_HAN[0])
    return text.removeprefix("一") if 10 <= number < 20 else text


@dataclass(frozen=True, slots=True)
class ListLevel:
    """How one level of a list numbers its items."""

    style: str = "decimal"
    pattern: str = "%1."
    """`%1` stands for the number of the first level, `%2` for that of the second…"""
    start: int = 1
    restart: int | None = None
    """The level after whose items this one starts again, from 1; 0 for never, `None` for any level above."""
    is_legal: bool = False
    """Whether all numbers are decimal here, also those of the levels above."""


@dataclass(slots=True)
class Counters:
    """The numbers that the lists of a document have come to."""

    _counts: dict[str, list[int | None]] = field(default_factory=dict)
    _started: set[tuple[str, int]] = field(default_factory=set)

    def next_label(
        self, key: str, level: int, levels: Mapping[int, ListLevel], restarts: Mapping[int, int], number_id: str
    ) -> str:
        """The label of the next item. Lists with the same key go on counting for each other; `restarts` has the
        levels which a list begins anew when it is used for the first time, with their first numbers.
        """
        counts = self._counts.setdefault(key, [None] * _LEVELS)
        level = min(max(level, 0), _LEVELS - 1)
        kind = levels.get(level, ListLevel())
        if level in restarts and (number_id, level) not in self._started:
            counts[level] = restarts[level]
        else:
            before = counts[level]
            counts[level] = kind.start if before is None else before + 1
        self._started.add((number_id, level))
        for deeper in range(level + 1, _LEVELS):
            after = levels.get(deeper, ListLevel()).restart
            if after is None or after > level:
                counts[deeper] = None
        label = kind.pattern
        for place in range(_LEVELS):
            if (sign := f"%{place + 1}") in label:
                above = levels.get(place, ListLevel())
                number = counts[place] if counts[place] is not None else above.start
                style = "decimal" if kind.is_legal and above.style != "none" else above.style
                label = label.replace(sign, numeral(number or 0, style))
        return label.strip()
