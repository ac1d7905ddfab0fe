"""Who may ask over HTTP: Host, Origin and the bearer token."""

import pytest

from a2c_smcp.mcp_server.http import Gate


def status(gate: Gate, **headers: str) -> int | None:
    refusal = gate.refusal(headers.items())
    return None if refusal is None else refusal.status


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8000", "127.0.0.1:1", "127.1.2.3", "[::1]:80", "[::1]", "LOCALHOST."]
)
def test_loopback_comes_in(host: str) -> None:
    assert status(Gate(), host=host) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "example.com",
        "127.0.0.1.example.com",
        "localhost.example.com:80",
        "10.0.0.1",
        "127.0.0.1:x",
        "localhost:80:80",
    ],
)
def test_another_name_for_this_machine_is_refused(host: str) -> None:
    assert status(Gate(), host=host) == 421


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("http://localhost:3000", None),
        ("https://127.0.0.1", None),
        ("https://evil.example", 403),
        ("null", 403),
        ("file://", 403),
        ("http://localhost@evil.example", 403),
        ("http://evil.example/localhost", 403),
        ("http://[", 403),
    ],
)
def test_pages_of_others_are_refused(origin: str, expected: int | None) -> None:
    assert status(Gate(), host="localhost", origin=origin) == expected


def test_names_that_are_given_come_in_and_a_star_is_any() -> None:
    named = Gate(["docs.example.com", "2001:db8::1"])
    assert status(named, host="Docs.Example.com:443", origin="https://docs.example.com") is None
    assert status(named, host="[2001:db8::1]:80") is None
    assert status(named, host="other.example.com") == 421
    assert status(Gate(["*"]), host="whatever", origin="https://any.example") is None
    assert status(Gate(["*"]), host="") == 421


def test_a_token_has_to_be_shown() -> None:
    gate = Gate(token="s3cret")
    assert status(gate, host="localhost", authorization="Bearer s3cret") is None
    assert status(gate, host="localhost", authorization="bearer  s3cret ") is None
    for shown in ("", "Bearer", "Bearer x", "Basic s3cret", "s3cret", "Bearer s3cretx"):
        assert status(gate, host="localhost", authorization=shown) == 401
    assert status(gate, host="localhost") == 401


@pytest.mark.parametrize("token", ["", "with blank", "naïve", "line\n"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(ValueError, match="printable ASCII"):
        Gate(token=token)


def test_what_is_shown_twice_is_refused() -> None:
    assert Gate().refusal([("host", "localhost"), ("host", "localhost")]) is not None
    assert Gate().refusal([("host", "localhost"), ("origin", "http://localhost"), ("origin", "http://evil.example")])
    twice = [("host", "localhost"), ("authorization", "Bearer t"), ("authorization", "Bearer t")]
    assert Gate(token="t").refusal(twice) is not None
