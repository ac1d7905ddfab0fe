"""Results of tools as messages for a model: text, images and documents in the blocks of each API. Pure."""

import base64
import json
from binascii import Error as Base64Error
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import mcp_types as types

from a2c_smcp.agent.llm.styles import Style, StyleRules, ToolRequest, rules_of
from a2c_smcp.utils.text import cut, printable, well_formed

__all__ = ["Media", "ShownResult", "result_messages", "shown_results"]

#: How files of these types begin. A service refuses a request whose bytes are not of the type that it names. It then
#: refuses every later request, too, because each one has the whole conversation in it.
_BEGINNINGS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
)


@dataclass(frozen=True, slots=True)
class Media:
    """An image or a document, as base64."""

    kind: Literal["image", "document"]
    mime_type: str
    data: str
    name: str


@dataclass(frozen=True, slots=True)
class ShownResult:
    """What a model sees of a result."""

    text: str
    media: tuple[Media, ...] = ()
    is_error: bool = False


def shown_results(results: Sequence[types.CallToolResult], style: Style, *, images: bool = True) -> list[ShownResult]:
    """What a model sees of the results of one turn, which share the room for images and documents. What the API does
    not take is mentioned in words. Without `images`, all images and documents are mentioned in words.
    """
    room = _MediaRoom(rules_of(style), images)
    return [_shown(result, room) for result in results]


def _shown(result: types.CallToolResult, room: "_MediaRoom") -> ShownResult:
    texts, media = list[str](), list[Media]()
    for item in result.content:
        match item:
            case types.TextContent():
                texts.append(item.text)
            case types.ImageContent():
                room.add(item.mime_type, item.data, "image", texts, media)
            case types.AudioContent():
                texts.append(_not_shown(item.mime_type, item.data, "it is audio"))
            case types.ResourceLink():
                texts.append(_link(item))
            case types.EmbeddedResource(resource=types.TextResourceContents() as text):
                texts.append(f"[{printable(cut(text.uri, 300))}]\n{text.text}")
            case types.EmbeddedResource(resource=types.BlobResourceContents() as blob):
                room.add(blob.mime_type or "", blob.blob, _last_part(blob.uri), texts, media)
    if not texts and not media and result.structured_content is not None:
        texts.append(json.dumps(result.structured_content, ensure_ascii=False))
    return ShownResult(well_formed("\n".join(texts)), tuple(media), result.is_error)


@dataclass(slots=True)
class _MediaRoom:
    """The room for images and documents that is left in a turn."""

    rules: StyleRules
    images: bool
    taken: list[int] = field(default_factory=list)

    def add(self, mime_type: str, data: str, name: str, texts: list[str], media: list[Media]) -> None:
        """Add an image or a document to the media, or a note about it to the texts."""
        found = self._checked(mime_type, data, name)
        if isinstance(found, str):
            texts.append(_not_shown(mime_type, data, found))
        else:
            self.taken.append(len(data))
            media.append(found)

    def _checked(self, mime_type: str, data: str, name: str) -> Media | str:
        """The media, or why it is not shown."""
        rules = self.rules
        if not self.images:
            return "only text is shown here"
        if mime_type not in rules.images | rules.documents:
            return "this type is not taken here"
        if len(data) > rules.media:
            return "it is too large: ask for a smaller one"
        if len(self.taken) >= rules.media_blocks or len(data) > rules.all_media - sum(self.taken):
            return "there are too many: ask for fewer at a time"
        try:
            found = _type_of(base64.b64decode(data, validate=True))
        except (Base64Error, ValueError):
            return "it is not base64"
        # A JPEG that is called a PNG is shown as what it is.
        if found not in rules.images | rules.documents:
            return "its bytes are not of this type"
        return Media("image" if found in rules.images else "document", found, data, name)


