"""Files of formats for which the tests have no library that writes them: `.xls`, `.xlsb`, `.msg`, `.ods`, `.epub`."""

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias
from urllib.parse import quote

from tests.docs.corrupt import archive

__all__ = ["book", "compound_file", "ods", "outlook_message", "xls", "xlsb"]

Tree: TypeAlias = Mapping[str, "bytes | Tree"]
_END, _FREE = 0xFFFFFFFE, 0xFFFFFFFF
_SECTOR = 512
_SHORTEST = 4096
"""Shorter streams would stand in a table of their own. The formats here do not mind zeros at the end."""


def compound_file(tree: Tree) -> bytes:
    """A file with streams in folders, as old Office programs write it. Brothers are a chain, not a balanced tree."""
    entries: list[tuple[str, int, int, bytes]] = []
    """Name, first child, next brother, content."""
    _add_folder("Root Entry", tree, entries)
    sectors: list[bytes] = []
    chain: list[int] = []

    def place(data: bytes) -> int:
        if not data:
            return _END
        first = len(sectors)
        parts = [data[at : at + _SECTOR].ljust(_SECTOR, b"\0") for at in range(0, len(data), _SECTOR)]
        sectors.extend(parts)
        chain.extend([*range(first + 1, first + len(parts)), _END])
        return first

    directory = b""
    for number, (name, child, brother, data) in enumerate(entries):
        kind = 5 if number == 0 else 2 if child == -1 else 1
        wide = f"{name}\0".encode("utf-16-le")
        links = struct.pack("<III", _FREE, brother & _FREE, _FREE if child < 0 else child)
        directory += wide.ljust(64, b"\0") + struct.pack("<HBB", len(wide), kind, 1) + links + bytes(36)
        directory += struct.pack("<IQ", place(data) if kind == 2 else _END, len(data))
    directory_start = place(directory)
    table_count = 1 + (len(chain) + 2) // 128
    table_start = len(chain)
    chain += [0xFFFFFFFD] * table_count
    table = b"".join(struct.pack("<I", each) for each in chain).ljust(table_count * _SECTOR, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + struct.pack("<HHHHH6x", 0x3E, 3, 0xFFFE, 9, 6)
    head += struct.pack("<IIIIIIIII", 0, table_count, directory_start, 0, _SHORTEST, _END, 0, _END, 0)
    places = [*range(table_start, table_start + table_count)]
    head += b"".join(struct.pack("<I", each) for each in places).ljust(436, b"\xff")
    return head + b"".join(sectors) + table


def _add_folder(name: str, tree: Tree, entries: list[tuple[str, int, int, bytes]]) -> int:
    own = len(entries)
    entries.append((name, -2, -1, b""))
    numbers = []
    for key, value in tree.items():
        if isinstance(value, bytes):
            numbers.append(len(entries))
            entries.append((key, -1, -1, value.ljust(_SHORTEST, b"\0")))
        else:
            numbers.append(_add_folder(key, value, entries))
    for number, brother in zip(numbers, [*numbers[1:], -1], strict=True):
        entries[number] = (*entries[number][:2], brother, entries[number][3])
    entries[own] = (name, numbers[0] if numbers else -2, entries[own][2], b"")
    return own


# --- sheets


def _record(number: int, body: bytes) -> bytes:
    return struct.pack("<HH", number, len(body)) + body


def _words(text: str, length: str) -> bytes:
    return struct.pack(f"<{length}B", len(text), 1) + text.encode("utf-16-le")


def xls() -> bytes:
    """A sheet with a text, a percent, a date, an error, a number in hundredths and a comment; and a hidden sheet."""
    begin = _record(0x809, struct.pack("<HHIQ", 0x600, 5, 0, 0))
    end = _record(0x0A, b"")
    strings = "share", "年"
    formats = _record(0x41E, struct.pack("<H", 164) + _words("0.0%", "H"))
    styles = b"".join(_record(0xE0, struct.pack("<HH", 0, number) + bytes(16)) for number in (0, 164, 14))
    # The second string crosses the border of two records, and is wide only behind it.
    shared = struct.pack("<II", 2, 2) + _words(strings[0], "H") + struct.pack("<HB", 3, 0) + b"x"
    table = _record(0xFC, shared) + _record(0x3C, b"\1" + "y年".encode("utf-16-le"))
    first = begin + b"".join(
        [
            _record(0xFD, struct.pack("<HHHI", 0, 0, 0, 0)),
            _record(0xFD, struct.pack("<HHHI", 0, 1, 0, 1)),
            _record(0x203, struct.pack("<HHHd", 1, 0, 1, 0.25)),
            _record(0x203, struct.pack("<HHHd", 1, 1, 2, 43831)),
            _record(0x205, struct.pack("<HHHBB", 2, 0, 0, 7, 1)),
            _record(0x27E, struct.pack("<HHHI", 2, 1, 0, (1250 << 2) | 3)),
            _record(0x5D, struct.pack("<HHHH", 0x15, 18, 0x19, 1) + bytes(14)),
            _record(0x1B6, bytes(10) + struct.pack("<H", 5) + bytes(6)),
            _record(0x3C, b"\0check"),
            _record(0x1C, struct.pack("<HHHH", 1, 0, 0, 1) + _words("Ada", "H") + b"\0"),
            end,
        ]
    )
    second = begin + _record(0x204, struct.pack("<HHH", 0, 0, 0) + _words("secret", "H")) + end

    def globals_with(offsets: Sequence[int]) -> bytes:
        names = (("Costs", 0), ("Old", 1))
        sheets = b"".join(
            _record(0x85, struct.pack("<IBB", offset, hidden, 0) + _words(name, "B"))
            for offset, (name, hidden) in zip(offsets, names, strict=True)
        )
        return begin + formats + styles + sheets + table + end

    size = len(globals_with((0, 0)))
    return compound_file({"Workbook": globals_with((size, size + len(first))) + first + second})


def _brt(number: int, body: bytes = b"") -> bytes:
    head = bytes([number]) if number < 128 else bytes([number & 0x7F | 0x80, number >> 7])
    return head + bytes([len(body)]) + body


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb() -> bytes:
    """A sheet with a text, a percent and an error; and a hidden sheet that is empty."""
    kind = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    relations = "".join(
        f'<Relationship Id="r{number}" Type="{kind}/{name}" Target="{target}"/>'
        for number, (name, target) in enumerate(
            (("worksheet", "a.bin"), ("worksheet", "b.bin"), ("sharedStrings", "s.bin"), ("styles", "t.bin"))
        )
    )
    sheets = ((0, "r0", "Costs"), (1, "r1", "Old"))
    rows = _brt(0, struct.pack("<I", 0)) + _brt(7, struct.pack("<III", 0, 0, 0))
    rows += (
        _brt(0, struct.pack("<I", 1))
        + _brt(5, struct.pack("<IId", 0, 1, 0.25))
        + _brt(3, struct.pack("<IIB", 1, 0, 42))
    )
    return archive(
        {
            "xl/workbook.bin": b"".join(
                _brt(156, struct.pack("<II", hidden, 1) + _wide(link) + _wide(name)) for hidden, link, name in sheets
            ),
            "xl/_rels/workbook.bin.rels": f"<Relationships>{relations}</Relationships>".encode(),
            "xl/s.bin": _brt(19, b"\0" + _wide("share")),
            "xl/t.bin": _brt(617) + _brt(47, bytes(16)) + _brt(47, struct.pack("<HH", 0, 9) + bytes(12)) + _brt(618),
            "xl/a.bin": rows + _brt(146),
            "xl/b.bin": _brt(146),
        }
    )


def ods(rows: str, *, style: str = "") -> bytes:
    """A workbook with one sheet of these rows, in the XML of OpenDocument."""
    content = f"""<office:document-content xmlns:office="o" xmlns:table="t" xmlns:text="x" xmlns:style="s" xmlns:dc="d">
        <office:automatic-styles><style:style style:name="ta1"><style:table-properties table:display="false"/>
        </style:style></office:automatic-styles><office:body><office:spreadsheet>
        <table:table table:name="Costs" table:style-name="{style}">{rows}</table:table>
        </office:spreadsheet></office:body></office:document-content>"""
    return archive({"content.xml": content.encode()})


# --- letters and books


def outlook_message() -> bytes:
    """A message with a picture and another message attached."""

    def texts(**values: str) -> Iterator[tuple[str, bytes]]:
        for tag, value in values.items():
            yield f"__substg1.0_{tag[1:]}001F", value.encode("utf-16-le")

    sent = struct.pack("<HHIQ", 0x40, 0x0039, 6, 132_223_104_000_000_000)
    inner: Tree = {
        **dict(texts(_0037="The first one", _1000="It was only words.")),
        "__properties_version1.0": bytes(24),
    }
    return compound_file(
        {
            "__properties_version1.0": bytes(32) + sent,
            **dict(
                texts(_0037="年度报告", _0C1A="Ada", _5D01="ada@example.com", _0E04="Bob", _1000="See the picture.\r\n")
            ),
            "__attach_version1.0_#00000000": {
                "__properties_version1.0": bytes(8),
                **dict(texts(_3707="plan.png", _370E="image/png")),
                "__substg1.0_37010102": bytes(5000),
            },
            "__attach_version1.0_#00000001": {
                "__properties_version1.0": bytes(8),
                "__substg1.0_3701000D": inner,
            },
        }
    )


def book(chapters: Mapping[str, str], *, locked: Sequence[str] = ()) -> bytes:
    """A book with these chapters in this order, by their names."""
    items = "".join(f'<item id="i{number}" href="{quote(name)}"/>' for number, name in enumerate(chapters))
    spine = "".join(f'<itemref idref="i{number}"/>' for number in range(len(chapters)))
    parts = {
        "META-INF/container.xml": '<container><rootfiles><rootfile full-path="in/b.opf"/></rootfiles></container>',
        "in/b.opf": f"""<package><metadata xmlns:dc="d"><dc:title>The garden book</dc:title>
            <dc:subject>soil</dc:subject></metadata><manifest>{items}<item id="gone" href="gone.xhtml"/></manifest>
            <spine>{spine}<itemref idref="gone"/></spine></package>""",
        **{f"in/{name}": text for name, text in sorted(chapters.items(), reverse=True)},
    }
    if locked:
        ciphers = "".join(f'<CipherReference URI="in/{name}"/>' for name in locked)
        parts["META-INF/encryption.xml"] = f"<encryption>{ciphers}</encryption>"
    return archive({name: text.encode() for name, text in parts.items()})
