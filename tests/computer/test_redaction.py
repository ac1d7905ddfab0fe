"""What is said about servers, without what is secret in their configs."""

import time

import pytest

from a2c_smcp.computer.redaction import Redaction

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
