"""Which names look alike to the people who read them. Pure, but for its table, which is read once.

The table is Unicode's of confusable characters, as `tools/lookalikes.py` has made it.
"""

import re
import unicodedata
from functools import cache
from importlib.resources import files
from typing import Final

__all__ = ["skeleton"]

#: What a name may have without showing it: joiners, and the selectors behind a symbol.
_UNSEEN: Final = dict.fromkeys(map(ord, "\u200c\u200d\ufe0e\ufe0f"))
#: A dot above a letter that has one already.
_SECOND_DOT: Final = re.compile("(?<=[ij])\u0307")


def skeleton(name: str) -> str:
    """What two names have in common exactly if they look alike: in width, in case, or by letters of other alphabets.

    Two plain names, of ASCII alone, look alike only if they differ in nothing but case: `I`, `l` and `1` stay apart,
    and so do `O` and `0`.
    """
    if name.isascii():
        return name.lower()
    table = _table()
    # A capital may look like another letter than its small letter does, so the table comes first, and once more.
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
