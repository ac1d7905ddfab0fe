"""Hostile frames on NATS at a server that shares a key with another process: none may be acted on, and nothing kept.

The other process is honest, and is here. It pings the server after every lot of hostile frames, and must be answered.
"""

import asyncio
import random
import sys
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from nats.aio.client import Client as NatsClient

from a2c_smcp.server.cluster.bus_frames import (
    AgainFrame,
    AskFrame,
    BusFrame,
    ChunkFrame,
    CreditFrame,
    NoticeFrame,
    PingFrame,
    PongFrame,
    ReplyFrame,
    WithdrawFrame,
    decode,
    encode,
)
from a2c_smcp.server.cluster.clock import now
from a2c_smcp.server.cluster.line import Subjects
from a2c_smcp.server.cluster.seal import FrameSeal
from tests.attack.harness import Target
from tests.attack.processes import started
from tests.fuzz.run import KEY, MAX_LOG, Fuzzer
from tests.nats_server import running_nats

__all__ = ["fuzz_nats"]

_CLUSTER_KEY: Final = "the key that the servers of the fuzzer share"
_SUBJECTS: Final = Subjects("a2c")
_ME: Final = "fuzzer"
_LOT: Final = 200
_DEADLINE: Final = 60.0


def fuzz_nats(folder: Path, frames: int, seed: int, say: Callable[[str], object] = lambda _: None) -> list[str]:
    """Fire so many frames at a new server; what is wrong in the end."""
    with running_nats(folder / "nats") as nats:
        command = [sys.executable, str(Path(__file__).with_name("spied_server.py")), "--port", "0", "--api-key", KEY]
        command += ["--nats", nats.url, "--cluster-key", _CLUSTER_KEY]
        with started(command, folder / "nats.log") as process:
            target = Target(process.says(r"ready on (http://[\d.]+:\d+)")[1], process, folder, KEY)
            process.says("membership: in order")
            return asyncio.run(_FrameFuzzer(target, seed, say).run(nats.url, frames))


