"""A stream whose reader may stop: what is kept and dropped, and that nobody waits."""

import json
import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from a2c_smcp.terminal.background_stream import BackgroundStream, Backlog, ReaderLimits, background_stderr
from a2c_smcp.utils.logs import configure_logging

SOME_MODULE = logging.getLogger("a2c_smcp.some.module")
LIMITS = ReaderLimits(slow=1000, stopped=10, seconds=1.0)
DEADLINE = 30.0


def waiting(backlog: Backlog) -> bytes:
    """Everything that waits, read at once."""
    found = b""
    while head := backlog.head():
        found += head
        backlog.wrote(len(head), 0.0)
    return found


# --- what is kept


def test_a_reader_that_reads_may_be_far_behind() -> None:
    backlog = Backlog(LIMITS, 0.0)
    for second in range(9):
        backlog.add(b"x" * 101, float(second))
        backlog.wrote(1, second + 0.5)
    assert not backlog.is_losing
    assert len(waiting(backlog)) == 900


def test_a_reader_that_has_stopped_may_be_a_little_behind() -> None:
    backlog = Backlog(LIMITS, 0.0)
    backlog.add(b"one\n", 0.0)
    backlog.add(b"two\n", 5.0)
    backlog.add(b"three\n", 5.0)
    assert backlog.is_losing
    assert waiting(backlog) == b"one\ntwo\n"


def test_after_the_first_loss_everything_is_dropped_and_counted_until_it_is_told() -> None:
    backlog = Backlog(LIMITS, 0.0)
    backlog.add(b"12345678\n", 0.0)
    backlog.add(b"too long\nby far\n", 2.0)
    assert waiting(backlog)
    backlog.add(b"x", 2.0)
    backlog.add(b"y\n", 2.0)
    assert not backlog.size
    assert backlog.resume() == 3
    backlog.add(b"again\n", 2.0)
    assert waiting(backlog) == b"again\n"
    assert backlog.resume() == 0


def test_a_text_of_any_size_is_taken_whole_by_a_reader_that_has_read_everything() -> None:
    backlog = Backlog(LIMITS, 0.0)
    backlog.add(b"x" * 50_000, 100.0)
    assert waiting(backlog) == b"x" * 50_000


def test_it_is_known_how_far_the_reader_is() -> None:
    backlog = Backlog(LIMITS, 0.0)
    backlog.add(b"question", 0.0)
    end = backlog.taken
    backlog.wrote(7, 0.0)
    assert not backlog.has_written(end)
    backlog.wrote(1, 0.0)
    assert backlog.has_written(end)
    backlog.add(b"x" * 10, 0.0)
    backlog.add(b"x" * 1000, 0.0)
    assert not backlog.has_written(end), "the question may have scrolled away, and more is lost"


# --- nobody waits


class Pipe:
    """A stream, and its reader, which reads when it is told to."""

    def __init__(self) -> None:
        self.read, write = os.pipe()
        self.stream = open(write, "w", encoding="ascii")  # noqa: SIM115 - closed by `close`
        self._got: list[bytes] = []
        self._thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        self._got.extend(iter(lambda: os.read(self.read, 65536), b""))

    def reads(self) -> None:
        self._thread.start()

    def got(self) -> list[str]:
        """All lines, when the stream has come to its end."""
        self.stream.close()
        self._thread.join(DEADLINE)
        return b"".join(self._got).decode("ascii").splitlines()

    def close(self) -> None:
        self.stream.close()
        os.close(self.read)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    it = Pipe()
    yield it
    it.close()


def test_a_stopped_reader_is_told_what_it_missed_and_gets_the_rest(pipe: Pipe) -> None:
    drained = threading.Event()
    it = BackgroundStream(pipe.stream, drained.set, ReaderLimits(slow=200_000, stopped=200_000))
    for number in range(50_000):  # far more than a pipe takes: without a thread this would never end
        it.write(f"{number:08d}\n")
    assert not it.has_written(it.position)
    pipe.reads()
    assert drained.wait(DEADLINE)
    lost = it.resume()
    assert it.has_written(it.position)
    it.write("on ä\n")
    it.finish()
    assert it.has_written(it.position)
    it.write("after the end\n")
    *lines, more, last = pipe.got()
    assert lines == [f"{number:08d}" for number in range(len(lines))]
    assert len(lines) + lost == 50_000
    assert lost > 10_000
    assert (more, last) == ("on ?", "after the end")  # and no ä in this encoding


def test_a_stopped_reader_does_not_hold_up_the_end(pipe: Pipe) -> None:
    it = BackgroundStream(pipe.stream, lambda: None)
    it.write("x" * 1_000_000)
    it.finish()
    it.write("dropped: this would wait for ever")
    assert not it.has_written(it.position)


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w") as stream:
        it = BackgroundStream(stream, lambda: None)
        it.write("nobody\n" * 100_000)
        it.finish()
        assert it.has_written(it.position)


def test_a_stream_that_another_program_made_non_blocking_is_written_whole(pipe: Pipe) -> None:
    os.set_blocking(pipe.stream.fileno(), False)
    it = BackgroundStream(pipe.stream, lambda: None)
    it.write("line\n" * 100_000)
    pipe.reads()
    it.finish()
    assert len(pipe.got()) == 100_000


# --- stderr


@pytest.mark.usefixtures("_own_handlers")
def test_a_log_that_nobody_reads_holds_nobody_up_and_says_what_is_lost(
    pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", pipe.stream)
    with background_stderr(ReaderLimits(slow=200_000, stopped=200_000)):
        configure_logging("info", "json")
        for number in range(1000):
            SOME_MODULE.info("%d %s", number, "x" * 1000)
        pipe.reads()
    assert sys.stderr is pipe.stream
    *lines, last = map(json.loads, pipe.got())
    assert [int(line["message"].split()[0]) for line in lines] == list(range(len(lines)))
    assert last["level"] == "warning"
    assert last["message"] == f"{1000 - len(lines)} lines of this log were dropped: nobody read it"


def test_a_log_in_a_file_is_written_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        with background_stderr():
            assert sys.stderr is file
