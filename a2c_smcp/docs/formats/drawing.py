"""DrawingML, which Word and PowerPoint share: paragraphs of shapes, tables, charts, SmartArt, sizes of pictures.

A value that is missing or makes no sense is left out.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.docs.formats.blocks import Item, Label
from a2c_smcp.docs.formats.numbering import Counters, ListLevel
from a2c_smcp.docs.formats.office_xml import Node, OfficePart, Relationship
from a2c_smcp.docs.formats.omml import EQUATIONS, latex
from a2c_smcp.docs.limits import FORMATS
from a2c_smcp.mcp_server.elements import Chart, Link, List, Table

__all__ = [
    "ALTERNATIVES",
    "CHART",
    "DIAGRAM",
    "DRAWING",
    "RELATION",
    "ShapeParagraph",
    "alternatives",
    "chart_of",
    "diagram_of",
    "integer",
    "paragraphs_of",
    "part_of",
    "pixels",
    "table_of",
]

_OFFICE: Final = "http://schemas.openxmlformats.org"
DRAWING: Final = f"{{{_OFFICE}/drawingml/2006/main}}"
CHART: Final = f"{{{_OFFICE}/drawingml/2006/chart}}"
DIAGRAM: Final = f"{{{_OFFICE}/drawingml/2006/diagram}}"
RELATION: Final = f"{{{_OFFICE}/officeDocument/2006/relationships}}"
_CHOICES: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
ALTERNATIVES: Final = f"{_CHOICES}AlternateContent"
_RUN, _BREAK, _FIELD = f"{DRAWING}r", f"{DRAWING}br", f"{DRAWING}fld"
_EQUATION_FRAME: Final = "{http://schemas.microsoft.com/office/drawing/2010/main}m"
_CHART_2016: Final = "{http://schemas.microsoft.com/office/drawing/2014/chartex}"
_PIXEL: Final = 9525
"""Office's unit of length: so many make a pixel of a screen with 96 dots per inch."""
_AUTO_STYLES: Final = (
    ("arabic", "decimal"),
    ("alphaLc", "lowerLetter"),
    ("alphaUc", "upperLetter"),
    ("romanLc", "lowerRoman"),
    ("romanUc", "upperRoman"),
)


def integer(text: str | None, default: int = 0) -> int:
    try:
        return int(float(text)) if text else default
    except (ValueError, OverflowError):
        return default


def pixels(size: Node | None) -> tuple[int | None, int | None]:
    """Width and height of an element with `cx` and `cy`."""
    if size is None:
        return None, None
    width, height = integer(size.get("cx")) // _PIXEL, integer(size.get("cy")) // _PIXEL
    return (width, height) if width > 0 and height > 0 else (None, None)


def part_of(picture: Node | None, relationships: Mapping[str, Relationship]) -> str | None:
    """The part that a picture of DrawingML (`embed`) or VML (`id`) is in; `None` if it is outside of the file."""
    names = () if picture is None else (picture.get(f"{RELATION}{name}") or "" for name in ("embed", "id"))
    found = next((relationships[name] for name in names if name in relationships), None)
    return None if found is None or found.is_external else found.target


def alternatives(node: Node) -> Iterator[Node]:
    """The forms of something that is there several times, for newer and for older programs. The best one first."""
    yield from node.findall(f"{_CHOICES}Choice")
    yield from node.findall(f"{_CHOICES}Fallback")


# --- words


@dataclass(frozen=True, slots=True)
class ShapeParagraph:
    """A paragraph of a shape or a cell, with the number that it has there."""

    item: Item
    links: tuple[Link, ...] = ()

    @property
    def text(self) -> str:
        return self.item.shown.strip()


def paragraphs_of(body: Node | None, relationships: Mapping[str, Relationship]) -> Iterator[ShapeParagraph]:
    """The paragraphs of a text body that are not empty, with the numbers of those that are numbered."""
    counters = Counters()
    for paragraph in () if body is None else body.iter(f"{DRAWING}p"):
        parts: list[str] = []
        links: list[Link] = []
        _inline(paragraph, relationships, parts, links)
        text = "".join(parts).replace("\xad", "").strip()
        if text:
            yield ShapeParagraph(Item(_label(paragraph, counters), text), tuple(links))


