"""The terminal alone, in a process of its own at a real one."""

import sys
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
