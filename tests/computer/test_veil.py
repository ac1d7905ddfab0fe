"""What is said about servers, without what is secret in their configs."""

import time

import pytest

from a2c_smcp.computer.veil import Veil

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
def veil() -> Veil:
    veil = Veil()
    for placeholder, value in VALUES.items():
        veil.learn_value(placeholder, value)
    veil.learn_config(RAW, RENDERED)
    return veil


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
def test_what_was_written_stands_for_what_is_secret(veil: Veil, said: str, shown: str) -> None:
    assert veil(said) == shown
    assert veil(shown) == shown


@pytest.mark.parametrize(
    "said",
    [
        "exit code 123: plain text, something, remote",  # 123 alone is too short to be found
        "verbose",  # seven characters, and its key is no secret's
        "abc",
        "true, false, Bearer",
    ],
)
def test_what_is_no_secret_or_too_short_stays(veil: Veil, said: str) -> None:
    assert veil(said) == said


def test_a_stand_in_is_never_taken_for_a_secret() -> None:
    veil = Veil()
    veil.learn_value("${input:token}", "secret-token")
    veil.learn_value("${input:word}", "input")
    veil.learn_value("${input:other}", "token")
    assert veil("secret-token input token") == "${input:token} ${input:word} ${input:other}"


def test_an_old_value_stays_veiled_when_there_is_a_new_one() -> None:
    veil = Veil()
    veil.learn_value("${input:key}", "the-old-one")
    veil.learn_value("${input:key}", "the-new-one")
    assert veil("the-old-one the-new-one") == "${input:key} ${input:key}"


@pytest.mark.parametrize("before", [1990, 16 * 1024 - 5, 16 * 1024 + 5])
def test_what_is_cut_does_not_end_in_half_a_secret(veil: Veil, before: int) -> None:
    said = "x" * before + "hunter22-and-more" + "x" * 20_000
    for shown in (veil(said), veil.quote(said)):
        assert "hunter" not in shown
        assert shown.endswith("…")
    assert len(veil.quote(said)) == 2001


def test_secrets_that_fill_a_text_leave_no_rest_of_one_at_its_end(veil: Veil) -> None:
    assert "hunt" not in veil.quote("hunter22 " * 100_000)


def test_the_texts_inside_a_value_are_veiled_in_any_depth(veil: Veil) -> None:
    assert veil.inside({"a": ["hunter22", {"hunter22": 1}], "b": None}) == {
        "a": ["${input:key}", {"${input:key}": 1}],
        "b": None,
    }
    assert veil.inside([1] * 2000) is None


def test_megabytes_cost_next_to_nothing(veil: Veil) -> None:
    began = time.process_time()
    veil.quote("x" * 20_000_000)
    assert time.process_time() - began < 1