class _FrameFuzzer:
    def __init__(self, target: Target, seed: int, say: Callable[[str], object]) -> None:
        self._target = target
        self._random = random.Random(seed)
        self._say = say
        self._holdings = Fuzzer(target, seed, say)
        self._client = NatsClient()
        self._seal = FrameSeal([_CLUSTER_KEY.encode()])
        self._server = ""
        self._pongs: asyncio.Queue[float] = asyncio.Queue()
        self._honest: list[bytes] = []
        self._sent: Counter[str] = Counter()

    async def run(self, url: str, frames: int) -> list[str]:
        await self._client.connect(url)
        try:
            await self._join()
            await self._ping()
            before = await asyncio.to_thread(self._holdings._holdings)
            while sum(self._sent.values()) < frames:
                for _ in range(_LOT):
                    await self._attack()
                try:
                    await self._ping()
                except TimeoutError:
                    return [f"a ping was not answered after {dict(self._sent)}"]
            problems = await asyncio.to_thread(self._acted_on)
            problems += await asyncio.to_thread(self._holdings._settle, before)
        finally:
            await self._client.close()
        self._say(f"nats: {sum(self._sent.values())} frames, {len(self._honest)} answers")
        log = self._target.log
        if len(log) > MAX_LOG:
            problems.append(f"the log has {len(log)} characters")
        return problems + [f"the log has {word!r}" for word in ("Traceback", "never retrieved") if word in log]

    async def _join(self) -> None:
        """Take a lease, so that the server knows this process, and find the server."""
        js = self._client.jetstream()
        info = await js.stream_info("KV_a2c-members", subjects_filter="$KV.a2c-members.n.*")
        (self._server,) = (subject.rpartition(".")[2] for subject in info.state.subjects or {})
        await self._client.subscribe(_SUBJECTS.all_of(_ME), cb=self._take)
        await js.publish(f"$KV.a2c-members.n.{_ME}", b"{}")

    async def _take(self, message: Any) -> None:
        frame, _ = decode(self._seal.open(self._server, _ME, message.data).frame)
        if isinstance(frame, PongFrame):
            self._pongs.put_nowait(frame.sent)

    async def _ping(self) -> None:
        sent = now()
        signed = self._seal.sign(_ME, self._server, encode(PingFrame(sent)), sent)
        self._honest.append(signed)
        await self._write(_ME, signed)
        async with asyncio.timeout(_DEADLINE):
            while await self._pongs.get() != sent:
                pass

    async def _write(self, sender: str, data: bytes) -> None:
        await self._client.publish(_SUBJECTS.inbox_of(self._server), data, _SUBJECTS.reply(sender, self._server, 0))

    # --- ways to attack

    async def _attack(self) -> None:
        attack = self._random.choice(
            (self._unsigned, self._forged, self._mutated, self._replayed, self._stranger, self._garbage, self._odd)
        )
        await attack()
        self._sent[attack.__name__] += 1

    async def _unsigned(self) -> None:
        await self._write(_ME, encode(_frame(self._random), self._random.randbytes(50)))

    async def _forged(self) -> None:
        other = FrameSeal([self._random.randbytes(32)])
        await self._write(_ME, other.sign(_ME, self._server, encode(_frame(self._random)), now()))

    async def _mutated(self) -> None:
        data = bytearray(self._random.choice(self._honest))
        data[self._random.randrange(len(data))] ^= self._random.randrange(1, 256)
        end = self._random.choice((len(data), len(data), self._random.randrange(len(data))))
        await self._write(_ME, bytes(data[:end]))

    async def _replayed(self) -> None:
        await self._write(self._random.choice((_ME, _ME, "another")), self._random.choice(self._honest))

    async def _stranger(self) -> None:
        sender = f"stranger-{self._random.randrange(10**9)}"
        seal = self._random.choice((FrameSeal(), FrameSeal([_CLUSTER_KEY.encode()])))
        await self._write(sender, seal.sign(sender, self._server, encode(_frame(self._random)), now()))

    async def _garbage(self) -> None:
        """By somebody who has the key."""
        await self._write(_ME, self._seal.sign(_ME, self._server, b"\xff" + self._random.randbytes(60), now()))

    async def _odd(self) -> None:
        subject = f"a2c.p.{self._server}.{self._random.choice(('m', 'x', 'r.x.1', f'r.{_ME}.x', 'm.m.m.m.m'))}"
        reply = self._random.choice(("", "x", f"a2c.p.{_ME}.r.{self._server}.x", f"a2c.p.{_ME}.{self._server}.1"))
        headers = self._random.choice((None, {"Status": "503"}, {"Status": "x" * 500}))
        await self._client.publish(subject, self._random.randbytes(self._random.randrange(99)), reply, headers)

    def _acted_on(self) -> list[str]:
        """What the server has taken that was not an honest ping."""
        with urllib.request.urlopen(f"{self._target.url}/metrics", timeout=_DEADLINE) as response:
            lines = response.read().decode().splitlines()
        heard = [line for line in lines if line.startswith('a2c_messages_across_total{direction="heard"')]
        honest = f'a2c_messages_across_total{{direction="heard",kind="ping"}} {float(len(self._honest))}'
        return [f"the server acted on something: {line}" for line in heard if line != honest]


def _frame(source: random.Random) -> BusFrame:
    """A frame as it should be, but for what it says."""
    number, moment = source.randrange(-(2**31), 2**62), source.choice((0.0, 1e18, -1e18, now()))
    return source.choice(
        (
            AskFrame(number, number, moment, number, "s", "t", "o", "c", "client:tool_call", b"a", b"r", 1, True),
            ReplyFrame(number, number),
            ChunkFrame(number, of_ask=source.random() < 0.5, instant=moment),
            CreditFrame(),
            WithdrawFrame(number),
            NoticeFrame(number, "o", "notify:update_config", "s", collapses=True),
            PingFrame(moment, (number,) * source.randrange(9)),
            PongFrame(moment, moment),
            AgainFrame(),
        )
    )
