"""The terminal alone, in a process of its own at a real one."""

import io
import sys
import time
from pathlib import Path

import pexpect

#: A question that is taken back as soon as a key waits that nobody has read; then the line.
TAKEN_BACK = """
import fcntl, sys, termios
import anyio
from a2c_smcp.computer.cli.terminal import Terminal


def unread():
    return int.from_bytes(fcntl.ioctl(sys.stdin, termios.FIONREAD, bytes(4)), sys.byteorder)


async def main():
    terminal = Terminal()
    with terminal.owned():
        with anyio.CancelScope() as question:
            async with terminal.turn():
                terminal.write("asked\\n")
                while not unread():
                    await anyio.sleep(0.01)
                question.cancel()
                await anyio.sleep(0)
        terminal.write("taken back\\n")
        entered = await terminal.line()
    print("entered", repr(entered))


anyio.run(main)
"""


def test_what_was_typed_for_a_question_that_is_taken_back_is_not_on_the_line(tmp_path: Path) -> None:
    program = tmp_path / "taken_back.py"
    program.write_text(TAKEN_BACK)
    it = pexpect.spawn(sys.executable, [str(program)], encoding="utf-8", timeout=30)
    try:
        it.expect_exact("asked")
        it.send("s")
        it.expect_exact("taken back")
        it.send("whole\r")
        it.expect_exact("entered 'whole'")
        it.expect(pexpect.EOF)
    finally:
        it.close(force=True)


#: A question and a line to edit, both in a stranger's words.
STRANGE = """
import anyio
from a2c_smcp.computer.cli.terminal import Terminal


async def main():
    terminal = Terminal()
    with terminal.owned():
        async with terminal.turn():
            answer = await terminal.text("name \\u202e\\x1b[2J: ", "a\\u202e\\U000e0041b")
            chosen = await terminal.choose("sure, x\\u202e? ", {"y": "yes"})
    print("entered", ascii(answer), chosen)


anyio.run(main)
"""


def test_a_line_to_edit_shows_what_nobody_sees_and_keeps_it(tmp_path: Path) -> None:
    program = tmp_path / "strange.py"
    program.write_text(STRANGE)
    screen = io.StringIO()
    it = pexpect.spawn(sys.executable, [str(program)], encoding="utf-8", timeout=30)
    it.logfile_read = screen
    try:
        it.expect_exact(r"a\u202e\udb40\udc41b")
        it.send("c\x1b[D\x1b[D\x7fd\r")  # behind the end, then before the b: the tag character goes
        it.expect_exact(r"x\u202e?")
        it.send("y\r")
        it.expect_exact(r"entered 'a\u202edbc' yes")
        it.expect(pexpect.EOF)
    finally:
        it.close(force=True)
    assert r"name \u202e\u001b[2J:" in screen.getvalue()
    assert not {"\u202e", "\U000e0041"} & set(screen.getvalue())


#: A question while nobody reads the terminal. Whether an answer found its question on the screen goes to a file.
STOPPED = """
import sys
from pathlib import Path
import anyio
from a2c_smcp.computer.cli.terminal import Terminal


class Watched(Terminal):
    async def _is_question_seen(self):
        is_seen = await super()._is_question_seen()
        Path(sys.argv[1]).write_text(str(is_seen))
        return is_seen


async def main():
    terminal = Watched()
    terminal.on_lost = lambda lines: terminal.write(f"lost {lines} lines\\n")
    with terminal.owned():
        for _ in range(3000):
            terminal.write("x" * 70 + "\\n")
        await anyio.sleep(1.1)  # it has not read anything for a second: it is stopped
        terminal.write("never shown\\nneither\\n")
        async with terminal.turn():
            terminal.write("the question\\n")
            chosen = await terminal.choose("sure? ", {"y": "yes", "n": "no"})
        terminal.write("goes on\\n")
        entered = await terminal.line()
    print("entered", chosen, entered)


anyio.run(main)
"""


def test_a_terminal_that_is_stopped_holds_nobody_up_and_no_answer_is_given_unseen(tmp_path: Path) -> None:
    program, verdict = tmp_path / "stopped.py", tmp_path / "verdict"
    program.write_text(STOPPED)
    screen = io.StringIO()
    it = pexpect.spawn(sys.executable, [str(program), str(verdict)], encoding="utf-8", timeout=30)
    it.logfile_read = screen
    try:
        it.send("y\r")  # nothing was read yet
        deadline = time.monotonic() + 60
        while not verdict.exists():
            assert time.monotonic() < deadline, "the program waits for its terminal"
            time.sleep(0.05)
        assert verdict.read_text() == "False"
        it.expect(r"lost \d+ lines")
        it.expect_exact("the question")
        it.expect_exact("sure?")  # its blank is not drawn
        it.send("n\r")
        it.expect_exact("goes on")
        it.expect_exact("a2c> ")
        it.send("whole\r")
        it.expect_exact("entered no whole")
        it.expect(pexpect.EOF)
    finally:
        it.close(force=True)
    assert screen.getvalue().count("x" * 70) == 3000
    assert "never shown" not in screen.getvalue()
