"""What we use of simple-websocket that its documentation does not offer; `test_simple_websocket_internals.py` names it.

python-engineio serves the websockets of a threaded server with it: its own wrapper has the `simple_websocket.Server` as
`ws`. That one reads in a thread of its own, without end, into `input_buffer`. We replace `_handle_events`, which it
calls after every read. It is not imported here: another web server's websockets do without it.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["bound_reading", "system_socket_of"]


def bound_reading(
    ws: Any,
    limit: Callable[[], int],
    on_too_large: Callable[[], None],
    hold: Callable[[Callable[[], list[Any]]], None],
) -> None:
    """Bound what a websocket reads before it is taken: `limit` says how much one message may have.

    After every read, `hold` is called in the reader's thread, with what gives the messages that are not yet taken; as
    long as it does not return, nothing more is read.
    """
    reader: Any = getattr(ws, "ws", None)
    if not hasattr(reader, "_handle_events"):
        return  # another web server's websocket
    handle = reader._handle_events

    def not_yet_taken() -> list[Any]:
        return list(reader.input_buffer) if reader.connected else []

    def handle_events() -> Any:
        reader.max_message_size = limit()
        goes_on = handle()
        if not goes_on:
            if reader.incoming_message_len > reader.max_message_size:
                on_too_large()
            # It wakes the thread that waits for messages before it has noted this, so that one may wait for ever.
            reader.connected = False
            reader.event.set()
        hold(not_yet_taken)
        return goes_on

    reader._handle_events = handle_events


def system_socket_of(ws: Any) -> Any:
    """The operating system's socket under a websocket of a threaded server, where it can be had."""
    return getattr(getattr(ws, "ws", ws), "sock", None)