def _inline(node: Node, relationships: Mapping[str, Relationship], parts: list[str], links: list[Link]) -> None:
    for child in node:
        if child.tag == _RUN:
            text = child.findtext(f"{DRAWING}t") or ""
            parts.append(text)
            click = child.find(f"{DRAWING}rPr/{DRAWING}hlinkClick")
            target = None if click is None else relationships.get(click.get(f"{RELATION}id") or "")
            if target is not None and target.is_external and text.strip():
                links.append(Link(text.strip(), target.target))
        elif child.tag == _BREAK:
            parts.append("\n")
        elif child.tag == _FIELD:
            parts.append(child.findtext(f"{DRAWING}t") or "")
        elif child.tag == ALTERNATIVES:
            before = len(parts)
            for form in alternatives(child):
                _inline(form, relationships, parts, links)
                if any(part.strip() for part in parts[before:]):
                    break
        elif child.tag in EQUATIONS:
            parts.append(f"${latex(child)}$")
        elif child.tag == _EQUATION_FRAME:
            _inline(child, relationships, parts, links)


def _label(paragraph: Node, counters: Counters) -> Label:
    settings = paragraph.find(f"{DRAWING}pPr")
    level = 0 if settings is None else min(8, max(0, integer(settings.get("lvl"))))
    auto = None if settings is None else settings.find(f"{DRAWING}buAutoNum")
    if auto is None:
        return Label("", level, False)
    kind = auto.get("type") or "arabicPeriod"
    style = next((style for start, style in _AUTO_STYLES if kind.startswith(start)), "decimal")
    sign = f"%{level + 1}"
    ends = {"ParenBoth": f"({sign})", "ParenR": f"{sign})", "Plain": sign}
    pattern = next((shown for end, shown in ends.items() if kind.endswith(end)), f"{sign}.")
    levels = {level: ListLevel(style, pattern, integer(auto.get("startAt"), 1))}
    return Label(counters.next_label("", level, levels, {}, ""), level, True)


def table_of(table: Node, relationships: Mapping[str, Relationship]) -> tuple[Table, list[Link]]:
    """A table of a slide, with the text of merged cells once, and the links in it."""
    links: list[Link] = []
    rows = []
    for row in table.iter(f"{DRAWING}tr"):
        cells = []
        for cell in row.findall(f"{DRAWING}tc"):
            found = list(paragraphs_of(cell.find(f"{DRAWING}txBody"), relationships))
            is_covered = cell.get("hMerge") in ("1", "true") or cell.get("vMerge") in ("1", "true")
            cells.append("" if is_covered else "\n".join(each.text for each in found))
            links += [link for each in found for link in each.links]
        rows.append(cells)
    settings = table.find(f"{DRAWING}tblPr")
    has_header = settings is not None and settings.get("firstRow") in ("1", "true") and len(rows) > 1
    return (Table(rows[0], rows[1:]) if has_header else Table([], rows)), links


# --- charts


def chart_of(part: OfficePart, name: str) -> Chart | None:
    """A chart with its title, categories and values, of whatever kind it is."""
    if part.root.tag.startswith(_CHART_2016):
        return _new_chart(part.root, name)
    chart = part.root.find(f"{CHART}chart")
    area = None if chart is None else chart.find(f"{CHART}plotArea")
    if chart is None or area is None:
        return None
    plots = [plot for plot in area if plot.tag.endswith("Chart")]
    categories: list[str] = []
    series: dict[str, list[float | str | None]] = {}
    for plot in plots:
        for each in plot.findall(f"{CHART}ser"):
            categories = categories or _points(each, "cat", str) or _points(each, "xVal", str)
            label = " ".join(_points(each, "tx", str)) or each.findtext(f"{CHART}tx/{CHART}v") or "values"
            values = _points(each, "val", _value) or _points(each, "yVal", _value)
            series[_unused(label, series)] = values
    axes = [_words(axis) for axis in area.iter(f"{CHART}title")]
    title = _words(chart.find(f"{CHART}title")) or name
    kind = _kind(plots[0]) if plots else ""
    return _chart(title, kind, categories, series, [axis for axis in axes if axis])


def _new_chart(root: Node, name: str) -> Chart:
    """A chart of the kinds that came in 2016: waterfall, treemap, funnel…"""
    categories: list[str] = []
    series: dict[str, list[float | str | None]] = {}
    for data in root.iter(f"{_CHART_2016}data"):
        for text in data.iter(f"{_CHART_2016}strDim"):
            categories = categories or [each.text or "" for each in text.iter(f"{_CHART_2016}pt")]
        for figures in data.iter(f"{_CHART_2016}numDim"):
            series[_unused("values", series)] = [_value(each.text or "") for each in figures.iter(f"{_CHART_2016}pt")]
    layout = root.find(f".//{_CHART_2016}series")
    kind = "" if layout is None else (layout.get("layoutId") or "")
    title = _words(root.find(f".//{_CHART_2016}title"))
    return _chart(title or name, kind, categories, series, [])


