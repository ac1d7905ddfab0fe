"""Fires frames at a running server, and checks that it answers, stays up and keeps nothing.

`Fuzzer` opens websockets of three kinds: of a member that sends events which decode, each of which must be answered; of
one that sends garbage; and of one that shows no credentials. A hostile computer answers what is passed on to it.
"""

import http.client
import json
import random
import re
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

from tests.attack.harness import Target
from tests.attack.processes import started
from tests.fuzz.packets import acks, frames, garbage

__all__ = ["MAX_LOG", "Fuzzer", "fuzz"]

KEY: Final = "fuzz-key"
MAX_LOG: Final = 1_000_000
#: Frames over one connection before a new one is opened.
_BATCH: Final = 50
#: Frames that do not decode end a connection after ten; below that it must go on answering.
_GARBAGE_AMONG_EVENTS: Final = 6
_DEADLINE: Final = 60.0
_ACK: Final = re.compile(r"43/smcp,(\d+)")
_GAUGE: Final = re.compile("a2c_(members|sessions|offices)")


def fuzz(folder: Path, packets: int, seed: int, say: Callable[[str], object] = lambda _: None) -> list[str]:
    """Fire so many frames at a new server; what is wrong in the end."""
    command = [sys.executable, str(Path(__file__).with_name("spied_server.py")), "--port", "0", "--api-key", KEY]
    with started(command, folder / "server.log") as process:
        url = process.says(r"ready on (http://[\d.]+:\d+)")[1]
        return Fuzzer(Target(url, process, folder, KEY), seed, say).run(packets)


