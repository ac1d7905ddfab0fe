"""Makes `a2c_smcp/server/lookalikes.txt`: `python tools/lookalikes.py CONFUSABLES LICENSE`.

The two files are Unicode's: `confusables.txt` of https://www.unicode.org/Public/security/, and
https://www.unicode.org/license.txt.

Characters that look alike are one class, and so are the two cases of a letter: the Cyrillic `В` looks like `B`, so `в`
is in the class of `b`. Two characters of ASCII are in one class only if they are the two cases of a letter. What would
join two such classes is left out: Unicode's own classes for `0` and `O`, for `1`, `I`, `l` and `|`, for `m` and `rn`;
and the cases of letters that look like two, as the Greek `Ν` (an `n`) and `ν` (a `v`).
"""

import sys
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

_TARGET = Path(__file__).parents[1] / "a2c_smcp" / "server" / "lookalikes.txt"
#: What Unicode writes for a character of ASCII that stays as it is here.
_PROTOTYPES = {"rn": "m", "''": '"'}


def main(confusables: Path, license_text: Path) -> None:
    text = confusables.read_text("utf-8-sig")
    classes = Classes(list(pairs(text)))
    members = defaultdict(list)
    for source in sorted(classes.sources):
        shown = classes.shown(source)
        if shown != source:
            members[shown].append(source)
    version = next(line for line in text.splitlines() if line.startswith("# Version: ")).removeprefix("# Version: ")
    head = [
        "What each character looks like: the text that stands for it, and the characters, as code points.",
        f"Made by tools/lookalikes.py from confusables.txt {version} of Unicode, whose licence is:",
        "",
        *license_text.read_text("utf-8").strip().splitlines(),
    ]
    lines = [f"# {line}".rstrip() for line in head]
    lines += [f"{code_points(shown, '+')} {code_points(''.join(members[shown]), ' ')}" for shown in sorted(members)]
    _TARGET.write_text("\n".join(lines) + "\n", "utf-8")


def pairs(text: str) -> Iterator[tuple[str, str]]:
    """The characters of the table and what Unicode writes for them, decomposed; ASCII stays as it is."""
    for line in text.splitlines():
        if line and not line.startswith("#"):
            source, target = ("".join(chr(int(part, 16)) for part in field.split()) for field in line.split(";")[:2])
            # A name is decomposed before it is looked up, so what decomposes is never looked for.
            if not source.isascii() and decomposed(source) == source:
                yield source, _PROTOTYPES.get(target, decomposed(target))


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFKD", text)


def code_points(text: str, separator: str) -> str:
    return separator.join(f"{ord(character):X}" for character in text)


class Classes:
    """Which characters look alike."""

    def __init__(self, table: list[tuple[str, str]]) -> None:
        self._parents: dict[str, str] = {}
        self._sequences = {source: target for source, target in table if len(target) > 1}
        single = [pair for pair in table if len(pair[1]) == 1]
        # A capital that Unicode takes for an `l`, as it does with `I`, looks like the `i` that is its small letter.
        late = [(source, target) for source, target in single if target == "l" and source.casefold() != source]
        self._join((chr(code), chr(code).casefold()) for code in range(128))
        self._join(pair for pair in single if pair not in late)
        known = {character for source, target in table for character in source + target}
        cased = known | {each for character in known for each in (character.upper(), character.lower())}
        self._join(
            (character, character.casefold())
            for character in sorted(cased)
            if len(character) == len(character.casefold()) == 1 and decomposed(character) == character
        )
        self._join(late)
        self._groups: dict[str, list[str]] = defaultdict(list)
        for character in sorted(known | cased):
            self._groups[self._top(character)].append(character)
        self.sources = {character for character in cased if len(character) == 1 and not character.isascii()}

    def shown(self, character: str, seen: frozenset[str] = frozenset()) -> str:
        """What stands for a character: one of ASCII, what Unicode writes with several, or the first of its class."""
        group = self._groups.get(top := self._top(character), [character])
        if top.isascii():
            return top.casefold()
        written = sorted(self._sequences[each] for each in group if each in self._sequences)
        if written and top not in seen:
            return "".join(self.shown(each, seen | {top}) for each in written[0])
        return min(group, key=lambda each: (each.casefold() != each, each))

    def _join(self, joined: Iterable[tuple[str, str]]) -> None:
        for one, other in joined:
            tops = sorted({self._top(one), self._top(other)})
            # ASCII sorts first, so the top of a class is its character of ASCII, if it has one.
            if len(tops) == 2 and not self._are_apart(*tops):
                self._parents[tops[1]] = tops[0]

    @staticmethod
    def _are_apart(one: str, other: str) -> bool:
        return one.isascii() and other.isascii() and one.casefold() != other.casefold()

    def _top(self, character: str) -> str:
        while character in self._parents:
            character = self._parents[character]
        return character


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
