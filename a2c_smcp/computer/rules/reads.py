"""What agents read besides running tools, as rules see it, and which rule decides it. Pure: the time is passed in.

The pages and elements of a document count as the document. A URI may be written in several ways that mean the same: an
`allow` is tested with the plain form, and a `deny` or an `ask` with every form.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from posixpath import normpath
from typing import Final
from urllib.parse import unquote

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.globs import Glob
from a2c_smcp.utils.dpe_uri import try_parse_dpe_uri
from a2c_smcp.utils.window_uri import try_parse_window_uri

__all__ = ["ReadKind", "ReadPattern", "RuledRead", "document_of", "is_simple", "kind_of", "plain_uri"]

_SCHEME_END: Final = "://"
#: The URI of a window or a document that can be written in one way only. Most are of this kind.
_SIMPLE: Final = re.compile(r"(?:dpe://[a-z0-9.-]+/|window://[a-z0-9.-]+/(?:[\w~-][\w.~-]*/)*)[\w~-][\w.~-]*", re.ASCII)
#: `file:/path`, which names the same file as `file:///path`.
_SHORT_FILE: Final = re.compile(r"file:/(?!/)", re.IGNORECASE)


class ReadKind(StrEnum):
    """What is read. A rule may name the kinds from `RESOURCE` on; windows and documents are named by their URIs."""

    WINDOW = "window"
    DOCUMENT = "document"
    RESOURCE = "resource"
    """What an MCP server shares besides windows and documents."""
    PROMPT = "prompt"
    SKILL = "skill"
    BLOB = "blob"
    """Files that agents put here, and content that they fetch in chunks."""
    CONFIG = "config"


_NAMED: Final = (ReadKind.RESOURCE, ReadKind.PROMPT, ReadKind.SKILL, ReadKind.BLOB, ReadKind.CONFIG)
_WITH_URI: Final = frozenset({ReadKind.WINDOW, ReadKind.DOCUMENT, ReadKind.RESOURCE})


def kind_of(uri: str) -> ReadKind:
    """The kind of a resource, by the scheme of its URI."""
    match uri.partition(_SCHEME_END)[0]:
        case "window":
            return ReadKind.WINDOW
        case "dpe":
            return ReadKind.DOCUMENT
    return ReadKind.RESOURCE


@dataclass(frozen=True, slots=True)
class ReadPattern:
    """What a rule says after `reads`: a kind, or a pattern of URIs. `*` alone is everything. Raises `ValueError`."""

    text: str
    kind: ReadKind | None = field(init=False, compare=False)
    glob: Glob = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        kind = next((kind for kind in _NAMED if kind.value == self.text), None)
        if kind is None and self.text != "*" and _SCHEME_END not in self.text:
            names = ", ".join(f'"{kind}"' for kind in _NAMED)
            raise ValueError(f'must be a URI with its scheme, such as "window://*" or "dpe://host/*", or {names}, "*"')
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "glob", Glob(self.text))

    def matches(self, read: "RuledRead", *, strictly: bool) -> bool:
        """`strictly` is for an `allow`: it must be certain that the URI is one of those that are meant."""
        if self.kind is not None or self.text == "*":
            return self.kind in (None, read.kind)
        if read.kind not in _WITH_URI:
            return False
        if strictly:
            return read.is_plain and self.glob.matches(read.document)
        return any(map(self.glob.may_match, read.forms))

    def matches_simple(self, kind: ReadKind, uri: str) -> bool:
        """The same for a window or a document whose URI `is_simple`: it has one form."""
        return self.kind in (None, kind) if self.kind is not None or self.text == "*" else self.glob.matches(uri)

    @property
    def beginning(self) -> str:
        """What every URI begins with that it matches."""
        return "" if self.kind is not None or self.text == "*" else self.text.partition("*")[0].partition("?")[0]

    def may_match_below(self, prefix: str) -> bool:
        """Whether it may match a URI that begins so."""
        if self.kind is not None or self.text == "*":
            return self.kind in (None, kind_of(prefix))
        return self.beginning.startswith(prefix) or (self.glob.is_wide and prefix.startswith(self.beginning))

    def matches_all_below(self, prefix: str) -> bool:
        """Whether it certainly matches every URI that begins so."""
        if self.kind is not None or self.text == "*":
            return self.kind in (None, kind_of(prefix))
        start = self.text.removesuffix("*")
        return start != self.text and not Glob(start).is_wide and prefix.startswith(start)


@dataclass(frozen=True)
class RuledRead:
    """A read as rules see it."""

    kind: ReadKind
    name: str = ""
    """The URI, or the name of a prompt or of a skill."""
    server: str = ""
    """The MCP server that is asked; empty if none is, or if no server has it."""
    asker: Asker | None = None
    """The agent; `None` if no agent reads."""

    @cached_property
    def document(self) -> str:
        """The plain URI of the window, document or resource."""
        return self.name if is_simple(self.name) else plain_uri(self.name)

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """Every form of the URI with which a `deny` is tested."""
        if is_simple(self.name):
            return (self.name,)
        return tuple(dict.fromkeys(_forms(self.name)))

    @cached_property
    def is_plain(self) -> bool:
        """Whether the URI can mean only one thing."""
        return is_simple(self.name) or _is_plain(self.name)


def is_simple(uri: str) -> bool:
    """Whether this is the URI of a whole window or document that can be written in one way only."""
    return _SIMPLE.fullmatch(uri) is not None


@lru_cache(maxsize=2**14)
def plain_uri(uri: str) -> str:
    """The URI of the whole document or window, without its query and without percent signs."""
    if kind_of(uri) is ReadKind.DOCUMENT and (document := try_parse_dpe_uri(uri)) is not None:
        return f"dpe://{document.host}" + ("" if document.doc_ref is None else f"/{document.doc_ref}")
    if kind_of(uri) is ReadKind.WINDOW and (window := try_parse_window_uri(uri)) is not None:
        return "/".join((f"window://{window.host}", *window.path))
    return unquote(uri)


def document_of(uri: str) -> str:
    """The URI under which reads of the same document or window are counted, and asked about."""
    return uri if kind_of(uri) is ReadKind.RESOURCE else plain_uri(uri)


def _forms(uri: str) -> Iterator[str]:
    if _SHORT_FILE.match(uri):  # RFC 8089 allows both
        yield uri
        uri = f"file://{uri[len('file:') :]}"
    yield plain_uri(uri)
    for form in (uri, uri.partition("?")[0]):
        yield form
        decoded = unquote(form)
        yield decoded
        scheme, mark, rest = decoded.partition(_SCHEME_END)
        host, slash, path = rest.partition("/")
        # Programs differ in what they take as the same: letters of the host, `.` and `..`, slashes.
        normal = normpath(f"/{path.lstrip('/')}")[1:]
        named = host.lower()
        hosts = (host, named, "") if scheme.lower() == "file" and named == "localhost" else (host, named)
        for at in (scheme, scheme.lower()):
            yield from (f"{at}{mark}{each}{slash}{rest}" for each in hosts for rest in (path, normal))


def _is_plain(uri: str) -> bool:
    path = plain_uri(uri).partition(_SCHEME_END)[2].partition("/")[2]
    if any(part in ("", ".", "..") for part in path.split("/")[:-1]) or path.rpartition("/")[2] in (".", ".."):
        return False
    return kind_of(uri) is not ReadKind.RESOURCE or "%" not in uri
