"""The text of Engine.IO 4: packets, the payload of a poll or a POST, and the greeting. Pure."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from a2c_smcp.engine.errors import PeerError

__all__ = [
    "CLOSE",
    "MESSAGE",
    "NOOP",
    "OPEN",
    "PING",
    "PONG",
    "PROBE",
    "PROBED",
    "SEPARATOR",
    "UPGRADE",
    "Greeting",
    "join_packets",
    "split_payload",
]

OPEN: Final = "0"
CLOSE: Final = "1"
PING: Final = "2"
PONG: Final = "3"
MESSAGE: Final = "4"
UPGRADE: Final = "5"
NOOP: Final = "6"
#: What a client that polls says first on its new websocket, and the answer.
PROBE: Final = "2probe"
PROBED: Final = "3probe"
#: Between two packets of a payload.
SEPARATOR: Final = "\x1e"


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a server says first. Times are in seconds here, and in milliseconds on the wire."""

    sid: str
    upgrades: tuple[str, ...]
    ping_interval: float
    ping_timeout: float
    max_payload: int | None
    """Bytes of the largest message or POST that the server takes; `None` if it does not say."""

    def encode(self) -> str:
        said = {
            "sid": self.sid,
            "upgrades": self.upgrades,
            "pingInterval": int(self.ping_interval * 1000),
            "pingTimeout": int(self.ping_timeout * 1000),
            "maxPayload": self.max_payload,
        }
        return OPEN + json.dumps(said, separators=(",", ":"))

    @classmethod
    def read(cls, packet: str) -> "Greeting":
        """Raises `PeerError` for anything else."""
        try:
            if packet[:1] != OPEN:
                raise ValueError("it does not begin with a greeting")
            said = json.loads(packet[1:])
            most = said.get("maxPayload")
            greeting = cls(
                str(said["sid"]),
                tuple(map(str, said.get("upgrades", ()))),
                float(said["pingInterval"]) / 1000,
                float(said["pingTimeout"]) / 1000,
                most if isinstance(most, int) and not isinstance(most, bool) and most > 0 else None,
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise PeerError(f"not an Engine.IO server: {error}") from None
        if not (greeting.sid and 0 < greeting.ping_interval < 1e6 and 0 < greeting.ping_timeout < 1e6):
            raise PeerError("not an Engine.IO server: its greeting makes no sense")
        return greeting


def join_packets(packets: Iterable[str]) -> str:
    return SEPARATOR.join(packets)


def split_payload(body: bytes | bytearray, most: int) -> list[str]:
    """The packets of a payload, not looked at yet. Raises `PeerError` if there are more than `most`."""
    if not body:
        return []
    if body.count(SEPARATOR.encode()) >= most:
        raise PeerError(f"more than {most} packets in one payload")
    try:
        return str(body, "utf-8").split(SEPARATOR)
    except UnicodeDecodeError as error:
        raise PeerError(f"a payload that is not UTF-8: {error.reason}") from None
