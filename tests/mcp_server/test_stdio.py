"""A server over stdin and stdout: how it ends, and what its tools find there."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
async def echo(text: str) -> str:
    return text

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


def test_a_message_larger_than_a_pipe_goes_in_and_comes_out_whole() -> None:
    text = "é" * 1_500_000
    with serving() as pipe:
        answer = pipe.ask(2, "tools/call", {"name": "echo", "arguments": {"text": text}})
        assert answer["result"]["content"][0]["text"] == text  # type: ignore[index]


def test_a_client_that_reads_late_gets_every_answer() -> None:
    count, text = 200, "x" * 5000
    with serving() as pipe:
        assert pipe.process.stdin is not None and pipe.process.stdout is not None
        # More than both pipes hold: the server has to wait for the reader, and goes on when there is one.
        calls = [{"name": "echo", "arguments": {"text": text}} for _ in range(count)]
        lines = [{"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": call} for n, call in enumerate(calls, 2)]
        writing = threading.Thread(target=lambda: _write(pipe, "".join(json.dumps(line) + "\n" for line in lines)))
        writing.start()
        answers = [json.loads(pipe.process.stdout.readline()) for _ in range(count)]
        writing.join()
        assert {answer["id"] for answer in answers} == set(range(2, count + 2))
        assert all(answer["result"]["content"][0]["text"] == text for answer in answers)


def _write(pipe: Pipe, text: str) -> None:
    assert pipe.process.stdin is not None
    pipe.process.stdin.write(text)
    pipe.process.stdin.flush()


def test_it_ends_when_nobody_reads_it_any_more() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None and pipe.process.stdout is not None
        pipe.process.stdout.close()
        _write(pipe, json.dumps({"jsonrpc": "2.0", "id": 2, "method": "ping"}) + "\n")
        assert ended(pipe.process) == (0, "left\n")


def test_stdin_may_be_a_file(tmp_path: Path) -> None:
    """Which no event loop can wait for."""
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
    ]
    file = tmp_path / "messages"
    file.write_text("".join(json.dumps(message) + "\n" for message in messages))
    with file.open() as stdin:
        done = subprocess.run(
            [sys.executable, "-c", SERVER], stdin=stdin, capture_output=True, text=True, timeout=DEADLINE, check=True
        )
    assert json.loads(done.stdout.splitlines()[0])["id"] == 1


def test_half_a_character_becomes_a_replacement_character_and_is_answered() -> None:
    with serving() as pipe:
        for number, sent in enumerate(("half \ud83d", "\ud83d\ude00 whole", "half \ude00" + "x" * 100_000), 2):
            call = {"name": "echo", "arguments": {"text": sent}}
            answer = pipe.ask(number, "tools/call", call)
            whole = sent.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert answer["result"]["content"][0]["text"] == whole  # type: ignore[index]


def test_bytes_that_are_no_utf_8_become_replacement_characters_and_are_answered() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None and pipe.process.stdout is not None
        call = (
            b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a\xffb"}}}\n'
        )
        pipe.process.stdin.buffer.write(call)  # type: ignore[attr-defined]
        pipe.process.stdin.flush()
        answer = json.loads(pipe.process.stdout.readline())
        assert (answer["id"], answer["result"]["content"][0]["text"]) == (2, "a\ufffdb")


def test_a_line_that_is_no_json_is_answered_and_does_no_harm() -> None:
    with serving() as pipe:
        assert pipe.process.stdout is not None
        _write(pipe, "not json\n\n  \n{}\n[]\n" + '{"id":7,"result":5}\n')
        answer = json.loads(pipe.process.stdout.readline())
        assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", None, -32700)
        pipe.ask(2, "ping", {})


def test_a_request_that_cannot_be_read_is_refused_with_its_id() -> None:
    with serving() as pipe:
        assert pipe.process.stdout is not None
        deep = "[" * 500 + "]" * 500
        for number, params in ((2, "5"), (3, f'{{"name":"echo","arguments":{{"text":{deep}}}}}')):
            _write(pipe, f'{{"jsonrpc":"2.0","id":{number},"method":"tools/call","params":{params}}}\n')
            answer = json.loads(pipe.process.stdout.readline())
            assert (answer["id"], answer["error"]["code"]) == (number, -32600)
        _write(pipe, '{"jsonrpc":"2.0","id":"\\ud83d","method":"ping","params":5}\n')
        assert json.loads(pipe.process.stdout.readline())["id"] == "\ufffd"
        pipe.ask(4, "ping", {})


def test_a_thread_that_takes_no_notice_does_not_keep_it() -> None:
    with serving() as pipe:
        assert pipe.process.stdin is not None and pipe.process.stderr is not None
        message = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "stubborn", "arguments": {}}}
        pipe.process.stdin.write(json.dumps(message) + "\n")
        pipe.process.stdin.flush()
        assert pipe.process.stderr.readline() == "started\n"
        pipe.process.stdin.close()
        assert ended(pipe.process) == (0, "left\n")
