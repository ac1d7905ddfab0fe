"""What we use of mcp's client that its documentation does not offer; `test_mcp_internals.py` names each thing.

`Client` makes its session on a `Dispatcher`, and takes none: it asks its own `_connect` for one. We set that, and keep
the rest of `Client` as it is (the handshake of either era, listen streams, rounds of `input_required`).
"""

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any, cast

from mcp.client._transport import ReadStream, Transport, TransportStreams
from mcp.client.client import Client
from mcp.shared.dispatcher import Dispatcher

__all__ = ["ReadStream", "TransportStreams", "client_over"]


def client_over(way: AbstractAsyncContextManager[Dispatcher[Any]], **options: Any) -> Client:
    """A client that enters `way` when it is entered, and speaks over the dispatcher that this gives it."""

    async def connect(stack: AsyncExitStack, *_: object) -> Dispatcher[Any]:
        return await stack.enter_async_context(way)

    client = Client(cast(Transport, way), **options)
    client._connect = connect
    return client
