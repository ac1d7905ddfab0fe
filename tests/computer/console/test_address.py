"""Where a console is reached, as people type it."""

import pytest

from a2c_smcp.computer.console.address import ConsoleAddress


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("8080", "127.0.0.1", 8080),
        ("0", "127.0.0.1", 0),
        ("localhost:1", "localhost", 1),
        ("[::1]:65535", "::1", 65535),
        ("Box.example:443", "box.example", 443),
    ],
)
def test_a_port_or_a_host_and_a_port(text: str, host: str, port: int) -> None:
    assert ConsoleAddress.parse(text) == ConsoleAddress(host, port)


@pytest.mark.parametrize(
    "text", ["", "host", "host:", ":80", "host:0x1", "host:65536", "me@host:1", "host:1/x", "::1:80", "1.2.3.4:80 "]
)
def test_what_is_neither_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HOST"):
        ConsoleAddress.parse(text)


@pytest.mark.parametrize("text", ["0.0.0.0:80", "[::]:80"])
def test_every_address_at_once_has_no_name_to_check_and_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="give the host name"):
        ConsoleAddress.parse(text)


def test_loopback_has_several_names_and_another_host_has_one() -> None:
    assert ConsoleAddress("127.0.0.1", 80).origins(tls=False) >= {"http://localhost", "http://127.0.0.1:80"}
    assert ConsoleAddress("::1", 9).origins(tls=False) == {
        "http://127.0.0.1:9",
        "http://localhost:9",
        "http://[::1]:9",
    }
    assert ConsoleAddress("box.example", 8443).origins(tls=True) == {"https://box.example:8443"}
    assert ConsoleAddress("127.0.0.2", 9).is_local and not ConsoleAddress("box.example", 9).is_local
