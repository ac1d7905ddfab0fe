"""How the spans of a relay are linked: the request that goes on names the span of this process as its parent. Pure."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2c_smcp.server.envelopes import Message
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.tracing.trace_context import with_parent

if TYPE_CHECKING:
    from a2c_smcp.tracing.spans import OpenSpan

__all__ = ["begin_span", "sent_across", "taken_across"]

_Begin: TypeAlias = "Callable[[str, Mapping[str, Any], str | None], OpenSpan]"
_NO_SPAN: Final = nullcontext()


def begin_span(begin: _Begin, message: Message) -> "OpenSpan":
    """Begin a span of a relay. The server does not decode what it passes on: only the parent in its text is replaced.

    If the text names no parent, or names it at two places, it stays as it is.
    """
    assert message.event is not None
    parent = message.request.get("traceparent")
    span = begin(message.event, message.request, parent)
    if parent is not None and message.body is not None:
        message.body = with_parent(message.body, parent, span.traceparent)
    message.request["traceparent"] = span.traceparent
    return span


def sent_across(message: Message, process: str) -> AbstractContextManager[object]:
    """The time in which a request is sent to another server process: its span, if there are spans."""
    if (spans := TRACING.spans) is None:
        return _NO_SPAN
    return begin_span(partial(spans.sending_across, process=process), message)


def taken_across(message: Message, process: str) -> AbstractContextManager[object]:
    """The time in which a request from another server process is answered: its span, if there are spans."""
    if (spans := TRACING.spans) is None:
        return _NO_SPAN
    return begin_span(partial(spans.taking_across, process=process), message)
