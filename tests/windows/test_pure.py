"""The decisions behind windows: keys, masks, noise, states, waits, marks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.pace import Pace
from a2c_smcp.windows.emulator import Size
from a2c_smcp.windows.keys import key_bytes, text_bytes
from a2c_smcp.windows.masking import SecretMask, without_secrets
from a2c_smcp.windows.noise import errors_of, folded, last_of_each_line, without_colours
from a2c_smcp.windows.recent import MarkedLines
from a2c_smcp.windows.terminal_state import Foreground, ShownPriority, TerminalState, describe_exit_code, state_of
from a2c_smcp.windows.waiting import Awaited, matches
from a2c_smcp.windows.window_texts import window_text

# --- keys


@pytest.mark.parametrize(
    ("names", "application", "typed"),
    [
        (["enter"], False, b"\r"),
        (["ctrl-c", "Ctrl-D"], False, b"\x03\x04"),
        (["up"], False, b"\x1b[A"),
        (["up"], True, b"\x1bOA"),
        (["alt-x", "alt-up"], False, b"\x1bx\x1b\x1b[A"),
        (["f1", "f12"], False, b"\x1bOP\x1b[24~"),
        (["ctrl-space"], False, b"\0"),
    ],
)
def test_keys_are_what_a_terminal_sends(names: list[str], application: bool, typed: bytes) -> None:
    assert key_bytes(names, application_keys=application) == typed


def test_a_name_that_is_no_key_is_answered_with_those_that_are_near() -> None:
    with pytest.raises(BadRequestError, match="did you mean enter"):
        key_bytes(["entre"])
    with pytest.raises(BadRequestError, match="keys are"):
        key_bytes(["☃"])


def test_a_text_is_typed_as_it_is_and_cannot_press_other_keys() -> None:
    assert text_bytes("git status\n") == b"git status\r"
    assert text_bytes("a\r\nb\tc") == b"a\rb\tc"
    assert text_bytes("中文") == "中文".encode()
    assert text_bytes("a\nb", pasted=True) == b"\x1b[200~a\rb\x1b[201~"
    for hidden in ("\x1b[201~", "\x03", "\x9b"):
        with pytest.raises(BadRequestError, match="control character"):
            text_bytes(f"a{hidden}", pasted=True)


# --- secrets


@pytest.mark.parametrize(
    "secret",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "sk-proj-abcdefghijklmnop1234",
        "xoxb-123456789012-abcdef",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    ],
)
def test_what_looks_like_a_key_is_hidden_and_the_text_keeps_its_length(secret: str) -> None:
    text = f"before {secret} after"
    masked = SecretMask()(text)
    assert secret not in masked and masked.startswith("before ") and masked.endswith(" after")
    assert len(masked) == len(text)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("DB_PASSWORD=hunter22", "DB_PASSWORD=********"),
        ('{"api_key": "abcd1234"}', '{"api_key": "********"}'),
        ("postgres://ada:s3cret@db/x", "postgres://ada:******@db/x"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***********"),
        ("a token is a word", "a token is a word"),
        ("https://example.com:8080/path", "https://example.com:8080/path"),
    ],
)
def test_values_that_are_named_as_secrets_are_hidden(text: str, masked: str) -> None:
    assert SecretMask()(text) == masked


def test_a_private_key_is_hidden_over_its_lines() -> None:
    key = "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEpAIBAAKCAQEA\n" * 3 + "-----END RSA PRIVATE KEY-----"
    masked = SecretMask()(key)
    assert "MIIE" not in masked and masked.count("\n") == key.count("\n")


def test_a_secret_that_goes_on_in_the_next_row_is_hidden() -> None:
    secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    rows = [f"{'x' * 19} {secret[:20]}", secret[20:], "end"]
    masked = SecretMask().rows(rows, 40)
    assert [len(row) for row in masked] == [len(row) for row in rows]
    assert secret[:20] not in masked[0] and secret[20:] not in masked[1] and masked[2] == "end"


def test_the_persons_own_patterns_count_and_a_broken_one_is_named() -> None:
    assert SecretMask(["order-[0-9]+"])("order-4711") == "**********"
    with pytest.raises(ValueError, match=r"--mask '\('"):
        SecretMask(["("])


@given(st.lists(st.text(st.characters(exclude_characters="\n", codec="utf-8"), max_size=60), max_size=8))
def test_rows_keep_their_number_and_length(rows: list[str]) -> None:
    assert [len(row) for row in SecretMask().rows(rows, 40)] == [len(row) for row in rows]


def test_programs_get_no_variable_that_is_named_like_a_secret() -> None:
    environment = {"PATH": "/bin", "GITHUB_TOKEN": "x", "AWS_SECRET_ACCESS_KEY": "y", "NPM_TOKEN": "z"}
    assert without_secrets(environment) == {"PATH": "/bin"}
    assert without_secrets(environment, ["NPM_TOKEN"]) == {"PATH": "/bin", "NPM_TOKEN": "z"}


def test_an_environment_has_no_value_that_would_be_hidden() -> None:
    environment = {"PATH": "/bin", "DATABASE_URL": "postgres://u:pw@db/x", "KEPT": "https://u:pw@proxy", "X": "abc1"}
    mask = SecretMask(["abc[0-9]"])
    assert without_secrets(environment, ["KEPT"], mask) == {"PATH": "/bin", "KEPT": "https://u:pw@proxy"}


# --- noise


def test_colours_are_left_out_of_files_and_commands() -> None:
    assert without_colours("\x1b[1;31mred\x1b[0m \x1b]0;title\x07plain\x1b(B") == "red plain"


def test_lines_that_differ_in_numbers_only_are_folded() -> None:
    lines = ["begin", *(f"step {number} of 100" for number in range(100)), "end"]
    assert folded(lines) == ["begin", "step 0 of 100", "  … 98 more lines like this", "step 99 of 100", "end"]
    assert folded(["same"] * 5) == ["same", "  … 4 more lines like this"]
    assert folded(["a 1", "a 2", "a 3"]) == ["a 1", "a 2", "a 3"]
    assert folded(["", "", "", "", "x"]) == ["", "", "", "", "x"]


def test_a_progress_bar_is_its_last_line() -> None:
    assert last_of_each_line("1%\r50%\r100%\nnext\r\n") == "100%\nnext\n"


def test_errors_are_found_each_once() -> None:
    assert errors_of(["ok", "ERROR a", "fine", "ERROR a", "Traceback (most recent call last)"]) == [
        "ERROR a",
        "Traceback (most recent call last)",
    ]


# --- states


def _foreground(**changes: bool) -> Foreground:
    return Foreground(**({"is_idle_shell": False, "reads": True, "echoes": True, "by_line": True} | changes))


@pytest.mark.parametrize(
    ("exit_code", "foreground", "state"),
    [
        (None, None, TerminalState.RUNNING),
        (0, None, TerminalState.ENDED),
        (2, None, TerminalState.FAILED),
        (-9, None, TerminalState.FAILED),
        (None, _foreground(), TerminalState.WAITS_FOR_INPUT),
        (None, _foreground(reads=False), TerminalState.RUNNING),
        (None, _foreground(echoes=False), TerminalState.WAITS_FOR_PASSWORD),
        (None, _foreground(is_idle_shell=True, by_line=False, echoes=False), TerminalState.IDLE),
    ],
)
def test_the_state_follows_from_what_is_known(
    exit_code: int | None, foreground: Foreground | None, state: TerminalState
) -> None:
    assert state_of(exit_code, foreground) is state


def test_exit_codes_are_words() -> None:
    assert [describe_exit_code(code) for code in (2, -9, -250)] == [
        "exit code 2",
        "ended by SIGKILL",
        "ended by signal 250",
    ]


def test_the_priority_changes_every_few_seconds_at_most_and_the_last_state_counts() -> None:
    shown = ShownPriority(TerminalState.RUNNING.value, Pace(3.0))
    shown = shown.follow(TerminalState.WAITS_FOR_INPUT, 10.0)
    assert shown.shown == 80
    shown = shown.follow(TerminalState.RUNNING, 11.0)
    assert shown.shown == 80 and shown.pace.due == 13.0
    assert shown.follow(TerminalState.WAITS_FOR_INPUT, 11.5).pace.due is None
    assert shown.follow(TerminalState.FAILED, 13.0).shown == 70


# --- waits


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [("passed", "12 passed in 3s", True), ("* passed*s", "12 passed in 3s", True), ("3s*12", "12 3s", False)],
)
def test_a_pattern_is_a_text_with_stars(pattern: str, line: str, found: bool) -> None:
    assert matches(pattern, line) is found


def test_a_wait_ends_with_the_first_thing_that_comes() -> None:
    awaited = Awaited(["ready"], silence=2.0, for_input=True)
    assert awaited.reached(["starting"], 1.0, TerminalState.RUNNING, None) is None
    assert "ready" in (awaited.reached(["is ready"], 0.0, TerminalState.RUNNING, None) or "")
    assert "ended" in (awaited.reached([], 0.0, TerminalState.FAILED, "exit code 1") or "")
    assert "waits" in (awaited.reached([], 0.0, TerminalState.WAITS_FOR_INPUT, None) or "")
    assert "2 s" in (awaited.reached([], 2.5, TerminalState.RUNNING, None) or "")


def test_what_was_typed_does_not_end_a_wait_for_it() -> None:
    awaited = Awaited(["READY"])
    typed = ["sleep 3; echo READY"]
    assert awaited.reached(["$ sleep 3; echo READY", ""], 0.0, TerminalState.RUNNING, None, typed) is None
    assert awaited.reached(["$ sleep 3; echo READY", "READY"], 0.0, TerminalState.RUNNING, None, typed) is not None
    # A program that prints what was typed, such as cat.
    assert awaited.reached(["READY"], 0.0, TerminalState.RUNNING, None, ["READY"]) is None
    assert awaited.reached(["READY", "READY"], 0.0, TerminalState.RUNNING, None, ["READY"]) is not None
    # An answer may stand at the end of any line.
    assert Awaited(["ready"]).reached(["it is ready"], 0.0, TerminalState.RUNNING, None, ["y"]) is not None


# --- texts


@pytest.mark.parametrize("text", ["👩\u200d💻 dev", "❤️ heart", "⠀⠤ graph", "می\u200cخواهم"])
def test_emoji_and_scripts_with_joiners_are_shown_as_they_are(text: str) -> None:
    assert window_text(["head"], [text]).endswith(text)
    assert "\\u200d" in window_text(["head"], ["pass\u200dword"])


def test_a_head_leaves_half_of_the_window_to_the_body() -> None:
    text = window_text(["x" * 9000, "more"], [f"line {number}" for number in range(1000)], 1000)
    assert len(text) <= 1000 and text.endswith("line 999")
    text = window_text(["head"], [f"line {number}" for number in range(1000)], 500, keep="start")
    assert len(text) <= 500 and "line 0\n" in text and "more lines" in text and "line 999" not in text


def test_a_line_is_marked_while_it_is_new_also_when_it_moves() -> None:
    marks = MarkedLines(5.0).update(["a", "b"], 100.0)
    assert marks.marked(100.0) == ["  a", "  b"]
    marks = marks.update(["b", "c", ""], 101.0)
    assert marks.marked(102.0) == ["  b", "+ c", ""]
    assert marks.update(["b", "c", ""], 103.0) is marks
    assert marks.update(["c"], 104.0).marked(104.5) == ["+ c"]
    assert marks.marked(106.5) == ["  b", "  c", ""]


def test_a_window_keeps_to_its_budget_and_shows_the_end() -> None:
    text = window_text(["head"], [f"line {number}" for number in range(1000)], 500)
    assert len(text) <= 540 and text.startswith("head\n") and text.endswith("line 999") and "earlier lines" in text
    assert "…" in window_text(["head"], ["x" * 10_000], 500)
    assert "\x1b" not in window_text(["\x1b[2J"], ["\x1b]0;x\x07"])


@pytest.mark.parametrize(("columns", "rows"), [(5, 24), (80, 1), (10_000, 24)])
def test_sizes_without_sense_are_refused(columns: int, rows: int) -> None:
    with pytest.raises(ValueError, match="columns"):
        Size(columns, rows)
