"""What a member of an office can do to others: each beside an honest pair of another office that must not notice."""

import itertools
import json
import queue
import re
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.attack.harness import Pair, Target, honest_pair, target

KEY = "secret"
MEBIBYTE = 2**20
DEADLINE = 60
#: What a member keeps of a message that it read.
MOST_KEPT = 20_000


#: For the rules of offices. Connections of a threaded server are python-socketio's, with its bounds.
BOTH = pytest.mark.parametrize("scene", ["async", "threaded"], indirect=True)


@pytest.fixture(scope="module", params=["async"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Pair]]:
    folder = tmp_path_factory.mktemp("members")
    with target(folder, request.param, api_key=KEY) as server, honest_pair(server) as pair:
        yield server, pair


class Member:
    """A raw client that has joined an office. It reads all the time, from when it is told to."""

    def __init__(self, ws: ClientConnection) -> None:
        self._ws = ws
        self._heard: queue.Queue[str | None] = queue.Queue()
        self._passed: deque[str] = deque(maxlen=1000)
        self._acks = itertools.count(1)
        self._reads = threading.Event()

    def read(self) -> None:
        self._reads.set()
        threading.Thread(target=self._read, daemon=True).start()

    def stay(self) -> None:
        """Answer pings without reading them: who does not read for as long as a busy machine needs is to be slow, and
        not gone.
        """
        threading.Thread(target=self._stay, daemon=True).start()

    def _stay(self) -> None:
        with suppress(ConnectionClosed):
            while not self._reads.wait(2):
                self.send("3")

    def _read(self) -> None:
        try:
            for text in self._ws:
                if text == "2":
                    self.send("3")  # to a ping
                else:
                    self._heard.put(str(text[:MOST_KEPT]))
        except ConnectionClosed:
            pass
        self._heard.put(None)

    def send(self, text: str) -> None:
        self._ws.send(text)

    def emit(self, event: str, data: Any) -> int:
        return self.emit_text(json.dumps([event, data]))

    def emit_text(self, body: str) -> int:
        ack_id = next(self._acks)
        self.send(f"42/smcp,{ack_id}{body}")
        return ack_id

    def until(self, start: str) -> str:
        while True:
            text = self._heard.get(timeout=DEADLINE)
            assert text is not None, "the server closed the connection"
            if text.startswith(start):
                return text
            self._passed.append(text)

    def told(self, event: str) -> str:
        """The next announcement of this event, also one that came while something else was waited for."""
        start = f'42/smcp,["{event}"'
        while self._passed:
            if (text := self._passed.popleft()).startswith(start):
                return text
        return self.until(start)

    def ack(self, ack_id: int) -> Any:
        return json.loads(self.until(f"43/smcp,{ack_id}[").removeprefix(f"43/smcp,{ack_id}"))

    def ask(self, event: str, data: Any) -> Any:
        return self.ack(self.emit(event, data))

    def in_room(self, office: str) -> set[str]:
        listed = self.ask("server:list_room", {"agent": "a", "req_id": "1", "office_id": office})
        return {session["name"] for session in listed[0]["sessions"]}


@contextmanager
def member(server: Target, role: str, name: str, office: str, *, reads: bool = True) -> Iterator[Member]:
    url = f"{server.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket"
    queued = 16 if reads else 1
    with connect(
        url,
        max_size=None,
        max_queue=queued,
        compression=None,
        ping_interval=None,
        open_timeout=DEADLINE,
        close_timeout=0.1,
    ) as ws:
        it = Member(ws)
        it.send("40/smcp," + json.dumps({"token": server.api_key}))
        joining = {"role": role, "name": name, "office_id": office}
        if reads:
            it.read()
            it.until("40/smcp")
            assert it.ask("server:join_office", joining) == [True, None]
        else:
            time.sleep(0.5)  # nothing is read, so that it has connected must be believed
            it.emit("server:join_office", joining)
            it.stay()
        yield it


