"""What a page is made of: one frozen value for each of the nineteen categories.

    Element
    ├── Text  Heading  List  Code                       words
    ├── Table  PivotTable  Chart                        figures
    ├── Diagram  Image  Formula  Audio  Video           pictures and sounds
    ├── Link  Annotation  Header  Footer  Separator     what stands around them
    └── Form  Widget                                    what a person fills in or presses

Pure. An element checks itself when it is made, and knows its JSON; `rendering` knows its Markdown and its plain text.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from types import MappingProxyType
from typing import Any, ClassVar, TypeAlias

__all__ = [
    "ELEMENT_TYPES",
    "Annotation",
    "Audio",
    "Cell",
    "Chart",
    "Code",
    "Diagram",
    "Element",
    "Footer",
    "Form",
    "Formula",
    "Header",
    "Heading",
    "Image",
    "Link",
    "List",
    "PivotTable",
    "Separator",
    "Table",
    "Text",
    "Video",
    "Widget",
]

Cell: TypeAlias = str | int | float | bool | None

_SUMMARY_LENGTH = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """What every element has. Make one of the nineteen kinds; put it into a `Page`.

    The fields here are given by name. A value that cannot be shown raises `ValueError` or `TypeError` with a sentence.
    """

    category: ClassVar[str] = ""
    _summed_up_by: ClassVar[tuple[str, ...]] = ()
    """The fields that can stand for a missing summary: the first one with a value. `()` means the kind's first
    field.
    """

    element_id: str = ""
    """Unique in its document. Left empty, the element is known by its place: `p<page>-<number>`."""
    summary: str = ""
    """One line for a list of elements. Left empty, it is taken from the content."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Anything else that a program may want to know: shown when the element is read by its id."""
    bbox: Sequence[float] | None = field(default=None, hash=False)
    """Where it is on its page: left, top, right and bottom in points, from the top left corner."""

    def __post_init__(self) -> None:
        if not self.category:
            raise TypeError("an Element is made by one of its nineteen kinds, such as Text or Table")
        for item in fields(self):
            try:
                _CHECKS.get(item.name, _check_text)(getattr(self, item.name))
            except (TypeError, ValueError) as error:
                article = "an" if self.category[0] in "aeiou" else "a"
                raise type(error)(f"the {item.name} of {article} {self.category} {error}") from None

    @property
    def content(self) -> dict[str, Any]:
        """The fields of this kind, as JSON values. Fields that were left empty are absent."""
        return {
            item.name: _as_json(value)
            for item in self._own_fields()
            if (value := getattr(self, item.name)) not in (None, "", {}, ()) or _required(item)
        }

    @property
    def brief(self) -> str:
        """The summary, or one made of the content: one line of at most 120 characters."""
        names = self._summed_up_by or [item.name for item in self._own_fields()[:1]]
        words = self.summary or next(filter(None, (getattr(self, name) for name in names)), "")
        text = " ".join((words if isinstance(words, str) else ", ".join(words)).split())
        return text if len(text) <= _SUMMARY_LENGTH else text[: _SUMMARY_LENGTH - 1] + "…"

    def _own_fields(self) -> list[Field[Any]]:
        return [item for item in fields(self) if item.name not in _COMMON]


def _required(item: Field[Any]) -> bool:
    return item.default is MISSING and item.default_factory is MISSING


_COMMON = {item.name for item in fields(Element)}


@dataclass(frozen=True, slots=True)
class Text(Element):
    """A paragraph, or several. Markdown in it stays Markdown."""

    category: ClassVar[str] = "text"

    text: str


@dataclass(frozen=True, slots=True)
class Heading(Element):
    """A heading of `level` 1 to 6."""

    category: ClassVar[str] = "heading"

    text: str
    level: int = 1


@dataclass(frozen=True, slots=True)
class List(Element):
    """A list of texts, with numbers if it is `ordered`, or with labels of its own, such as `a)` or `2.1`."""

    category: ClassVar[str] = "list"

    items: Sequence[str]
    ordered: bool = False
    labels: Sequence[str] = ()
    """The label of each item. An item with an empty one has a bullet."""


@dataclass(frozen=True, slots=True)
class Code(Element):
    """Source text, with the name of its `language` if that is known."""

    category: ClassVar[str] = "code"

    text: str
    language: str = ""


@dataclass(frozen=True, slots=True)
class Table(Element):
    """Rows of plain values. A row may be shorter or longer than the headers."""

    category: ClassVar[str] = "table"

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]] = ()


@dataclass(frozen=True, slots=True)
class PivotTable(Element):
    """A table of figures that were summed up from a `source`."""

    category: ClassVar[str] = "pivot_table"

    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]] = ()
    source: str = ""
    """Where its figures come from."""


@dataclass(frozen=True, slots=True)
class Chart(Element):
    """A chart: its title, what it shows in words, and its figures."""

    category: ClassVar[str] = "chart"

    title: str
    data_summary: str = ""
    """What it shows, in words."""
    kind: str = ""
    """bar, line, pie…"""
    data: Any = None
    """The figures, in any JSON."""


@dataclass(frozen=True, slots=True)
class Diagram(Element):
    """A drawing of boxes and arrows: what it shows in words, and its source text if it has one."""

    category: ClassVar[str] = "diagram"

    description: str
    source: str = ""
    """Its text, where it has one: Mermaid, DOT…"""
    language: str = ""


