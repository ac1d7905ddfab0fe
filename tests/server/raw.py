"""Sockets without a client library, to send what none would."""

import base64
import os
import socket
from urllib.parse import urlsplit

__all__ = [
    "BINARY",
    "CLOSE",
    "PING",
    "TEXT",
    "connect",
    "frame",
    "frame_header",
    "is_closed",
    "joined",
    "raw_websocket",
    "receive_until",
    "send_text",
    "upgrade",
]

TEXT, BINARY, CLOSE, PING = 1, 2, 8, 9


def connect(url: str, timeout: float = 20) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=timeout)


def raw_websocket(url: str) -> socket.socket:
    """A websocket that Engine.IO has accepted."""
    sock = connect(url)
    upgrade(sock, urlsplit(url).netloc)
    return sock


def upgrade(sock: socket.socket, host: str = "localhost", query: str = "") -> None:
    key = base64.b64encode(os.urandom(16)).decode()
    sock.sendall(
        f"GET /socket.io/?EIO=4&transport=websocket{query} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
    )
    reply = b""
    while b"\r\n\r\n" not in reply:
        reply += sock.recv(1)  # and not a byte of what follows
    assert b" 101 " in reply


def joined(url: str, auth: str = "") -> socket.socket:
    """A websocket that is in the namespace; `auth` is its JSON."""
    sock = raw_websocket(url)
    receive_until(sock, b'"sid"')
    send_text(sock, f"40/smcp,{auth}")
    receive_until(sock, b"40/smcp")
    return sock


def frame(data: bytes, opcode: int = TEXT) -> bytes:
    return frame_header(len(data), opcode) + data


def frame_header(size: int, opcode: int = TEXT) -> bytes:
    """What stands before the data of a frame, masked with zeros."""
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65536:
        length = bytes([0x80 | 126]) + size.to_bytes(2, "big")
    else:
        length = bytes([0x80 | 127]) + size.to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + bytes(4)


def send_text(sock: socket.socket, text: str) -> None:
    sock.sendall(frame(text.encode()))


def receive_until(sock: socket.socket, *wanted: bytes) -> bytes:
    """What has arrived when all of these have."""
    data = b""
    while not all(each in data for each in wanted):
        chunk = sock.recv(65536)
        assert chunk, f"closed before {wanted!r}: {data!r}"
        data += chunk
    return data


def is_closed(sock: socket.socket) -> bool:
    """Wait for the peer to close; `False` when the socket's timeout passes first."""
    try:
        while sock.recv(65536):
            pass
    except TimeoutError:
        return False
    except OSError:
        pass
    return True
