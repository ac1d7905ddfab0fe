"""A server over stdin and stdout: how it ends, and what its tools find there."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.mcp_server.clients import DEADLINE

SERVER = """
import subprocess, sys, time
from contextlib import asynccontextmanager
from a2c_smcp.mcp_server import ContextServer

@asynccontextmanager
async def lifespan(server):
    try:
        yield
    finally:
        print("left", file=sys.stderr, flush=True)

server = ContextServer("s", host="h", lifespan=lifespan)

@server.tool
async def stray() -> str:
    print("this is not for the client")
    child = subprocess.run([sys.executable, "-c", "print(repr(input()))"], capture_output=True, text=True)
    return child.stderr.strip().splitlines()[-1]

@server.tool
def stubborn() -> str:
    print("started", file=sys.stderr, flush=True)
    time.sleep(600)

server.run()
"""

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}


class Pipe:
    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process

    def ask(self, number: int, method: str, params: object) -> dict[str, object]:
        assert self.process.stdin is not None and self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        answer: dict[str, object] = json.loads(self.process.stdout.readline())
        assert answer["id"] == number
        return answer


@contextmanager
def serving() -> Iterator[Pipe]:
    """A server that has said hello."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(2 * DEADLINE, process.kill)
    watchdog.start()
    try:
        pipe = Pipe(process)
        pipe.ask(1, "initialize", HELLO)
        yield pipe
    finally:
        watchdog.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    assert process.stderr is not None
    errors = process.stderr.read()
    return process.wait(DEADLINE), errors


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_while_nothing_comes(how: signal.Signals) -> None:
    with serving() as pipe:
        pipe.process.send_signal(how)
        assert ended(pipe.process) == (0, "left\n")


def test_it_ends_when_its_client_does() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None
        pipe.process.stdin.close()
        assert ended(pipe.process) == (0, "left\n")


def test_what_a_tool_prints_or_a_child_reads_does_not_get_between() -> None:
    with serving() as pipe:
        answer = pipe.ask(2, "tools/call", {"name": "stray", "arguments": {}})
        assert "EOFError" in json.dumps(answer)
        pipe.ask(3, "ping", {})


def test_a_line_that_is_no_json_does_no_harm() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None
        pipe.process.stdin.write("not json\n\n{}\n")
        pipe.process.stdin.flush()
        pipe.ask(2, "ping", {})


def test_a_thread_that_takes_no_notice_does_not_keep_it() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None and pipe.process.stderr is not None
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "stubborn", "arguments": {}}}
        pipe.process.stdin.write(json.dumps(message) + "\n")
        pipe.process.stdin.flush()
        assert pipe.process.stderr.readline() == "started\n"
        pipe.process.stdin.close()
        assert ended(pipe.process) == (0, "left\n")
