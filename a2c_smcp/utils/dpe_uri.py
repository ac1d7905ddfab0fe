"""`dpe://host/doc_ref/pages/N` and `…/elements/ID` as a frozen value. Parses and builds; knows nothing of documents."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from a2c_smcp.errors import InvalidDPEURIError
from a2c_smcp.utils.uri import URIProblem, ascii_integer, check_host, encode_segment, join, split

__all__ = [
    "CATEGORIES",
    "IMAGE_SIDES",
    "ParsedDPEUri",
    "build_dpe_uri",
    "document_ref",
    "document_uri",
    "element_uri",
    "is_dpe_uri",
    "is_valid_dpe_uri",
    "page_uri",
    "parse_dpe_uri",
    "try_parse_dpe_uri",
    "with_image",
    "with_params",
]

_SCHEME = "dpe"
_FORMATS = ("json", "markdown", "text")
_DEPTHS = ("metadata", "pages")

_IMAGE = "a2c_image"

#: The fewest and the most pixels that the longest side of a picture may have.
IMAGE_SIDES = (64, 4096)

#: The kinds of element that a page may hold.
CATEGORIES = frozenset(
    {
        *("text", "heading", "list", "code", "table", "pivot_table", "chart", "diagram", "image", "formula"),
        *("link", "annotation", "header", "footer", "separator", "audio", "video", "form", "widget"),
    }
)


def is_dpe_uri(uri: str) -> bool:
    """Whether a resource claims to be a document; `parse_dpe_uri` says whether the URI is valid."""
    return uri.startswith(f"{_SCHEME}://")


@dataclass(frozen=True, slots=True)
class ParsedDPEUri:
    """The address of a document or of a part of it. `doc_ref` and `sub_path` are percent-decoded."""

    scheme: str
    host: str
    doc_ref: str | None = None
    sub_path: str | None = None
    """`pages/{N}` or `elements/{ID}`; everything after `elements/` is the id, slashes included."""
    query_params: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def level(self) -> int:
        """0 for a server's catalogue, 1 a document, 2 a page, 3 an element; -1 for any other sub-path, which
        `parse_dpe_uri` never returns.
        """
        if self.doc_ref is None:
            return 0
        if self.sub_path is None:
            return 1
        if self.sub_path.startswith("pages/"):
            return 2
        return 3 if self.sub_path.startswith("elements/") else -1

    @property
    def page_index(self) -> int | None:
        """The index of the page; `None` if this is not the URI of a page."""
        return int(self.sub_path.removeprefix("pages/")) if self.sub_path and self.level == 2 else None

    @property
    def element_id(self) -> str | None:
        """The id of the element; `None` if this is not the URI of an element."""
        return self.sub_path.removeprefix("elements/") if self.sub_path and self.level == 3 else None

    @property
    def image_side(self) -> int | None:
        """How many pixels the longest side of the wanted picture has; `None` if no picture is wanted.

        Raises `InvalidDPEURIError` for a number that is not allowed.
        """
        if (value := self.query_params.get(_IMAGE)) is None or self.level < 2:
            return None
        try:
            return int(ascii_integer(value, _IMAGE, *IMAGE_SIDES))
        except URIProblem as problem:
            raise InvalidDPEURIError(str(self), str(problem)) from None

    def build(self) -> str:
        """Write the URI; `parse_dpe_uri` reads the same value back."""
        return build_dpe_uri(self.host, self.doc_ref, self.sub_path, self.query_params)

    __str__ = build


def parse_dpe_uri(raw: str) -> ParsedDPEUri:
    """Read a `dpe://` URI. Raises `InvalidDPEURIError` (4204, also a `ValueError`) with the rule that it breaks."""
    try:
        uri = split(raw, _SCHEME)
        doc_ref, *rest = uri.segments or (None,)
        sub_path = _check_sub_path(rest[0] or "", "/".join(filter(None, rest[1:]))) if rest else None
        _check_params(uri.query)
        return ParsedDPEUri(_SCHEME, uri.host, doc_ref, sub_path, uri.query)
    except URIProblem as problem:
        raise InvalidDPEURIError(str(raw), str(problem)) from None


@lru_cache(maxsize=2**14)
def try_parse_dpe_uri(raw: str) -> ParsedDPEUri | None:
    """Read a `dpe://` URI that may be invalid; `None` if it is. The result is remembered."""
    return _parsed(raw)


# A hundred thousand documents are checked again and again, and parsing would cost more than everything else. The
# remembered values are as small as possible, and invisible to the garbage collector.
_REMEMBERED = 2**17


@lru_cache(maxsize=_REMEMBERED)
def is_valid_dpe_uri(raw: str) -> bool:
    """Whether `parse_dpe_uri` can read it."""
    return _parsed(raw) is not None


@lru_cache(maxsize=_REMEMBERED)
def document_ref(raw: str) -> tuple[str, str] | None:
    """The host and the `doc_ref` of a document's URI; `None` for every other URI."""
    uri = _parsed(raw)
    return (uri.host, uri.doc_ref) if uri is not None and uri.level == 1 and uri.doc_ref is not None else None


