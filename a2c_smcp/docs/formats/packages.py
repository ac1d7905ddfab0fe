"""Archives of parts in XML, as sheets and books have them: their names, their relations, and what a part holds."""

import posixpath
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Final
from urllib.parse import unquote
from xml.parsers import expat

from a2c_smcp.docs.limits import Unreadable

__all__ = ["BROKEN_PART", "Package", "parse_xml"]

#: What reading a part raises, if the part is missing or broken.
BROKEN_PART: Final = (
    *(expat.ExpatError, zipfile.BadZipFile, KeyError, ValueError, OSError, EOFError, NotImplementedError),
    zlib.error,
)


class Package:
    """An archive of parts that name each other by relationships."""

    def __init__(self, file: BinaryIO) -> None:
        self._archive = zipfile.ZipFile(file)
        # Programs do not agree on case and slashes.
        self._names = {_key(name): name for name in self._archive.namelist()}

    def __contains__(self, name: str) -> bool:
        return _key(name) in self._names

    def open(self, name: str) -> BinaryIO:
        """Raises `KeyError` if there is no such part."""
        return self._archive.open(self._names[_key(name)])  # type: ignore[return-value]

    def read(self, name: str) -> bytes | None:
        """The bytes of a part; `None` if it is missing or damaged."""
        try:
            with self.open(name) as file:
                return file.read()
        except BROKEN_PART:
            return None

    def parse(
        self,
        name: str,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None] = lambda name: None,
        text: Callable[[str], None] = lambda words: None,
        *,
        one_vocabulary: bool = False,
    ) -> None:
        """Call these with what a part holds, as `parse_xml` does."""
        with self.open(name) as file:
            parse_xml(file, start, end, text, one_vocabulary=one_vocabulary)

    def ending_with(self, suffix: str) -> Iterator[str]:
        """The names of parts that end so."""
        return (name for name in self._names.values() if name.lower().endswith(suffix))

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """By their ids: the last word of each relation's kind, and the part that it leads to."""
        folder, name = posixpath.split(part)
        found: dict[str, tuple[str, str]] = {}

        def start(element: str, facts: dict[str, str]) -> None:
            if element == "Relationship" and facts.get("TargetMode") != "External":
                target = unquote(facts.get("Target", "")).replace("\\", "/")
                place = target if target.startswith("/") else posixpath.join(folder, target)
                kind = facts.get("Type", "").rpartition("/")[2]
                found[facts.get("Id", "")] = kind, posixpath.normpath(place).lstrip("/")

        place = posixpath.join(folder, "_rels", f"{name}.rels")
        if place in self:
            self.parse(place, start)
        return found


def _key(name: str) -> str:
    return name.replace("\\", "/").lstrip("/").lower()


def parse_xml(
    file: BinaryIO,
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None],
    text: Callable[[str], None],
    *,
    one_vocabulary: bool = False,
) -> None:
    """Call these with the elements of an XML file, without the prefixes of their names. Raises `expat.ExpatError`.

    `one_vocabulary` is faster. Then elements keep their prefixes if the first one has none.
    """
    names: dict[str, str] = {}

    def local(name: str) -> str:
        found = names.get(name)
        if found is None:
            found = names[name] = name.rpartition(":")[2]
        return found

    def first(name: str, facts: dict[str, str]) -> None:
        if one_vocabulary and ":" not in name:
            parser.StartElementHandler = start
            parser.EndElementHandler = end
        else:
            parser.StartElementHandler = lambda name, facts: start(local(name), facts)
            parser.EndElementHandler = lambda name: end(local(name))
        start(local(name), facts)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = first
    parser.CharacterDataHandler = text
    parser.EntityDeclHandler = _refuse_entities
    parser.ParseFile(file)


def _refuse_entities(*_: object) -> None:
    raise Unreadable("its XML defines entities, as files that are made to do harm have them")
