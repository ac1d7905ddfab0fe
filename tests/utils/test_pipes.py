"""Pipes on the event loop: whole lines in, whole messages out, whatever the other end does."""

import asyncio
import contextvars
import fcntl
import os
import tracemalloc
from functools import partial

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2c_smcp.utils.pipes import Line, LineReader, LineSplitter, Writer
from tests.computer.fakes.processes import both_loops, eventually, nothing_left_over

pytestmark = both_loops


class Pipe:
    def __init__(self) -> None:
        self.read, self.write = os.pipe()
        self._open = {self.read, self.write}
        for end in self._open:
            os.set_blocking(end, False)

    def close(self, end: int) -> None:
        self._open.remove(end)
        os.close(end)

    def __enter__(self) -> "Pipe":
        return self

    def __exit__(self, *_: object) -> None:
        for end in list(self._open):
            self.close(end)


def drain(fd: int) -> bytes:
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(fd, 65536)
        except BlockingIOError:
            return b"".join(parts)
        if not part:
            return b"".join(parts)
        parts.append(part)


# --- lines


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_bytes_arrive(
    anyio_backend: object, parts: list[bytes], data: st.DataObject
) -> None:
    whole = b"\n".join(parts)
    lines, found, at = LineSplitter(1000), [], 0
    while at < len(whole):
        size = data.draw(st.integers(1, len(whole) - at))
        found += lines.feed(whole[at : at + size])
        at += size
    assert [*found, lines.rest()] == whole.split(b"\n")


def test_a_line_that_comes_in_many_small_parts_takes_no_more_memory_than_in_few(anyio_backend: object) -> None:
    lines, parts = LineSplitter(10_000_000), 100_000
    tracemalloc.start()
    try:
        for number in range(parts):
            assert not lines.feed(bytes((120, number % 10 + 48)))
        assert tracemalloc.get_traced_memory()[1] < 5 * 2 * parts
    finally:
        tracemalloc.stop()
    assert lines.size == len(lines.rest()) == 2 * parts  # type: ignore[arg-type]


# --- reading


async def test_every_line_is_read_in_order_and_then_the_end() -> None:
    with nothing_left_over(), Pipe() as pipe:
        heard: list[Line] = []
        ended = asyncio.Event()
        reader = LineReader(pipe.read, 1 << 20, heard.append, ended.set)
        writer = Writer(pipe.write, on_broken=lambda: None)
        expected = [str(number).encode() * 50 for number in range(5000)]
        for line in expected:
            writer.write(line + b"\n")
        await writer.flushed()
        writer.close()
        pipe.close(pipe.write)
        await asyncio.wait_for(ended.wait(), 20)
        assert heard == expected
        assert reader.ended


async def test_a_line_may_start_a_task_of_anyio_also_where_sniffio_knows_nothing() -> None:
    """Tests of anyio have a context in which sniffio is told. Commands have none, and many packages bring sniffio."""
    done = asyncio.Event()

    async def react() -> None:
        done.set()

    with Pipe() as pipe:
        async with anyio.create_task_group() as tasks:

            def on_line(_: Line) -> None:
                tasks.start_soon(react)

            make = partial(LineReader, pipe.read, 1 << 20, on_line, lambda: None)
            reader = contextvars.Context().run(make)
            os.write(pipe.write, b"a line\n")
            await asyncio.wait_for(done.wait(), 20)
            reader.close()


async def test_a_paused_reader_leaves_the_rest_in_the_pipe() -> None:
    with Pipe() as pipe:
        heard: list[Line] = []

        def on_line(line: Line) -> None:
            heard.append(line)
            reader.pause()

        reader = LineReader(pipe.read, 1 << 20, on_line, lambda: None)
        os.write(pipe.write, b"one\n")
        await eventually(lambda: heard == [b"one"])
        os.write(pipe.write, b"two\n")
        for _ in range(20):
            await asyncio.sleep(0)
        assert heard == [b"one"]
        reader.resume()
        await eventually(lambda: heard == [b"one", b"two"])
        reader.close()
        reader.resume()  # for nothing: it is over
        os.write(pipe.write, b"three\n")
        await asyncio.sleep(0.01)
        assert heard == [b"one", b"two"]


async def test_a_flood_leaves_the_loop_to_others() -> None:
    with Pipe() as pipe:
        fcntl.fcntl(pipe.write, fcntl.F_SETPIPE_SZ, 1 << 20)
        os.write(pipe.write, b"x" * 99 + b"\n" + b"y" * 99 + b"\n" + b"z\n" * 400_000)
        turns = 0
        heard: list[Line] = []
        reader = LineReader(pipe.read, 1 << 20, heard.append, lambda: None)
        while len(heard) < 400_002:
            await asyncio.sleep(0)
            turns += 1
        reader.close()
        assert turns > 2


# --- writing


async def test_what_a_full_pipe_does_not_take_waits_and_arrives_in_order() -> None:
    with nothing_left_over(), Pipe() as pipe:
        writer = Writer(pipe.write, on_broken=lambda: None)
        messages = [bytes([65 + number % 26]) * (1 << number % 18) for number in range(60)]
        for number, message in enumerate(messages):
            writer.write(message)
            if number % 7 == 0:
                await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(writer.flushed(), 0.05)
        received = b""
        while len(received) < sum(map(len, messages)):
            received += drain(pipe.read)
            await asyncio.sleep(0)
        await asyncio.wait_for(writer.flushed(), 20)
        assert received == b"".join(messages)
        writer.close()


async def test_a_burst_is_written_in_two_pieces() -> None:
    with Pipe() as pipe:
        writer = Writer(pipe.write, on_broken=lambda: None)
        for number in range(10):
            writer.write(b"%d\n" % number)
        assert drain(pipe.read) == b"0\n"  # at once
        await writer.flushed()
        assert drain(pipe.read) == b"".join(b"%d\n" % number for number in range(1, 10))
        writer.close()


@pytest.mark.parametrize("full", [False, True])
async def test_a_reader_that_has_gone_is_told_once_and_nothing_waits(full: bool) -> None:
    with nothing_left_over(), Pipe() as pipe:
        broken: list[None] = []
        writer = Writer(pipe.write, on_broken=lambda: broken.append(None))
        if full:
            writer.write(b"x" * 1_000_000)
            await asyncio.sleep(0.01)
        pipe.close(pipe.read)
        writer.write(b"y")
        await asyncio.wait_for(writer.flushed(), 20)
        writer.write(b"z")
        await eventually(lambda: broken == [None])
        writer.close()
        assert broken == [None]


async def test_closing_forgets_what_waits() -> None:
    with Pipe() as pipe:
        writer = Writer(pipe.write, on_broken=lambda: None)
        writer.write(b"x" * 1_000_000)
        await asyncio.sleep(0.01)
        writer.close()
        await asyncio.wait_for(writer.flushed(), 20)
        taken = len(drain(pipe.read))
        await asyncio.sleep(0.01)
        assert 0 < taken < 1_000_000
        assert drain(pipe.read) == b""
