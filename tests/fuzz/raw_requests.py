"""Hostile HTTP requests as bytes, made from a seeded random source. Pure.

Most are a request that could be right, with something wrong in its line, its headers, its body or its length; some have
bytes taken out, doubled or replaced after that.
"""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["Aim", "conversation"]


@dataclass(frozen=True, slots=True)
class Aim:
    """What is right at a surface: requests are made from this, and from what is wrong."""

    host: str
    paths: tuple[str, ...]
    headers: Mapping[str, str]
    """With which its own session asks."""


_METHODS: Final = (
    "GET",
    "POST",
    "POST",
    "POST",
    "HEAD",
    "OPTIONS",
    "PUT",
    "PATCH",
    "TRACE",
    "CONNECT",
    "get",
    "G€T",
    "",
)
_TARGETS: Final = (
    "/",
    "*",
    "//",
    "/..//../etc/passwd",
    "/%00",
    "/%ff%fe",
    "/%",
    "/\xff",
    "/?" + "a=b&" * 40,
    "/" + "x" * 9_000,
    "http://evil.example/mcp",
    "evil.example:80",
    "/mcp?" + "%41" * 500,
    "/js/%2e%2e/app.js",
    "?",
    "",
)
_HOSTS: Final = (
    "evil.example",
    "",
    "[::1]",
    "127.0.0.1:0",
    "localhost:99999",
    "a b",
    "x" * 3_000,
    "127.1",
    "\xff",
    "[",
)
_JSON: Final = (
    "",
    "{",
    "[]",
    "[[]]",
    "null",
    "1e999",
    "NaN",
    '"\\ud800"',
    '{"a":1,"a":2}',
    "[" * 5_000,
    "[" * 900 + "]" * 900,
    '{"a":' * 300 + "1" + "}" * 300,
    "9" * 5_000,
    '"' + "x" * 50_000 + '"',
    "\ufeff{}",
)
_RPC: Final = (
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/read",
    "resources/subscribe",
    "server/discover",
    "notifications/initialized",
    "notifications/cancelled",
    "subscriptions/listen",
    "completion/complete",
    "",
    "x" * 500,
)
_ODD_HEADERS: Final = (
    "Expect: 100-continue",
    "Expect: nothing",
    "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13",
    "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk",
    "Connection: close",
    "Connection: keep-alive, close, upgrade",
    "X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-Proto: https",
    "Mcp-Session-Id: \x7f",
    "Mcp-Session-Id: " + "0" * 32,
    "Mcp-Protocol-Version: 2026-07-28",
    "Mcp-Protocol-Version: x",
    "Last-Event-ID: 1",
    "Origin: null",
    "Origin: http://evil.example",
    "Sec-Fetch-Site: cross-site",
    "Authorization: Bearer",
    "Authorization: Basic \xff\xfe",
    "X-A2C-Session: nobody",
    "Cookie: " + "a=b;" * 500,
    "Content-Encoding: gzip",
    "X-Folded: a\r\n b",
    "X-Nul: \x00",
    "No-Colon",
    ": nameless",
    " Leading: blank",
    "X-Many: 1\r\n" * 120 + "X-Last: 1",
)


def conversation(source: random.Random, aim: Aim) -> bytes:
    """What is sent over one connection: one request, or a few at once."""
    requests = b"".join(_request(source, aim) for _ in range(source.choice((1, 1, 1, 2, 4))))
    return _mangled(source, requests) if source.random() < 0.3 else requests


def _request(source: random.Random, aim: Aim) -> bytes:
    method = source.choice(("GET", "POST")) if source.random() < 0.8 else source.choice(_METHODS)
    target = source.choice(aim.paths) if source.random() < 0.8 else source.choice(_TARGETS)
    version = "HTTP/1.1" if source.random() < 0.9 else source.choice(("HTTP/1.0", "HTTP/2.0", "HTTP/9", "http/1.1", ""))
    lines = [f"{method} {target} {version}", *_hosts(source, aim)]
    own = source.random() < 0.7
    for name, value in aim.headers.items():
        if own or source.random() < 0.5:
            lines.append(f"{name}: {value}" if source.random() < 0.95 else f"{name}: {value[:-1]}x")
    lines += source.sample(_ODD_HEADERS, source.choice((0, 0, 0, 1, 2)))
    source.shuffle(lines[1:])
    body = _body(source) if method != "GET" or source.random() < 0.1 else b""
    framing, sent = _framed(source, body)
    head = "\r\n".join([*lines, *framing, "", ""])
    return head.encode("latin-1", "replace") + sent