def document_uri(raw: str) -> str | None:
    """The URI of the document of a page or an element, as its server writes it; `None` for every other URI."""
    uri = try_parse_dpe_uri(raw)
    return "/".join(raw.partition("?")[0].split("/")[:4]) if uri is not None and uri.level >= 2 else None


def _parsed(raw: str) -> ParsedDPEUri | None:
    try:
        return parse_dpe_uri(raw)
    except InvalidDPEURIError:
        return None


def build_dpe_uri(
    host: str,
    doc_ref: str | None = None,
    sub_path: str | None = None,
    params: Mapping[str, str] | None = None,
) -> str:
    """Write a `dpe://` URI from decoded parts. Raises `InvalidDPEURIError` for parts that break a rule."""
    try:
        check_host(host)
        segments = []
        if doc_ref is not None:
            segments.append(encode_segment(doc_ref))
        if sub_path is not None:
            if doc_ref is None:
                raise URIProblem("a sub-path needs a doc_ref before it")
            kind, _, rest = sub_path.partition("/")
            segments.append(_encode_sub_path(kind, rest))
        _check_params(params or {})
        return join(_SCHEME, host, segments, params or {})
    except URIProblem as problem:
        raise InvalidDPEURIError(f"{_SCHEME}://{host}", str(problem)) from None


def page_uri(uri: str, page_index: int) -> str:
    """The URI of a page of this document."""
    return _part_uri(uri, "pages", str(page_index))


def element_uri(uri: str, element_id: str) -> str:
    """The URI of an element of this document. The id may hold any character, slashes included."""
    return _part_uri(uri, "elements", element_id)


def with_params(uri: str, params: Mapping[str, str]) -> str:
    """The same URI with these query parameters: new keys are added, existing ones replaced."""
    parsed = parse_dpe_uri(uri)
    query = build_dpe_uri(parsed.host, params={**parsed.query_params, **params}).partition("?")[2]
    return _checked(uri.partition("?")[0] + (f"?{query}" if query else ""))


def with_image(uri: str, longest: int) -> str:
    """The same URI of a page or an element, which now asks for a picture whose longest side has this many pixels."""
    least, most = IMAGE_SIDES
    if not least <= longest <= most:
        raise InvalidDPEURIError(uri, f"a picture has {least} to {most} pixels, not {longest}")
    return with_params(uri, {_IMAGE: str(longest)})


def _part_uri(uri: str, kind: str, rest: str) -> str:
    """Insert a sub-path before the query. The document's part stays byte for byte as its server wrote it."""
    if parse_dpe_uri(uri).level != 1:
        raise InvalidDPEURIError(uri, "only a document's URI can be extended by a page or an element")
    document, mark, query = uri.partition("?")
    try:
        return _checked(f"{document.removesuffix('/')}/{_encode_sub_path(kind, rest)}{mark}{query}")
    except URIProblem as problem:
        raise InvalidDPEURIError(uri, str(problem)) from None


def _checked(uri: str) -> str:
    """Check the result of a helper: two parts that are short enough may be too long together."""
    parse_dpe_uri(uri)
    return uri


def _check_sub_path(kind: str, rest: str) -> str:
    if kind == "pages":
        return f"pages/{ascii_integer(rest, 'the page number', 0)}"
    if kind == "elements":
        if not rest:
            raise URIProblem("an element id must follow elements/")
        return f"elements/{rest}"
    raise URIProblem("after the document only pages/{number} or elements/{id} may follow")


def _encode_sub_path(kind: str, rest: str) -> str:
    checked = _check_sub_path(kind, rest)
    return f"{kind}/{encode_segment(checked.removeprefix(f'{kind}/'))}"


def _check_params(params: Mapping[str, str]) -> None:
    if not all(isinstance(value, str) for value in params.values()):
        raise URIProblem("query parameters must be text")
    if (value := params.get("format")) is not None and value not in _FORMATS:
        raise URIProblem(f"format must be one of {', '.join(_FORMATS)}")
    if (value := params.get("depth")) is not None and value not in _DEPTHS:
        raise URIProblem(f"depth must be one of {', '.join(_DEPTHS)}")
    if (value := params.get("offset")) is not None:
        ascii_integer(value, "offset", 0)
    if (value := params.get("limit")) is not None:
        ascii_integer(value, "limit", 1, 100)
    if (value := params.get("categories")) is not None and (unknown := set(value.split(",")) - CATEGORIES):
        raise URIProblem(f"unknown element category {min(unknown)[:40]!r}")
