"""The text of Socket.IO 5 packets without attachments. Pure.

A packet is written without the Engine.IO digit `4` before it, such as `2/smcp,7["event",{}]`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from a2c_smcp.engine.errors import PeerError

__all__ = [
    "ACK",
    "BINARY_ACK",
    "BINARY_EVENT",
    "CONNECT",
    "CONNECT_ERROR",
    "DISCONNECT",
    "EVENT",
    "HEAD",
    "encode_packet",
    "read_data",
]

CONNECT: Final = "0"
DISCONNECT: Final = "1"
EVENT: Final = "2"
ACK: Final = "3"
CONNECT_ERROR: Final = "4"
BINARY_EVENT: Final = "5"
BINARY_ACK: Final = "6"

#: The type, attachments, namespace with its query, and ack id of a packet. The rest is JSON.
HEAD: Final = re.compile(r"([0-6])(?:(\d{1,10})-)?(?:(/[^,?]*)(?:\?[^,]*)?(?:,|$))?(\d{1,100}(?!\d))?", re.ASCII)


def encode_packet(kind: str, namespace: str, body: str = "", ack_id: int | None = None) -> str:
    """A packet whose JSON is `body`."""
    where = "" if namespace == "/" else f"{namespace},"
    return f"{kind}{where}{'' if ack_id is None else ack_id}{body}"


def read_data(body: str) -> Mapping[str, Any] | None:
    """The data of a packet that is neither an event nor an ack. Raises `PeerError` if it is not an object."""
    if not body:
        return None
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise PeerError(f"not JSON: {type(error).__name__}") from None
    if data is not None and not isinstance(data, dict):
        raise PeerError("the data of a packet must be an object")
    return data
