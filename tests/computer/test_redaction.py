"""What is said about servers, without what is secret in their configs."""

import sys
import threading
import time

import pytest

from a2c_smcp import errors
from a2c_smcp.computer.redaction import Redaction, discreet, discreet_config, discreet_error

RAW = {
    "name": "remote",
    "server_parameters": {
        "command": "${input:command}",
        "args": ["--key=${input:key}", "plain text", "--pin=${input:pin}"],
        "env": {"A": "${input:env}", "LEVEL": "verbose", "PLAIN": "in-the-file", "API_KEY": "short", "TOKEN": "abc"},
        "headers": {"Authorization": "Bearer written-out", "B": "Bearer ${input:key}"},
    },
}
VALUES = {
    "${input:command}": "/opt/hidden",
    "${input:key}": "hunter22",
    "${input:pin}": 123,
    "${input:env}": {"TOKEN": "hunter22-and-more", "LIST": ["another-one"], "ON": True},
    "${input:number}": 40404,
    "${input:off}": "false",
    "${input:flag}": True,
    "${input:pem}": "-----BEGIN-----\nline-one-of-it\n\nline-two-of-it\n-----END-----\n",
}
RENDERED = {
    "name": "remote",
    "server_parameters": {
        "command": "/opt/hidden",
        "args": ["--key=hunter22", "plain text", "--pin=123"],
        "env": {**RAW["server_parameters"]["env"], "A": VALUES["${input:env}"]},  # type: ignore[index]
        "headers": {"Authorization": "Bearer written-out", "B": "Bearer hunter22"},
    },
    "added by a default": "something",
}


@pytest.fixture
def redaction() -> Redaction:
    redaction = Redaction()
    for placeholder, value in VALUES.items():
        redaction.learn_value(placeholder, value)
    redaction.learn_config(RAW, RENDERED)
    return redaction


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("no such file: '/opt/hidden'", "no such file: '${input:command}'"),
        ("bad Bearer hunter22, bad --key=hunter22", "bad Bearer ${input:key}, bad --key=${input:key}"),
        ("the value alone: hunter22!", "the value alone: ${input:key}!"),
        ("hunter22hunter22", "${input:key}${input:key}"),
        ("hunter22-and-more another-one", "${input:env} ${input:env}"),
        ("HTTP 40404", "HTTP ${input:number}"),
        ("usage: --pin=123", "usage: --pin=${input:pin}"),
        ("line 3: line-two-of-it", "line 3: ${input:pem}"),
        ("in-the-file, or inside in-the-files", "***, or inside ***s"),
        ("Bearer written-out and written-out alone", "*** and *** alone"),
        ("a short one under a key named like a secret", "a *** one under a key named like a secret"),
    ],
)
def test_what_was_written_stands_for_what_is_secret(redaction: Redaction, said: str, shown: str) -> None:
    assert redaction(said) == shown
    assert redaction(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "exit code 123: plain text, something, remote",  # 123 alone is too short to be found
        "verbose",  # seven characters, and its key is no secret's
        "abc",
        "true, false, Bearer",
    ],
)
def test_what_is_no_secret_or_too_short_stays(redaction: Redaction, said: str) -> None:
    assert redaction(said) == said


def test_a_stand_in_is_never_taken_for_a_secret() -> None:
    redaction = Redaction()
    redaction.learn_value("${input:token}", "secret-token")
    redaction.learn_value("${input:word}", "input")
    redaction.learn_value("${input:other}", "token")
    assert redaction("secret-token input token") == "${input:token} ${input:word} ${input:other}"


def test_an_old_value_stays_redacted_when_there_is_a_new_one() -> None:
    redaction = Redaction()
    redaction.learn_value("${input:key}", "the-old-one")
    redaction.learn_value("${input:key}", "the-new-one")
    assert redaction("the-old-one the-new-one") == "${input:key} ${input:key}"


@pytest.mark.parametrize("before", [1990, 16 * 1024 - 5, 16 * 1024 + 5])
def test_what_is_cut_does_not_end_in_half_a_secret(redaction: Redaction, before: int) -> None:
    said = "x" * before + "hunter22-and-more" + "x" * 20_000
    for shown in (redaction(said), redaction.quote(said)):
        assert "hunter" not in shown
        assert shown.endswith("…")
    assert len(redaction.quote(said)) == 2001


def test_secrets_that_fill_a_text_leave_no_rest_of_one_at_its_end(redaction: Redaction) -> None:
    assert "hunt" not in redaction.quote("hunter22 " * 100_000)


def test_the_texts_inside_a_value_are_redacted_in_any_depth(redaction: Redaction) -> None:
    assert redaction.inside({"a": ["hunter22", {"hunter22": 1}], "b": None}) == {
        "a": ["${input:key}", {"${input:key}": 1}],
        "b": None,
    }
    assert redaction.inside([1] * 2000) is None


def test_megabytes_cost_next_to_nothing(redaction: Redaction) -> None:
    began = time.process_time()
    redaction.quote("x" * 20_000_000)
    assert time.process_time() - began < 1