class Fuzzer:
    def __init__(self, target: Target, seed: int, say: Callable[[str], object]) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._say = say
        self._next_ack = 1
        self._sent = 0
        self._answered = 0

    def run(self, packets: int) -> list[str]:
        self._burst(garbage_only=False)  # what is made once, at the first use, is there now
        self._settle(None)
        before = self._holdings()
        problems: list[str] = []
        stop = threading.Event()
        computer = threading.Thread(target=_hostile_computer, args=(self._target, self._random.random(), stop))
        computer.start()
        try:
            self._sent = 0
            while self._sent < packets and not problems:
                draw = self._random.random()
                if draw < 0.15:
                    self._burst(garbage_only=True)
                elif draw < 0.25:
                    self._knock()
                elif draw < 0.35:
                    self._post()
                else:
                    problems += self._burst(garbage_only=False)
                if not self._target.process.alive:
                    return ["the server has ended"]
        finally:
            stop.set()
            computer.join(_DEADLINE)
        self._say(f"{self._sent} frames, {self._answered} answers")
        problems += self._settle(before)
        if len(self._target.log) > MAX_LOG:
            problems.append(f"the log has {len(self._target.log)} characters")
        problems += [f"the log has {word!r}" for word in ("Traceback", "never retrieved") if word in self._target.log]
        return problems

    # --- ways to send

    def _burst(self, *, garbage_only: bool) -> list[str]:
        """One connection of a member with its frames; what was not answered."""
        awaited: set[int] = set()
        with suppress(ConnectionClosed, InvalidHandshake, OSError), self._open() as ws:
            _join(ws, "agent", self._random.choice(("fuzz", "fuzz-2")))
            plan: list[Any] = [garbage(self._random) for _ in range(_BATCH if garbage_only else _GARBAGE_AMONG_EVENTS)]
            if not garbage_only:
                # A packet that takes leave is obeyed, and then nothing is answered any more.
                plan = [frame for frame in plan if not str(frame.data).startswith("41")]
                plan += frames(self._random, _BATCH, self._next_ack)
                self._next_ack += _BATCH
                self._random.shuffle(plan)
            for frame in plan:
                ws.send(frame.data)
                self._sent += 1
                if frame.must_ack is not None:
                    awaited.add(frame.must_ack)
            return self._collect(ws, awaited)
        return []

    def _collect(self, ws: ClientConnection, awaited: set[int]) -> list[str]:
        deadline = time.monotonic() + _DEADLINE
        while awaited:
            try:
                text = ws.recv(timeout=max(0.0, deadline - time.monotonic()))
            except (TimeoutError, ConnectionClosed) as error:
                why = type(error).__name__
                return [f"{len(awaited)} events were not answered ({why}), ack id {min(awaited)} for one"]
            if text == "2":
                ws.send("3")
            elif isinstance(text, str) and (match := _ACK.match(text)) and int(match[1]) in awaited:
                awaited.discard(int(match[1]))
                self._answered += 1
        return []

    def _knock(self) -> None:
        """A connection that shows no credentials, or none that hold."""
        with suppress(ConnectionClosed, InvalidHandshake, OSError, TimeoutError), self._open(None) as ws:
            for _ in range(_BATCH // 5):
                frame = garbage(self._random) if self._random.random() < 0.7 else '40/smcp,{"token":"wrong"}'
                ws.send(frame if isinstance(frame, str) else frame.data)
                self._sent += 1
            ws.recv(timeout=0.05)

    def _post(self) -> None:
        """Garbage by long polling."""
        client = http.client.HTTPConnection("127.0.0.1", self._target.port, timeout=_DEADLINE)
        with suppress(OSError, http.client.HTTPException):
            client.request("GET", "/socket.io/?EIO=4&transport=polling", headers={"x-api-key": KEY})
            sid = json.loads(client.getresponse().read().decode()[1:])["sid"]
            for _ in range(5):
                frame = garbage(self._random).data
                body = frame if isinstance(frame, bytes) else frame.encode("utf-8", "replace")
                client.request("POST", f"/socket.io/?EIO=4&transport=polling&sid={sid}", body=b"\x1e".join([body] * 3))
                client.getresponse().read()
                self._sent += 3
            client.request("POST", f"/socket.io/?EIO=4&transport=polling&sid={sid}", body=b"1")
            client.getresponse().read()
        client.close()

    def _open(self, key: str | None = KEY) -> ClientConnection:
        headers = {"x-api-key": key} if key else {}
        url = f"ws://127.0.0.1:{self._target.port}/socket.io/?EIO=4&transport=websocket"
        return connect(
            url, additional_headers=headers, max_size=None, proxy=None, open_timeout=_DEADLINE, close_timeout=0.1
        )

    # --- what it holds

    def _settle(self, before: dict[str, float] | None) -> list[str]:
        """Wait until the server holds no more than before; what it still holds when that takes too long."""
        deadline = time.monotonic() + _DEADLINE
        last: dict[str, float] = {}
        while time.monotonic() < deadline:
            now = self._holdings()
            if before is None:
                if now == last and not any(now[key] for key in now if _GAUGE.match(key)):
                    return []
                last = now
            else:
                more = [
                    f"{key}: {now[key]:g}, {before.get(key, 0):g} before"
                    for key in now
                    if now[key] > before.get(key, 0)
                ]
                if not more:
                    return []
            time.sleep(0.2)
        return [] if before is None else more

    def _holdings(self) -> dict[str, float]:
        """Gauges, descriptors, and tasks."""
        process = self._target.process
        said = len(process.log.read_text(errors="replace"))
        process.signal(signal.SIGUSR1)
        held = {"tasks": float(process.says(r"HOLDS (\d+)", after=said)[1])}
        with urllib.request.urlopen(f"{self._target.url}/metrics", timeout=_DEADLINE) as response:
            for line in response.read().decode().splitlines():
                if _GAUGE.match(line):
                    key, _, value = line.rpartition(" ")
                    held[key] = float(value)
        held["descriptors"] = float(len(list(Path(f"/proc/{process.pid}/fd").iterdir())))
        return held


def _join(ws: ClientConnection, role: str, name: str) -> None:
    ws.recv(timeout=_DEADLINE)  # Engine.IO's greeting
    ws.send("40/smcp,{}")
    ws.recv(timeout=_DEADLINE)
    member = {"role": role, "name": name, "office_id": "fuzz"}
    ws.send(f"42/smcp,0{json.dumps(['server:join_office', member])}")


def _hostile_computer(target: Target, seed: float, stop: threading.Event) -> None:
    """Acks what it is asked with anything at all, and comes back whenever it is thrown out."""
    source = random.Random(seed)
    url = f"ws://127.0.0.1:{target.port}/socket.io/?EIO=4&transport=websocket"
    while not stop.is_set():
        with (
            suppress(ConnectionClosed, InvalidHandshake, OSError, TimeoutError),
            connect(url, additional_headers={"x-api-key": KEY}, max_size=None, proxy=None, close_timeout=0.1) as ws,
        ):
            _join(ws, "computer", "victim")
            while not stop.is_set():
                with suppress(TimeoutError):
                    text = ws.recv(timeout=0.2)
                    if text == "2":
                        ws.send("3")
                    elif isinstance(text, str) and (match := re.match(r"42/smcp,(\d+)\[", text)):
                        ws.send(f"43/smcp,{match[1]}{acks(source)}")