#: A payload of 15 MiB in small pieces: values are what costs.
LARGE = '{"pieces":[' + ",".join(['"abcdefg"'] * (15 * MEBIBYTE // 10)) + "]}"


def call(computer: str) -> str:
    request = {"agent": "a", "req_id": "1", "computer": computer, "tool_name": "t", "timeout": 300}
    return f'["client:tool_call",{json.dumps(request)[:-1]},"params":{LARGE}}}]'


def rss(server: Target) -> int:
    """What the server has in memory, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) // 1024


# --- D3


@BOTH
def test_names_that_are_nested_deeply_are_answered_and_printed_nowhere(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    before = len(server.log)
    deep = "[" * 900 + "]" * 900

    with member(server, "computer", "deep", "office-d3") as deep_one:

        def attack() -> None:
            for number in range(1001, 1200):
                deep_one.send(f"42/smcp,{number}[{deep},{{}}]")
                assert deep_one.ack(number)[0]["error"]["code"] == 400
            deep_one.send(f'42/smcp,1200["client:get_tools",{{"req_id":{deep}}}]')
            assert deep_one.ack(1200)[0]["error"]["code"] == 400

        pair.unharmed_by(attack)
    assert "Traceback" not in server.log[before:]
    assert "never retrieved" not in server.log[before:]


# --- D9


def test_calls_that_nobody_answers_cost_no_memory(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    office = "office-d9"
    with member(server, "computer", "sink", office) as sink, member(server, "agent", "a", office) as agent:

        def attack() -> None:
            for _ in range(20):  # 300 MiB, and several times as much if they were kept as values
                agent.emit_text(call("sink"))
                sink.until("42/smcp,")

        before = rss(server)
        attack()
        pair.unharmed_by(attack, times=50)
        assert rss(server) - before < 250
        assert agent.in_room(office) == {"a", "sink"}


def test_calls_that_do_not_fit_are_refused_and_a_slow_computer_stays(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    office = "office-d9-slow"
    with (
        member(server, "agent", "a", office) as agent,
        member(server, "computer", "slow", office, reads=False) as slow,
    ):
        agent.until('42/smcp,["notify:enter_office"')
        first = 0

        def attack() -> None:
            nonlocal first
            first = agent.emit_text(call("slow"))
            for _ in range(7):
                agent.emit_text(call("slow"))
            reply = json.loads(agent.until("43/smcp,").partition("[")[2][:-1])
            assert reply["error"]["code"] == 429
            assert reply["isError"] is True

        pair.unharmed_by(attack, times=50)
        assert agent.in_room(office) == {"a", "slow"}
        # Now it reads, and answers the first of them.
        slow.read()
        while "client:tool_call" not in (text := slow.until("42/smcp,")):
            pass
        ack_id = text.removeprefix("42/smcp,").partition("[")[0]
        slow.send(f'43/smcp,{ack_id}[{{"content":[],"isError":false}}]')
        assert agent.ack(first) == [{"content": [], "isError": False}]


# --- D11


def test_a_computer_that_announces_without_end_is_noticed_by_nobody_elsewhere(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    office = "office-d11"
    times = 6000
    with ExitStack() as exits:
        members = [exits.enter_context(member(server, "computer", f"m{n}", office)) for n in range(60)]
        before = rss(server)

        def attack() -> None:
            for _ in range(times):
                members[0].emit("server:update_desktop", {})
            for _ in range(times):
                assert members[0].until("43/smcp,").endswith("[{}]")

        pair.unharmed_by(attack, times=50)
        assert rss(server) - before < 100
        for each in members[1:]:
            each.until('42/smcp,["notify:update_desktop"')
            assert each.ask("server:update_config", {}) == [{}]


# --- progress


def call_with_progress(computer: str) -> dict[str, Any]:
    request = {"agent": "a", "req_id": "1", "computer": computer, "tool_name": "t", "params": {}, "timeout": 300}
    return {**request, "progress": True}


def report(number: int, **more: Any) -> str:
    body = {"computer": "loud", "agent": "a", "req_id": "1", "progress": number, "message": "x" * 1000, **more}
    return "42/smcp," + json.dumps(["server:tool_progress", body])


@pytest.mark.parametrize("req_id", ["1", "2"], ids=["pending", "not-pending"])
def test_a_computer_that_reports_without_end_is_noticed_by_nobody_elsewhere(
    scene: tuple[Target, Pair], req_id: str
) -> None:
    server, pair = scene
    office = f"office-loud-{req_id}"
    times = 20_000
    logged = len(server.log)
    with member(server, "agent", "a", office) as agent, member(server, "computer", "loud", office) as loud:
        asked = agent.emit("client:tool_call", call_with_progress("loud"))
        ack_id = loud.until("42/smcp,").removeprefix("42/smcp,").partition("[")[0]
        seconds = 0.0

        def attack() -> None:
            nonlocal seconds
            began = time.monotonic()
            for number in range(times):
                loud.send(report(number, req_id=req_id))
            assert loud.ask("server:update_config", {}) == [{}]
            seconds = time.monotonic() - began

        pair.unharmed_by(attack, times=50)
        loud.send(f'43/smcp,{ack_id}[{{"content":[],"isError":false}}]')
        heard = 0
        while not (text := agent.until("4")).startswith(f"43/smcp,{asked}["):
            heard += "notify:tool_progress" in text
        assert heard == 0 if req_id == "2" else 1 <= heard <= 22 + 20 * seconds
        assert agent.in_room(office) == {"a", "loud"}
    assert "progress" not in server.log[logged:]


def test_reports_for_an_agent_that_does_not_read_neither_fill_its_queue_nor_end_it(
    scene: tuple[Target, Pair],
) -> None:
    server, pair = scene
    office = "office-progress-slow"
    with (
        member(server, "computer", "loud", office) as loud,
        member(server, "agent", "a", office, reads=False) as agent,
    ):
        loud.until('42/smcp,["notify:enter_office"')
        asked = agent.emit("client:tool_call", call_with_progress("loud"))
        ack_id = loud.until("42/smcp,").removeprefix("42/smcp,").partition("[")[0]
        before = rss(server)

        def attack() -> None:
            for number in range(5000):
                loud.send(report(number))
            assert loud.ask("server:update_config", {}) == [{}]

        pair.unharmed_by(attack, times=50)
        assert rss(server) - before < 50
        loud.send(f'43/smcp,{ack_id}[{{"content":[],"isError":false}}]')
        agent.read()
        assert agent.ack(asked) == [{"content": [], "isError": False}]
