import re

import pytest

from a2c_smcp.server.cluster.options import ClusterOptions, parse_keys, parse_servers


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


def test_the_keys_of_a_file_are_in_their_order() -> None:
    assert parse_keys("# of the year 2026\n\n  first \r\nsecond\n") == (b"first", b"second")
    assert parse_keys("# none yet\n\n") == ()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"keys": (b"k" * 31,)}, "32 characters"),
        ({"keys": (b"k" * 32, b"")}, "32 characters"),
        ({"keys": (b"k" * 32,) * 5}, "4 cluster keys"),
        ({"accept_unsigned": True}, "--accept-unsigned needs a cluster key"),
    ],
)
def test_cluster_keys_that_cannot_work_are_refused_and_never_shown(bad: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        ClusterOptions(("nats://a",), **bad)  # type: ignore[arg-type]
    assert "kkk" not in str(caught.value)
    assert "kkk" not in repr(ClusterOptions(("nats://a",), keys=(b"k" * 32,)))
