"""Long texts in pieces for a model, cut at the end of a line or word where possible. Pure."""

from dataclasses import dataclass
from typing import Final

__all__ = ["MODEL_SIZE", "TextPiece", "text_piece"]

#: Characters of one answer: about five thousand tokens of English, and what hosts show without cutting.
MODEL_SIZE: Final = 20_000


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text, and the offset of the next part; `None` at the end."""

    text: str
    total: int
    next: int | None

    def note(self, how: str, where: str = "") -> str:
        """A note about the characters that follow, for the end of an answer; empty if none do. `how` says how to read
        on from an offset, and `where` the characters are.
        """
        if self.next is None:
            return ""
        return f"[{self.total - self.next} characters more{where}: {how} and offset={self.next}]"

    def with_note(self, how: str) -> str:
        """The text, and below it the note about the characters that follow."""
        return self.text if self.next is None else f"{self.text}\n\n{self.note(how)}"


def text_piece(text: str, offset: int = 0, most: int = MODEL_SIZE) -> TextPiece:
    """The part of a text from `offset` on that fits. It ends with a line or a word if one ends nearby."""
    end = offset + max(1, most)
    if end >= len(text):
        return TextPiece(text[offset:], len(text), None)
    for mark in ("\n", " "):
        found = text.rfind(mark, offset + (end - offset) * 3 // 4, end)
        if found > offset:
            end = found + 1
            break
    return TextPiece(text[offset:end], len(text), end)
