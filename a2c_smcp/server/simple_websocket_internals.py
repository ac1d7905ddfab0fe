"""What we use of simple-websocket that its documentation does not offer; `test_simple_websocket_internals.py` names it.

python-engineio serves the websockets of a threaded server with it: its own wrapper has the `simple_websocket.Server` as
`ws`. A thread of that object reads into `input_buffer`, without a limit. We replace `_handle_events`, which it calls
after every read. The library is not imported here, because the websockets of other web servers do not use it.
"""

from collections.abc import Callable
from typing import Any

__all__ = ["bound_reading", "system_socket_of"]


def bound_reading(
    ws: Any, limit: Callable[[], int], on_too_large: Callable[[], None], hold: Callable[[Callable[[], list[Any]]], None]
) -> None:
    """Limit what a websocket reads ahead. `limit` returns how many bytes one message may have.

    After every read, the reader's thread calls `hold` with a function that returns the messages that wait to be taken.
    Nothing more is read until `hold` returns.
    """
    reader: Any = getattr(ws, "ws", None)
    if not hasattr(reader, "_handle_events"):
        return  # a websocket of another web server
    handle = reader._handle_events

    def not_yet_taken() -> list[Any]:
        return list(reader.input_buffer) if reader.connected else []

    def handle_events() -> Any:
        reader.max_message_size = limit()
        goes_on = handle()
        if not goes_on:
            if reader.incoming_message_len > reader.max_message_size:
                on_too_large()
            # The library wakes the waiting thread before it notes the end, so that thread could wait for ever.
            reader.connected = False
            reader.event.set()
        hold(not_yet_taken)
        return goes_on

    reader._handle_events = handle_events


def system_socket_of(ws: Any) -> Any:
    """The operating system's socket under a websocket of a threaded server; `None` if it cannot be found."""
    return getattr(getattr(ws, "ws", ws), "sock", None)
