"""Two small servers on the engine for other people's tests: `python -m tests.engine.echo engine|socket PORT`.

They do what the protocols' own suites want (docs/engine.io-protocol and docs/socket.io-protocol in the repository
socketio/socket.io): echo, with the protocol's own strictness, pings of 300 and 200 ms and 1,000,000 bytes at most.
"""

import json
import secrets
import sys
from collections.abc import Mapping
from typing import Any

import uvicorn

from a2c_smcp.engine.bounds import EngineBounds
from a2c_smcp.engine.connection import EngineApplication, EngineConnection
from a2c_smcp.engine.direct import DirectWebSocket
from a2c_smcp.engine.endpoint import Endpoint
from a2c_smcp.engine.events import Said
from a2c_smcp.engine.messages import EVENT, encode_packet

__all__ = ["BOUNDS", "SocketEcho", "config", "main"]

BOUNDS = EngineBounds(
    max_message=1_000_000,
    ping_interval=0.3,
    ping_timeout=0.2,
    connect_timeout=1.0,
    bad_packets=1,
    forgives_polls=False,
)


class SocketEcho(EngineApplication):
    """Echoes events and acks, in two namespaces."""

    namespaces = ("/", "/custom")

    async def knock(
        self, connection: EngineConnection, namespace: str, data: Mapping[str, Any] | None
    ) -> Mapping[str, Any]:
        connection.admit()
        connection.user = {**(connection.user or {}), namespace: data or {}}
        return {"sid": secrets.token_urlsafe(15)}

    def let_in(self, connection: EngineConnection, namespace: str) -> None:
        say(connection, namespace, "auth", connection.user[namespace])

    def said(self, connection: EngineConnection, event: Said) -> None:
        name, *args = json.loads(event.body)
        if name == "message":
            say(connection, event.namespace, "message-back", *args)
        elif name == "message-with-ack" and event.ack_id is not None:
            body = json.dumps(args, separators=(",", ":"))
            connection.send(connection.spaces.answer(event.namespace, event.ack_id, body))
        elif name == "leave":
            connection.send(connection.spaces.leave(event.namespace))
        elif name == "cut":
            connection.close()


def say(connection: EngineConnection, namespace: str, name: str, *args: object) -> None:
    connection.send(encode_packet(EVENT, namespace, json.dumps([name, *args], separators=(",", ":"))))


class EngineEcho(EngineApplication):
    """Echoes Engine.IO's messages: nothing of Socket.IO is looked at."""

    def opened(self, connection: EngineConnection) -> None:
        connection.admit()
        connection.spaces = _Echo(connection)  # type: ignore[assignment]


class _Echo:
    members = ("everywhere",)

    def __init__(self, connection: EngineConnection) -> None:
        self._connection = connection

    def receive(self, packet: str) -> None:
        self._connection.send(packet[1:])

    def expects_attachment(self) -> bool:
        return False


def config(application: EngineApplication, path: str, bounds: EngineBounds = BOUNDS, **options: Any) -> uvicorn.Config:
    endpoint: Endpoint | None = None

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        nonlocal endpoint
        if scope["type"] == "lifespan":
            return
        endpoint = endpoint or Endpoint(application, bounds, allows_origin=lambda *_: True)
        if scope["path"].startswith(f"/{path}/"):
            await endpoint(scope, receive, send)
        else:
            await send({"type": "http.response.start", "status": 404, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    defaults: dict[str, Any] = {"ws": DirectWebSocket, "lifespan": "off", "access_log": False, "log_level": "warning"}
    return uvicorn.Config(app, host="localhost", **{**defaults, **options})


def main(kind: str, port: int) -> None:
    application = EngineEcho() if kind == "engine" else SocketEcho()
    uvicorn.Server(config(application, f"{kind}.io", port=port)).run()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