# --- what leaves the computer


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("postgres://bob:p@ss@db.example/x?y=a@b failed", "postgres://***@db.example/x?y=a@b failed"),
        ("http:\\/\\/bob:pw@db.example", "http:\\/\\/***@db.example"),
        ("cut: http://bob:hunt…", "cut: http://***…"),
        ("https://bob@10.0.0.1:8443/x", "https://***@***/x"),
        ("10.1.2.3 172.16.0.1 172.31.255.255:80 192.168.0.1.", "*** *** *** ***."),
        ("010.000.000.001:80", "***"),
        ("http://169.254.169.254/latest", "http://***/latest"),
        ("connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED ***"),
        ("connect ECONNREFUSED ::1:5432", "connect ECONNREFUSED ***"),
        ("dial tcp [::1]:6379: refused", "dial tcp ***: refused"),
        ("LOCALHOST:3000 http://localhost:3000/mcp", "*** http://***/mcp"),
        ('at "localhost" (127.0.0.1), port 5432 failed', 'at "localhost" (***), port 5432 failed'),
        ("('127.0.0.1', 8080)", "('***', 8080)"),
        ("fd12:3456::1: refused, [fd00::1]:80, fe80::1%eth0", "***: refused, ***, ***"),
        ("::ffff:10.0.0.1 fe80:0:0:0:0:0:0:1", "*** ***"),
    ],
)
def test_userinfo_and_inner_addresses_do_not_leave(said: str, shown: str) -> None:
    assert discreet(said) == shown
    assert discreet(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "127.0.0.1, ::1 and localhost without a port",
        "8.8.8.8:53 172.32.0.1 11.0.0.1 [2001:db8::1]:80",
        "GET https://registry.example/@scope/name?x=a@b",
        "mail bob@db.example",
        "version 1.10.0.0.1, 10.0.0.300, 192.168.1.1.5",
        "at 12:30:45, std::vector, aa:bb:cc:dd:ee:ff",
        "notlocalhost:80 my.localhost:80",
    ],
)
def test_what_is_no_inner_address_stays(said: str) -> None:
    assert discreet(said) == said


@pytest.mark.parametrize("piece", ["a:", ":", "1.", "[", "://", "://a", "x@", "localhost", "10.0.0.", "['\"("])
def test_no_text_takes_long(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        times = []
        for _ in range(3):
            began = time.perf_counter()
            discreet(text)
            times.append(time.perf_counter() - began)
        return min(times)

    assert seconds(32_000) < 64 * seconds(2000) + 0.05  # linear is 16, squares are 256


def test_an_error_leaves_without_them_and_stays_as_it_is_in_the_computer() -> None:
    error = errors.ToolNotFoundError("t", (), {"10.0.0.1": "no http://u:p@10.0.0.1/"})
    shown = discreet_error(error)
    assert type(shown) is errors.ToolNotFoundError
    assert (shown.code, shown.down) == (4001, {"***": "no http://***@***/"})
    assert shown.message == "Tool not found: t (server *** does not run: no http://***@***/)"
    assert "u:p@10.0.0.1" in error.message
    assert error.down["10.0.0.1"] == "no http://u:p@10.0.0.1/"
    inactive = discreet_error(errors.ServerNotActiveError("10.0.0.1", "failed", "10.0.0.2"))
    assert inactive.details == {"server_name": "10.0.0.1", "state": "failed", "reason": "***"}


@pytest.mark.parametrize(
    "error",
    [
        errors.InvalidDPEURIError("dpe://u@10.0.0.1/x", "no"),
        errors.NotFoundError("no window", {"uri": "window://10.0.0.1:80"}),
        errors.ToolConfirmationError("refused", {"reason": "use 10.0.0.1"}),
    ],
)
def test_what_no_server_said_leaves_as_it_is(error: errors.SMCPError) -> None:
    assert discreet_error(error) is error


def test_a_config_leaves_with_reasons_without_them() -> None:
    failed, running = {"state": "failed", "since": "now", "reason": "no 10.0.0.1"}, {"state": "running", "since": "now"}
    info = {"a": failed, "b": running}
    shown = discreet_config({"inputs": [], "servers": {}, "server_info": info})  # type: ignore[typeddict-item]
    assert shown["server_info"] == {"a": {**failed, "reason": "no ***"}, "b": running}


def test_a_secret_that_is_learned_while_another_thread_redacts_is_redacted() -> None:
    redaction = Redaction()
    for number in range(300):  # a pattern takes long enough to be overtaken
        redaction.learn_value("***", f"known-secret-{number:04}")
    is_over = threading.Event()

    def read() -> None:
        while not is_over.is_set():
            redaction("known-secret-0001")

    readers = [threading.Thread(target=read) for _ in range(2)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for reader in readers:
            reader.start()
        for number in range(100):
            secret = f"another-{number:04}"
            redaction.learn_value("***", secret)
            time.sleep(0.002)  # for a thread that still makes the old pattern
            assert secret not in redaction(f"say {secret}")
    finally:
        is_over.set()
        sys.setswitchinterval(interval)
        for reader in readers:
            reader.join(20)
