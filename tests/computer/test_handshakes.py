"""Which handshake a server is started with next. Pure."""

from typing import Any

import pytest

from a2c_smcp.computer.mcp_clients.handshakes import Handshake
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, parse_server


def config(kind: str = "stdio", protocol: str | None = None) -> MCPServerConfig:
    parameters: dict[str, Any] = {"command": "x"} if kind == "stdio" else {"url": "http://127.0.0.1/"}
    return parse_server({"name": "a", "type": kind, "protocol": protocol, "server_parameters": parameters})


@pytest.mark.parametrize(
    ("kind", "protocol", "mode"),
    [
        ("stdio", None, "auto"),
        ("stdio", "auto", "auto"),
        ("stdio", "legacy", "legacy"),
        ("stdio", "2026-07-28", "2026-07-28"),
        ("streamable", None, "auto"),
        ("sse", None, "legacy"),
        ("sse", "auto", "legacy"),
    ],
)
def test_the_config_and_the_transport_choose_first(kind: str, protocol: str | None, mode: str) -> None:
    assert Handshake.of(config(kind, protocol)).mode == mode


def test_what_worked_last_is_used_next() -> None:
    assert Handshake().succeeded("legacy").mode == "legacy"
    assert Handshake().succeeded("auto").mode == "auto"
    assert not Handshake().succeeded("legacy").is_fallback


def test_a_fallback_that_is_refused_is_not_tried_twice() -> None:
    handshake = Handshake.of(config())
    assert handshake.may_fall_back
    fallen_back = handshake.fallen_back()
    assert (fallen_back.mode, fallen_back.is_fallback) == ("legacy", True)
    refused = fallen_back.refused()
    assert (refused.mode, refused.may_fall_back, refused.is_fallback) == ("auto", False, False)


def test_nothing_falls_back_from_what_the_config_names() -> None:
    assert not Handshake.of(config(protocol="2026-07-28")).may_fall_back


def test_an_earlier_connection_may_have_fallen_back() -> None:
    assert Handshake.of(config(), is_old=True) == Handshake().fallen_back()
