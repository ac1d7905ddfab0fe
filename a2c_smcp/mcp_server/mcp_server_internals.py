"""What the kit uses of mcp's server that mcp's documentation does not offer; `test_mcp_server_internals.py` names each
thing, so that an upgrade of mcp fails there.

- `FuncMetadata` and `func_metadata` are mcp's own reading of a typed function: its arguments, its schemas, its result.
- `connection_of`: a session's state lives in its connection until that ends, and a handler is given the session alone.
- `SUBSCRIPTION_ID_META_KEY` marks the notifications of a listen stream.
- Over HTTP mcp asks its server for `create_initialization_options()` itself: `server._LowLevelServer` overrides it.
"""

from mcp.server.connection import Connection
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from mcp.server.session import ServerSession
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

__all__ = ["SUBSCRIPTION_ID_META_KEY", "Connection", "FuncMetadata", "connection_of", "func_metadata"]


def connection_of(session: ServerSession) -> Connection:
    """The connection of a request."""
    return session._connection