@dataclass(frozen=True, slots=True)
class Image(Element):
    """A picture: where it is, or what it shows, or both."""

    category: ClassVar[str] = "image"
    _summed_up_by: ClassVar[tuple[str, ...]] = ("description", "alt")

    alt: str = ""
    url: str = ""
    description: str = ""
    width: int | None = None
    height: int | None = None


@dataclass(frozen=True, slots=True)
class Formula(Element):
    """A formula in LaTeX."""

    category: ClassVar[str] = "formula"

    latex: str


@dataclass(frozen=True, slots=True)
class Link(Element):
    """A link to a URL."""

    category: ClassVar[str] = "link"
    _summed_up_by: ClassVar[tuple[str, ...]] = ("text", "url")

    text: str
    url: str


@dataclass(frozen=True, slots=True)
class Annotation(Element):
    """A remark about the content: a comment, or a note under a slide."""

    category: ClassVar[str] = "annotation"

    text: str
    author: str = ""


@dataclass(frozen=True, slots=True)
class Header(Element):
    """What stands above every page."""

    category: ClassVar[str] = "header"

    text: str


@dataclass(frozen=True, slots=True)
class Footer(Element):
    """What stands below every page."""

    category: ClassVar[str] = "footer"

    text: str


@dataclass(frozen=True, slots=True)
class Separator(Element):
    """A line between two parts of a page."""

    category: ClassVar[str] = "separator"


@dataclass(frozen=True, slots=True)
class Audio(Element):
    """A recording: where it is, and what is said in it."""

    category: ClassVar[str] = "audio"

    title: str
    url: str = ""
    transcript: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Video(Element):
    """A film: where it is, and what is said in it."""

    category: ClassVar[str] = "video"

    title: str
    url: str = ""
    transcript: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Form(Element):
    """Fields that a person fills in, each with its value or `None`."""

    category: ClassVar[str] = "form"

    title: str
    values: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True)
class Widget(Element):
    """Something else that a page holds: a button, a map, a calendar."""

    category: ClassVar[str] = "widget"

    kind: str
    state: Mapping[str, Any] = field(default_factory=dict, hash=False)


#: The class of each category.
ELEMENT_TYPES: Mapping[str, type[Element]] = MappingProxyType(
    {
        cls.category: cls
        for cls in (
            *(Text, Heading, List, Code, Table, PivotTable, Chart, Diagram, Image, Formula),
            *(Link, Annotation, Header, Footer, Separator, Audio, Video, Form, Widget),
        )
    }
)


def _check_json(value: Any) -> None:
    """Raise `ValueError` for a value that JSON cannot carry."""
    for part in _parts(value):
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(f"must be JSON, which has no {part!r}")
        if not isinstance(part, str | int | float | bool | None):
            raise ValueError(f"must be JSON, which has no {type(part).__name__}")


def _parts(value: Any) -> Iterator[Any]:
    """The plain values inside a nested one, keys included."""
    todo = [value]
    while todo:
        match todo.pop():
            case Mapping() as mapping:
                todo += [*mapping.values()]
                if not all(isinstance(key, str) for key in mapping):
                    yield object()
            case list() | tuple() as sequence:
                todo += sequence
            case plain:
                yield plain


def _as_json(value: Any) -> Any:
    match value:
        case Mapping():
            return {key: _as_json(inner) for key, inner in value.items()}
        case str():
            return value
        case Sequence():
            return [_as_json(inner) for inner in value]
        case _:
            return value


def _check_text(value: Any) -> None:
    if not isinstance(value, str):
        raise TypeError(f"is text, not {type(value).__name__}")


def _check_level(value: Any) -> None:
    if type(value) is not int or not 1 <= value <= 6:
        raise ValueError(f"is an integer from 1 to 6, not {value!r}")


def _check_pixels(value: Any) -> None:
    if value is not None and (type(value) is not int or value < 0):
        raise ValueError(f"is a number of pixels, not {value!r}")


def _check_list(value: Any) -> None:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"are a list, not {type(value).__name__}")


def _check_texts(value: Any) -> None:
    _check_list(value)
    for item in value:
        if not isinstance(item, str):
            raise TypeError(f"are a list of str, not of {type(item).__name__}")


def _check_rows(rows: Any) -> None:
    _check_list(rows)
    for row in rows:
        if isinstance(row, str) or not isinstance(row, Sequence):
            raise TypeError(f"are lists of cells, not {type(row).__name__}")
        for cell in row:
            if not isinstance(cell, str | int | float | bool | None):
                raise TypeError(f"have cells that are plain values, not {type(cell).__name__}")
            if isinstance(cell, float) and not math.isfinite(cell):
                raise ValueError(f"must be JSON, which has no {cell!r}")


def _check_box(value: Any) -> None:
    if value is None:
        return
    _check_list(value)
    if len(value) != 4 or not all(isinstance(each, int | float) and math.isfinite(each) for each in value):
        raise ValueError(f"is four numbers, not {value!r}")


def _check_nothing(value: Any) -> None:
    pass


#: How the value of a field is checked, by the name of the field. All other fields are text.
_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "metadata": _check_json,
    "bbox": _check_box,
    "level": _check_level,
    "items": _check_texts,
    "labels": _check_texts,
    "ordered": _check_nothing,
    "headers": _check_texts,
    "rows": _check_rows,
    "data": _check_json,
    "width": _check_pixels,
    "height": _check_pixels,
    "seconds": _check_json,
    "values": _check_json,
    "state": _check_json,
}
