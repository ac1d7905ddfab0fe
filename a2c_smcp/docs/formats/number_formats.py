"""What a sheet shows for a number: percents, currencies, units, dates, times. Pure.

A number whose format adds something to its digits is shown with it: `25%`, `$1,234.50`, `3 kg`, `007`. It keeps six
significant digits where the sheet shows fewer, so a third is `33.3333%`. Every other number stays a number, in full.
Dates and times are shown in ISO 8601, because `1/2/2020` has two meanings.
"""

import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from a2c_smcp.mcp_server.elements import Cell

__all__ = ["BUILT_IN", "shown_number"]

#: The formats that have a number and no code in the file. Those between are the same in other languages.
BUILT_IN: Final = {
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    **dict.fromkeys((14, 15, 16, 17, *range(27, 32), 36, *range(50, 55), 57, 58), "yyyy-mm-dd"),
    **dict.fromkeys((18, 20, 32, 34, 55), "hh:mm"),
    **dict.fromkeys((19, 21, 33, 35, 56), "hh:mm:ss"),
    22: "yyyy-mm-dd hh:mm",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
}
_TOKEN: Final = re.compile(
    r'"([^"]*)"?|\\(.)|\[\$([^\]-]*)[^\]]*\]|\[(h+|m+|s+)\]|\[([<>=]+)\s*(-?[\d.]+)\]|\[[^\]]*\]|[_*].|am/pm|a/p'
    r"|([0#?][0#?,]*(?:\.[0#?]*)?,*|\.[0#?]+|general)|([ymdhseb]+)|(E[+-]0*)|(%)|(.)",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Section:
    """One of the up to four parts of a format."""

    before: str = ""
    after: str = ""
    digits: str = ""
    percent: bool = False
    plain: bool = False
    """Whether the number itself says it all."""
    date: bool = False
    time: bool = False
    seconds: bool = False
    elapsed: bool = False
    condition: tuple[str, float] | None = None


def shown_number(value: float, code: str, *, since_1904: bool = False) -> Cell:
    """A number as its format shows it: a number, or a text."""
    plain = int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
    if isinstance(plain, float) and not math.isfinite(plain):
        return str(plain)
    if not code or code == "General" or code == "@":
        return plain
    section, sign = _chosen(_sections(code), value)
    if section.date or section.time or section.elapsed:
        return _shown_date(value, section, since_1904)
    if section.plain or (value == 0 and section.digits and "0" not in section.digits):
        return plain
    return _shown_digits(value, section, sign)


@lru_cache(2048)
def _sections(code: str) -> tuple[_Section, ...]:
    parts: list[str] = [""]
    for match in _TOKEN.finditer(code[:1000]):
        if match[0] == ";":
            parts.append("")
        else:
            parts[-1] += match[0]
    return tuple(map(_section, parts[:4]))


def _section(code: str) -> _Section:
    texts = ["", ""]
    digits = letters = ""
    percent = elapsed = odd = False
    condition = None
    for match in _TOKEN.finditer(code):
        quoted, escaped, currency, span, compare, limit, number, dates, power, sign, other = match.groups()
        if quoted is not None or escaped or currency or other:
            texts[bool(digits)] += quoted or escaped or currency or other or ""
        elif span:
            elapsed = True
            letters += span.lower()
        elif compare:
            condition = compare, float(limit)
        elif dates:
            letters += dates.lower()
        elif number:
            odd = odd or bool(digits)  # a fraction, or a mask
            digits = number
        elif sign:
            percent = True
            texts[bool(digits)] += sign
        elif power:
            odd = True
    before, after = texts[0].lstrip(), texts[1].rstrip()
    if set(letters) & set("ymdhs"):
        minutes = "m" in letters and ("h" in letters or "s" in letters)
        date = any(each in letters for each in "yd") or ("m" in letters and not minutes and not elapsed)
        return _Section(date=date, time="h" in letters or "s" in letters, seconds="s" in letters, elapsed=elapsed)
    tells = any(not (each.isspace() or each in "()-+,.'/:!") for each in before + after)
    padded = re.match(r"0[0,]", digits) is not None and re.match(r"[0,]*0,0", digits) is None
    return _Section(before, after, digits, percent, odd or not (tells or padded), condition=condition)


def _chosen(sections: tuple[_Section, ...], value: float) -> tuple[_Section, str]:
    """The section for this value, and the sign that stands before its digits."""
    for section in sections:
        if section.condition is not None and _holds(section.condition, value):
            return section, "-" if value < 0 else ""
    if any(section.condition for section in sections):
        rest = [section for section in sections if section.condition is None]
        return (rest or [_Section(plain=True)])[0], "-" if value < 0 else ""
    if value < 0 and len(sections) > 1:
        return sections[1], ""
    if value == 0 and len(sections) > 2:
        return sections[2], ""
    return sections[0], "-" if value < 0 else ""


def _holds(condition: tuple[str, float], value: float) -> bool:
    compare, limit = condition
    return (
        ("=" in compare and value == limit and compare != "<>")
        or (">" in compare and value > limit)
        or ("<" in compare and value < limit)
    )


def _shown_digits(value: float, section: _Section, sign: str) -> str:
    if not section.digits:
        return f"{section.before}{section.after}"
    if section.digits.lower() == "general":
        return f"{sign}{section.before}{abs(value):.15g}{section.after}"
    whole, _, part = section.digits.rstrip(",").partition(".")
    number = abs(value) * (100 if section.percent else 1)
    number /= 1000 ** (len(section.digits) - len(section.digits.rstrip(",")))
    # The format asks for some digits. A few more are kept: an agent computes with what it reads.
    significant = 6 - (math.floor(math.log10(number)) + 1 if number else 0)
    decimals = max(len(part), min(significant, len(part) + 4), 0)
    head, _, tail = f"{number:,.{min(decimals, 30)}f}".partition(".")
    tail = tail.rstrip("0").ljust(len(part.rstrip("#?")), "0")
    head = head if "," in whole else head.replace(",", "")
    least = whole.replace(",", "").count("0")
    return f"{sign}{section.before}{head.zfill(least)}{'.' if tail else ''}{tail}{section.after}"


def _shown_date(value: float, section: _Section, since_1904: bool) -> Cell:
    if section.elapsed:
        seconds = round(abs(value) * 86400)
        shown = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"-{shown}" if value < 0 else shown
    if not 0 <= value < 2_958_466:  # the end of the year 9999: a sheet shows nothing there
        return value
    if not since_1904 and section.date and value < 1:
        section = _Section(time=True, seconds=section.seconds) if value % 1 else _Section(plain=True)
        if section.plain:
            return int(value)
    if int(value) == 60 and section.date and not since_1904:
        return "1900-02-29"
    # The calendar of sheets has a 29th of February 1900. That day did not exist.
    start = datetime(1904, 1, 1) if since_1904 else datetime(1899, 12, 31 if value < 60 else 30)
    try:
        at = start + timedelta(milliseconds=round(value * 86_400_000))
    except OverflowError:
        return value
    clock = at.strftime("%H:%M:%S") if section.seconds or at.second else at.strftime("%H:%M")
    if section.date and section.time:
        return f"{at.date().isoformat()} {clock}"
    return at.date().isoformat() if section.date else clock
