"""Which names look alike to people. Pure, except that its table is read once from a file.

`tools/lookalikes.py` makes the file from Unicode's table of confusable characters.
"""

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["skeleton"]

#: Characters that a name may have and that do not show: joiners, and the selectors after a symbol.
_UNSEEN: Final = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))
#: A dot above a letter that has a dot already.
_SECOND_DOT: Final = re.compile("(?<=[ij])\u0307")


def skeleton(name: str) -> str:
    """A text that names share if they look alike, and only then. Such names differ only in width, case or alphabet.

    Two names in plain ASCII look alike only if they differ in case alone. `I`, `l` and `1` stay apart, and so do `O`
    and `0`.
    """
    if name.isascii():
        return name.lower()
    table = _table()
    # A capital letter may look like another letter than its small form does. So the table is used before and after.
    seen = _decomposed(name.translate(_UNSEEN)).translate(table)
    return _SECOND_DOT.sub("", _decomposed(_decomposed(seen.casefold()).translate(table)))


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFKD", text)


@cache
def _table() -> dict[int, str]:
    text = files("a2c_smcp.server").joinpath("lookalikes.txt").read_text("utf-8")
    table = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            shown, *members = line.split()
            look = "".join(chr(int(part, 16)) for part in shown.split("+"))
            table.update(dict.fromkeys((int(part, 16) for part in members), look))
    return table