def _chart(
    title: str, kind: str, categories: list[str], series: dict[str, list[float | str | None]], axes: list[str]
) -> Chart:
    most = FORMATS.chart_points
    lines = []
    for name, values in series.items():
        pairs = zip([*categories, *[""] * len(values)], values, strict=False)
        lines.append(f"{name}: {', '.join(f'{label} {_shown(value)}'.strip() for label, value in pairs)}")
    told = "; ".join([*axes, *lines])
    data = {"categories": categories[:most], "series": {name: values[:most] for name, values in series.items()}}
    longest = max((len(categories), *map(len, series.values())))
    facts = {"points": longest, "points_shown": most} if longest > most else {}
    if len(told) > FORMATS.chart_summary:
        told = f"{told[: FORMATS.chart_summary]}…"
    return Chart(title, told, kind, data, metadata=facts)


def _points(node: Node, name: str, read: Callable[[str], Any]) -> list[Any]:
    """The points of a part of a series, at their places."""
    part = node.find(f"{CHART}{name}")
    found: dict[int, Any] = {}
    if part is None:
        return []
    for point in part.iter(f"{CHART}pt"):
        place = integer(point.get("idx"), len(found))
        if 0 <= place < FORMATS.chart_values:
            text = point.findtext(f"{CHART}v") or ""
            # A category of several levels has a point on each: the outer one comes last, and is said first.
            found[place] = f"{text} {found[place]}" if place in found and read is str else read(text)
    empty = "" if read is str else None
    return [found.get(place, empty) for place in range(max(found, default=-1) + 1)]


def _value(text: str) -> float | str | None:
    try:
        number = float(text)
    except ValueError:
        return text or None
    return number if math.isfinite(number) else None


def _shown(value: float | str | None) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.10g}"


def _kind(plot: Node) -> str:
    name = plot.tag.rpartition("}")[2].removesuffix("Chart").removesuffix("3D")
    direction = plot.find(f"{CHART}barDir")
    return "column" if name == "bar" and (direction is None or direction.get("val", "col") == "col") else name


def _words(node: Node | None) -> str:
    """The text in a title, which is written in it or taken from a cell."""
    if node is None:
        return ""
    written = "".join(each.text or "" for each in node.iter(f"{DRAWING}t"))
    return written.strip() or " ".join(each.text or "" for each in node.iter(f"{CHART}v")).strip()


def _unused(name: str, taken: Mapping[str, Any]) -> str:
    number, shown = 1, name
    while shown in taken:
        number += 1
        shown = f"{name} ({number})"
    return shown


# --- SmartArt


def diagram_of(part: OfficePart) -> List | None:
    """The texts of a SmartArt drawing: what belongs to a point stands below it."""
    texts: dict[str, str] = {}
    for point in part.root.iter(f"{DIAGRAM}pt"):
        if point.get("type", "node") in ("node", "asst", "doc"):
            words = paragraphs_of(point.find(f"{DIAGRAM}t"), {})
            texts[point.get("modelId") or ""] = "\n".join(each.text for each in words)
    below: dict[str, list[tuple[int, str]]] = {}
    inner = set()
    for link in part.root.iter(f"{DIAGRAM}cxn"):
        source, target = link.get("srcId") or "", link.get("destId") or ""
        if link.get("type", "parOf") == "parOf" and source in texts and target in texts:
            below.setdefault(source, []).append((integer(link.get("srcOrd")), target))
            inner.add(target)
    items: list[str] = []
    seen: set[str] = set()
    for start in (each for each in texts if each not in inner):
        _list_points(start, texts, below, items, seen)
    items += [text for point, text in texts.items() if text and point not in seen]
    return List(items) if items else None


def _list_points(
    start: str,
    texts: Mapping[str, str],
    below: Mapping[str, Sequence[tuple[int, str]]],
    items: list[str],
    seen: set[str],
) -> None:
    todo = [start]
    while todo:
        point = todo.pop()
        if point in seen:
            continue
        seen.add(point)
        if texts[point]:
            items.append(texts[point])
        todo += [target for _, target in sorted(below.get(point, ()), reverse=True)]