def _hosts(source: random.Random, aim: Aim) -> list[str]:
    draw = source.random()
    if draw < 0.85:
        return [f"Host: {aim.host}"]
    if draw < 0.88:
        return []
    hosts = [source.choice(_HOSTS) for _ in range(source.choice((1, 1, 2)))]
    return [f"Host: {host}" for host in hosts]


def _framed(source: random.Random, body: bytes) -> tuple[list[str], bytes]:
    """The headers that say how long a body is, and the body as it is sent. Some of it is a lie."""
    draw = source.random()
    if draw < 0.6:
        return [f"Content-Length: {len(body)}"] if body else [], body
    if draw < 0.7:
        length = source.choice(("-1", "0", "99999999999999999999", "1e3", "x", "", str(len(body) // 2), "10, 10"))
        return [f"Content-Length: {length}"], body
    if draw < 0.75:
        return [f"Content-Length: {len(body)}", f"Content-Length: {len(body) + 1}"], body
    lines = ["Transfer-Encoding: chunked" if source.random() < 0.9 else "Transfer-Encoding: gzip, chunked, x"]
    if source.random() < 0.1:
        lines.append(f"Content-Length: {len(body)}")
    return lines, _chunked(source, body)


def _chunked(source: random.Random, body: bytes) -> bytes:
    sent, at = bytearray(), 0
    while at < len(body):
        size = source.randrange(1, 4_000)
        piece = body[at : at + size]
        at += size
        odd = source.random() < 0.05
        shown = source.choice((b"-1", b"ffffffffffffffffff", b"", b"g", b"0x10")) if odd else b"%x" % len(piece)
        extension = b";a=b" if source.random() < 0.05 else b""
        sent += shown + extension + b"\r\n" + piece + (b"" if source.random() < 0.02 else b"\r\n")
    trailer = source.choice((b"", b"", b"X-Trailer: 1\r\n", b"X: " + b"y" * 5_000 + b"\r\n"))
    return bytes(sent) + source.choice((b"0\r\n" + trailer + b"\r\n", b"0\r\n\r\n", b"0\r\n\r\n", b""))


def _body(source: random.Random) -> bytes:
    draw = source.random()
    if draw < 0.1:
        return source.randbytes(source.randrange(300))
    if draw < 0.3:
        return source.choice(_JSON).encode("utf-8", "surrogatepass")
    fields: dict[str, Any] = {"jsonrpc": "2.0", "id": source.randrange(5), "method": source.choice(_RPC)}
    fields["params"] = {
        "protocolVersion": source.choice(("2025-06-18", "2026-07-28", "x")),
        "capabilities": {},
        "clientInfo": {"name": "fuzz", "version": "1"},
        "name": source.choice(("show", "clock", "", "x")),
        "uri": source.choice(("window://com.example.shop/door", "dpe://com.example.shop/stock", "file:///", "")),
        "arguments": {"path": "fuzz", "text": "x"},
        "token": "x",
    }
    for _ in range(source.choice((0, 0, 1, 2))):
        where = source.choice((fields, fields["params"]))
        if isinstance(where, dict) and where:
            where[source.choice(list(where))] = source.choice((None, -1, 2**70, "", [], {}, [[]], "\u202e", True, 0.5))
        if not isinstance(fields["params"], dict):
            break
    text = json.dumps([fields] * source.choice((1, 3)) if source.random() < 0.1 else fields)
    if source.random() < 0.2:
        text = text.replace('"x"', source.choice(_JSON), 1)
    return text.encode("utf-8", "surrogatepass")


def _mangled(source: random.Random, data: bytes) -> bytes:
    """The same with one to three pieces taken out, doubled or replaced."""
    for _ in range(source.randrange(1, 4)):
        at, length = source.randrange(len(data) + 1), source.randrange(1, 20)
        piece = data[at : at + length]
        data = (
            data[:at]
            + source.choice((b"", piece * 2, source.randbytes(length), b"\r\n", b"\x00"))
            + data[at + length :]
        )
    return data
