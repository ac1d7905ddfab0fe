"""What the readers of mail have in common: a letter, and how it is shown. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.formats.markdown import SectionedDocument
from a2c_smcp.docs.formats.text import paragraphs
from a2c_smcp.docs.words import shortened
from a2c_smcp.mcp_server.elements import Element, Heading, Image, Link, List, Text
from a2c_smcp.mcp_server.rendering import elements_text

__all__ = ["Attached", "MailLetter", "add_forms", "instant", "letter_document"]


@dataclass(frozen=True, slots=True)
class Attached:
    """A file that came with a letter. Only its name is shown."""

    name: str
    kind: str
    size: int

    @property
    def line(self) -> str:
        facts = ", ".join(filter(None, (self.kind, f"{self.size:,} bytes" if self.size else "")))
        return f"{self.name or 'without a name'} ({facts})" if facts else self.name


@dataclass(slots=True)
class MailLetter:
    """A message as it is shown."""

    subject: str = ""
    facts: list[tuple[str, str]] = field(default_factory=list)
    """From, To, Cc, Date: those that it has."""
    body: list[Element] = field(default_factory=list)
    attached: list[Attached] = field(default_factory=list)
    letters: list["MailLetter"] = field(default_factory=list)
    """Messages that came with it."""

    def add_text(self, text: str) -> None:
        self.body += [Text(part) for part in paragraphs(text.replace("\r\n", "\n").replace("\0", ""))]

    def elements(self, level: int = 1) -> Iterator[Element]:
        yield Heading(shortened(self.subject, 200) or "(no subject)", min(level, 6))
        if self.facts:
            yield Text("\n".join(f"{name}: {value}" for name, value in self.facts))
        yield from self.body
        if self.attached:
            yield Text("Attachments:")
            yield List([each.line for each in self.attached])
        for letter in self.letters:
            yield Text("An attached message:")
            yield from letter.elements(level + 1)


def letter_document(letter: MailLetter) -> SectionedDocument:
    """The document of one letter."""
    known = dict(letter.facts)
    about = "; ".join(f"{name}: {known[name]}" for name in ("From", "To", "Date") if name in known)
    return SectionedDocument(list(letter.elements()), Properties(letter.subject, summary=about))


def add_forms(letter: MailLetter, plain: str, html: Sequence[Element]) -> None:
    """Add words that a letter has in two forms: the plain text, and the HTML if much of it is not in the plain text."""
    if plain.strip():
        letter.add_text(plain)
    known = set(plain.split())
    words = set(elements_text([each for each in html if not isinstance(each, Link | Image)]).split())
    if len(words - known) * 4 > len(words) or not known:
        letter.body += html


def instant(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