def _type_of(data: bytes) -> str:
    """The type of a file, by its first bytes; empty if the type is not known here."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), "")


def _not_shown(mime_type: str, data: str, why: str) -> str:
    return f"[{printable(cut(mime_type, 100)) or 'bytes'}, {len(data) * 3 // 4} bytes, not shown: {why}]"


def _link(link: types.ResourceLink) -> str:
    facts = ", ".join(printable(cut(each, 200)) for each in (link.title or link.name, link.mime_type) if each)
    how = "" if link.uri.startswith(("http://", "https://")) else ": read_more with this as source reads it"
    return f"[link to {facts}: {printable(cut(link.uri, 2000))}{how}]"


def _last_part(uri: str) -> str:
    return printable(cut(uri.partition("?")[0].rstrip("/").rpartition("/")[2], 100)) or "document"


# --- in each API's shape


def result_messages(style: Style, results: Sequence[tuple[ToolRequest, ShownResult]]) -> list[Any]:
    """The messages that answer all calls of one message, in the order of the calls."""
    match style:
        case "openai":
            return _openai(results)
        case "openai-responses":
            return [
                {"type": "function_call_output", "call_id": call.id, "output": _responses_output(shown)}
                for call, shown in results
            ]
        case "anthropic":
            return [{"role": "user", "content": [_anthropic_block(call, shown) for call, shown in results]}]
        case "gemini":
            return [{"role": "user", "parts": [_gemini_part(call, shown) for call, shown in results]}]


def _openai(results: Sequence[tuple[ToolRequest, ShownResult]]) -> list[Any]:
    messages: list[Any] = [
        {"role": "tool", "tool_call_id": call.id, "content": _said(_with_media_named(shown))} for call, shown in results
    ]
    # A tool's message takes text only. Images follow in a message of the user, after the last answer.
    parts: list[Any] = []
    for call, shown in results:
        if shown.media:
            parts.append({"type": "text", "text": f"What the call {call.id} of {call.name} returned beside its text:"})
            parts += [_openai_part(media) for media in shown.media]
    return [*messages, {"role": "user", "content": parts}] if parts else messages


def _with_media_named(shown: ShownResult) -> ShownResult:
    if not shown.media:
        return shown
    note = f"[{len(shown.media)} images or documents follow in the next message]"
    return replace(shown, text=f"{shown.text}\n{note}".strip())


def _openai_part(media: Media) -> dict[str, Any]:
    url = f"data:{media.mime_type};base64,{media.data}"
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"filename": _file_name(media), "file_data": url}}


def _responses_output(shown: ShownResult) -> str | list[dict[str, Any]]:
    if not shown.media:
        return _said(shown)
    has_text = shown.text.strip() or shown.is_error
    parts: list[dict[str, Any]] = [{"type": "input_text", "text": _said(shown)}] if has_text else []
    for media in shown.media:
        url = f"data:{media.mime_type};base64,{media.data}"
        if media.kind == "image":
            parts.append({"type": "input_image", "image_url": url})
        else:
            parts.append({"type": "input_file", "filename": _file_name(media), "file_data": url})
    return parts


def _anthropic_block(call: ToolRequest, shown: ShownResult) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if shown.text.strip() or not shown.media:
        content.append({"type": "text", "text": _said(shown, error="")})
    for media in shown.media:
        source = {"type": "base64", "media_type": media.mime_type, "data": media.data}
        content.append({"type": media.kind, "source": source})
    block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
    return {**block, "is_error": True} if shown.is_error else block


def _gemini_part(call: ToolRequest, shown: ShownResult) -> dict[str, Any]:
    response: dict[str, Any] = {"name": call.name}
    if call.has_own_id:
        response["id"] = call.id
    response["response"] = {"error" if shown.is_error else "output": _said(shown, error="")}
    if shown.media:
        # The SDK wants bytes here, and encodes them itself.
        response["parts"] = [
            {"inline_data": {"mime_type": media.mime_type, "data": base64.b64decode(media.data)}}
            for media in shown.media
        ]
    return {"function_response": response}


def _said(shown: ShownResult, error: str = "Error: ") -> str:
    """The text. It is never empty: some APIs refuse that, and some models ask again."""
    text = shown.text if shown.text.strip() else "(no text)"
    return error + text if shown.is_error else text


def _file_name(media: Media) -> str:
    return media.name if media.name.lower().endswith(".pdf") else f"{media.name}.pdf"
