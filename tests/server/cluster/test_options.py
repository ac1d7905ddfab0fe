import re

import pytest

from a2c_smcp.server.cluster.options import ClusterOptions, parse_servers


def test_a_list_of_servers() -> None:
    assert parse_servers("nats://a:4222, tls://b") == ("nats://a:4222", "tls://b")


@pytest.mark.parametrize("text", ["", ",", "a:4222", "http://a", "nats://", "nats://a:port", "nats://a,redis://b"])
def test_what_is_no_server_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="NATS server"):
        parse_servers(text)


def test_a_refused_address_does_not_show_its_password() -> None:
    with pytest.raises(ValueError, match=re.escape("'host:4222'")) as caught:
        parse_servers("redis://user:secret@host:4222")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "bad", [{"prefix": ""}, {"prefix": "a.b"}, {"prefix": "a>"}, {"lease": 1}, {"lease": 4, "renewal": 3.0}]
)
def test_a_prefix_and_times_that_cannot_work_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        ClusterOptions(("nats://a",), **bad)  # type: ignore[arg-type]
