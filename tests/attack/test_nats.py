"""What somebody can do who is let into NATS: two servers there, and an honest pair across them.

The intruder is let in with the credentials of the servers, the most that can be lost but for the cluster key, or with
those of another user of the same account.
"""

import asyncio
import json
import re
import secrets
import socket
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client as NatsClient

from a2c_smcp.server.cluster.bucket import Bucket
from a2c_smcp.server.cluster.bus_frames import AskFrame, PingFrame, encode
from a2c_smcp.server.cluster.connection import NatsConnection
from a2c_smcp.server.cluster.keys import Entry, claim_key, encode_claim, read_claim
from a2c_smcp.server.cluster.line import Subjects
from a2c_smcp.server.cluster.nats_keys import Account, new_seed, server_permissions
from a2c_smcp.server.cluster.nats_setup import make_files, write_files
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.seal import FrameSeal
from a2c_smcp.server.offices import Member
from tests.attack.harness import Pair, Target, honest_pair, target
from tests.nats_server import running_nats
from tests.server.raw import is_closed, joined, receive_until, send_text

SUBJECTS = Subjects("a2c")
BUCKET = "$KV.a2c-members."
PURGE = {"KV-Operation": "PURGE", "Nats-Rollup": "sub"}
#: A process that is remembered costs more than a kilobyte: so many of them would be seen.
MANY = 10_000
#: Messages that wait for a server at a time. They are read before what the honest ones send then: so long those wait,
#: and nothing but the permissions of NATS keeps somebody from sending more.
LOT = 1000
#: An agent at a process of the intruder's.
EVIL = Member("sid", "agent", "evil", "forged", "evil")
NOBODY, OTHER_KEY = FrameSeal(), FrameSeal([b"a key that the servers do not have"])


@dataclass(frozen=True)
class Scene:
    nats: str
    keys: Path
    servers: list[Target]
    pair: Pair

    def dropped(self, reason: str) -> float:
        return sum(metric(server, f'a2c_messages_dropped_across_total{{reason="{reason}"}}') for server in self.servers)


def metric(server: Target, name: str) -> float:
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=60) as reply:
        lines = reply.read().decode().splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("nats")
    keys = folder / "keys"
    write_files(keys, make_files("a2c", ["127.0.0.1"]))
    with ExitStack() as exits:
        nats = exits.enter_context(running_nats(folder / "nats", ["--config", str(keys / "auth.conf")]))
        options = ["--nats", nats.url, "--nats-creds", str(keys / "server.creds")]
        options += ["--cluster-key-file", str(keys / "cluster.key")]
        servers = [exits.enter_context(target(folder, "async", *options)) for _ in range(2)]
        until(lambda: all(metric(server, "a2c_processes") == 2 for server in servers))
        yield Scene(nats.url, keys, servers, exits.enter_context(honest_pair(servers[0], agent_at=servers[1])))


# --- the intruder


class Intruder:
    """A connection to NATS, and what NATS complained of."""

    def __init__(self) -> None:
        self.client = NatsClient()
        self.complaints: list[str] = []

    async def complain(self, error: Exception) -> None:
        self.complaints.append(str(error))

    async def memberships(self) -> list[tuple[str, Member]]:
        """The keys and claims of everybody, from the bucket."""
        found: list[tuple[str, Member]] = []
        shown = asyncio.Event()

        def take(entry: Entry | None, pending: int) -> None:
            if entry is not None and (member := read_claim(entry)) is not None:
                found.append((f"{BUCKET}{entry.key}", member))
            if not pending:
                shown.set()

        connection = NatsConnection(ClusterOptions(("nats://127.0.0.1",)))
        connection.client = self.client
        watch = await Bucket(connection).watch(take, lambda: None)
        async with asyncio.timeout(60):
            await shown.wait()
        await watch.close()
        return found

    async def arrived(self, prefix: str) -> None:
        """Wait until NATS has all that was published. Its `flush` does not say so: nats-py writes the ping before what
        waits to be sent. And what is on its way is lost if a connection closes with something unread in it.
        """
        own = await self.client.subscribe(Subjects(prefix).probe_of(f"intruder-{secrets.token_hex(8)}"))
        await self.client.publish(own.subject, b"")
        await own.next_msg(60)

    async def write(self, receiver: str, sender: str, data: bytes, number: int = 0) -> None:
        await self.client.publish(SUBJECTS.inbox_of(receiver), data, SUBJECTS.reply(sender, receiver, number))


def intrude(scene: Scene, creds: Path, work: Callable[[Intruder], Awaitable[None]], prefix: str = "a2c") -> None:
    async def run() -> None:
        intruder = Intruder()
        await intruder.client.connect(scene.nats, user_credentials=creds, error_cb=intruder.complain)
        try:
            await work(intruder)
            await intruder.arrived(prefix)
        finally:
            await intruder.client.close()

    asyncio.run(run())


def with_stolen_credentials(scene: Scene, work: Callable[[Intruder], Awaitable[None]]) -> None:
    intrude(scene, scene.keys / "server.creds", work)


@contextmanager
def victim(server: Target, office: str) -> Iterator[socket.socket]:
    """A computer that says nothing, and shows what it is asked."""
    with joined(server.url) as sock:
        member = {"role": "computer", "name": "victim", "office_id": office}
        send_text(sock, f"42/smcp,1{json.dumps(['server:join_office', member])}")
        receive_until(sock, b"43/smcp,1[true")
        yield sock


def call(
    target: Member, req_id: str, *, revision: int = 0, number: int = 1, caller: str = "sid", more: str = ""
) -> bytes:
    """The frame that has a tool run."""
    request = {"agent": "a", "req_id": req_id, "computer": target.name, "tool_name": "rm", "params": {}, "timeout": 30}
    body = f'["client:tool_call",{json.dumps(request)[:-1]}{more}}}]'.encode()
    ask = AskFrame(
        *(number, revision, 1e18, len(body), caller, target.sid, target.office_id, target.name),
        *("client:tool_call", b"a", req_id.encode(), 30, False),
    )
    return encode(ask, body)


# --- F8


def test_a_forged_message_runs_no_tool_and_one_with_the_key_does(scene: Scene) -> None:
    key = FrameSeal([(scene.keys / "cluster.key").read_bytes().strip()])
    before = {reason: scene.dropped(reason) for reason in ("unsigned", "forged")}

    async def attack(intruder: Intruder) -> None:
        members = [member for _, member in await intruder.memberships()]
        [target] = [member for member in members if member.office_id == "forged"]
        [other] = {member.process for member in members} - {target.process}
        for number, sender in enumerate((other, target.process, "stranger")):
            for seal in (NOBODY, OTHER_KEY):
                forged = seal.sign(sender, target.process, call(target, f"forged-{number}"), 0.0)
                await intruder.write(target.process, sender, forged)
        # Who has the key, too, is a server: with a lease of its own, and a member, it is listened to.
        await intruder.client.publish(f"{BUCKET}n.evil", b"{}")
        claimed = await intruder.client.jetstream().publish(f"{BUCKET}{claim_key(EVIL)}", encode_claim(EVIL))
        control = call(target, "control", revision=claimed.seq)
        await intruder.write(target.process, "evil", key.sign("evil", target.process, control, 0.0))

    async def clean(intruder: Intruder) -> None:
        for entry in ("n.evil", claim_key(EVIL)):
            await intruder.client.publish(f"{BUCKET}{entry}", b"", headers=PURGE)

    with victim(scene.servers[0], "forged") as sock:
        during = scene.pair.watch(lambda: with_stolen_credentials(scene, attack))
        heard = receive_until(sock, b'"control"')
        with_stolen_credentials(scene, clean)
    assert b"forged-" not in heard
    assert {reason: scene.dropped(reason) - before[reason] for reason in before} == {"unsigned": 3, "forged": 3}
    assert during.calls and not during.failures and not during.departures


def test_what_was_overheard_is_not_acted_on_again(scene: Scene) -> None:
    before = scene.dropped("replayed")
    copies = 0

    async def attack(intruder: Intruder) -> None:
        nonlocal copies
        overheard: asyncio.Queue[Any] = asyncio.Queue()
        listening = await intruder.client.subscribe("a2c.p.*.m", cb=overheard.put)
        async with asyncio.timeout(60):
            messages = [await overheard.get() for _ in range(100)]
        await listening.unsubscribe()
        for _ in range(20):
            for message in messages:
                await intruder.client.publish(message.subject, message.data, message.reply)
                copies += 1

    during = scene.pair.watch(lambda: with_stolen_credentials(scene, attack))
    until(lambda: scene.dropped("replayed") - before >= copies)
    assert scene.dropped("replayed") - before == copies == 2000
    assert during.calls and not during.failures and not during.departures


def test_forged_senders_cost_no_memory_and_nobody_honest_notices(scene: Scene) -> None:
    server = scene.servers[0]

    async def attack(intruder: Intruder) -> None:
        [process] = {member.process for _, member in await intruder.memberships() if member.role == "computer"}
        ping, before = encode(PingFrame(0.0)), scene.dropped("unsigned")
        for number in range(MANY):
            if not number % LOT:
                await intruder.arrived("a2c")
                until(lambda number=number: scene.dropped("unsigned") - before >= number)  # type: ignore[misc]
            await intruder.write(process, f"forged-sender-{number}", ping)
        await intruder.arrived("a2c")
        until(lambda: scene.dropped("unsigned") - before == MANY)

    def flood() -> None:
        with_stolen_credentials(scene, attack)
        sizes.append(rss(server))

    sizes = [rss(server)]
    scene.pair.unharmed_by(flood)
    for _ in range(2):
        flood()
    assert sizes[1] - sizes[0] < 20 and sizes[3] - sizes[2] < 5, sizes
    assert len(server.log) < 100_000


def rss(server: Target) -> int:
    """What the server has in memory, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found
    return int(found[1]) // 1024


def test_another_user_of_nats_changes_nothing_and_only_permissions_protect_a_claim(scene: Scene) -> None:
    account = Account((scene.keys / "account.seed").read_text().strip())
    another = scene.keys / "another.creds"
    seed = new_seed("user", secrets.token_bytes(32))
    another.write_text(account.credentials("another", seed, server_permissions("other"), int(time.time())))
    claims: list[str] = []
    complaints: list[str] = []

    async def look(intruder: Intruder) -> None:
        claims.extend(key for key, member in await intruder.memberships() if member.office_id == "claims")

    async def delete(intruder: Intruder) -> None:
        await intruder.client.publish(claims[0], b"", headers=PURGE)

    async def attack(intruder: Intruder) -> None:
        await delete(intruder)
        await intruder.client.publish("$JS.API.STREAM.PURGE.KV_a2c-members", b"")
        await intruder.client.subscribe("a2c.p.>")
        await intruder.write("p", "q", b"x")
        await intruder.client.flush(30)
        async with asyncio.timeout(60):
            while len(intruder.complaints) < 4:  # noqa: ASYNC110 - nats-py calls back, and says no more
                await asyncio.sleep(0.01)
        complaints.extend(intruder.complaints)

    with victim(scene.servers[0], "claims") as sock:
        with_stolen_credentials(scene, look)
        during = scene.pair.watch(lambda: intrude(scene, another, attack, "other"))
        assert all("ermissions" in complaint for complaint in complaints), complaints
        # It is still there: it answers, and is disconnected only by who may write to the bucket.
        send_text(sock, '42/smcp,2["server:leave_office",{"office_id":"elsewhere"}]')
        receive_until(sock, b"43/smcp,2")
        with_stolen_credentials(scene, delete)
        assert is_closed(sock)
    assert during.calls and not during.failures and not during.departures


# --- who asks


FORGED = '{"name":"librarian","key":"library","bound":true}'
#: What an older process passes on of what its clients write.
PASSED_ON = [
    f',"a2c_from":{FORGED}',
    f',"a2c\\u005ffrom":{FORGED}',
    f',"a2c_from":{FORGED},"\\u0061\\u0032\\u0063_from":{FORGED} ',
    ',"a2c_dialect":"0.4"',
]
#: What the log says of requests whose sender is not who another process says.
REFUSALS = ("no agent of an office, as this", "the agent that asks is not in the office")


def stamps(sock: socket.socket, last: str) -> list[Any]:
    """The stamps of what a computer is asked, up to the request with this id. Each request has one, at its end."""
    heard = receive_until(sock, f'"{last}"'.encode())
    while not heard.endswith(b"]"):
        heard += sock.recv(65536)
    requests = re.findall(rb'\["client:tool_call",\s*(\{.*?\})\](?=\x81|$)', heard, re.DOTALL)
    found = []
    for request in requests:
        names, values = zip(*json.loads(request, object_pairs_hook=list), strict=True)
        assert names.count("a2c_from") == 1 and names[-1] == "a2c_from"
        found.append(dict(values[-1]))
    return found


async def lease_and_claim(intruder: Intruder, member: Member, claim: bytes = b"") -> int:
    """Become a process that holds this member. Returns the revision at which it is known."""
    await intruder.client.publish(f"{BUCKET}n.{member.process}", b"{}")
    written = await intruder.client.jetstream().publish(f"{BUCKET}{claim_key(member)}", claim or encode_claim(member))
    return int(written.seq)


def forget(scene: Scene, member: Member) -> None:
    async def work(intruder: Intruder) -> None:
        for entry in (f"n.{member.process}", claim_key(member)):
            await intruder.client.publish(f"{BUCKET}{entry}", b"", headers=PURGE)

    with_stolen_credentials(scene, work)


def test_what_an_older_process_passes_on_of_who_asks_is_not_believed(scene: Scene) -> None:
    key = FrameSeal([(scene.keys / "cluster.key").read_bytes().strip()])
    older = Member("sid", "agent", "planner", "passed-on", "older")
    claim = {"sid": "sid", "role": "agent", "name": "planner", "office_id": "passed-on", "process": "older"}

    async def attack(intruder: Intruder) -> None:
        [target] = [each for _, each in await intruder.memberships() if each.office_id == "passed-on"]
        revision = await lease_and_claim(intruder, older, json.dumps(claim).encode())
        for number, more in enumerate(PASSED_ON):
            asked = call(target, f"passed-{number}", revision=revision, number=number, more=more)
            await intruder.write(target.process, "older", key.sign("older", target.process, asked, 0.0))

    with victim(scene.servers[0], "passed-on") as sock:
        during = scene.pair.watch(lambda: with_stolen_credentials(scene, attack))
        seen = stamps(sock, f"passed-{len(PASSED_ON) - 1}")
        forget(scene, older)
    assert seen == [{"name": "planner", "bound": False}] * len(PASSED_ON)
    assert during.calls and not during.failures and not during.departures


def test_a_process_speaks_for_no_session_of_another_and_for_none_of_another_office(scene: Scene) -> None:
    key = FrameSeal([(scene.keys / "cluster.key").read_bytes().strip()])
    elsewhere = Member("sid", "agent", "speaker", "elsewhere", "speaker")

    async def attack(intruder: Intruder) -> None:
        members = [each for _, each in await intruder.memberships() if each.office_id == "spoken-for"]
        [target] = [each for each in members if each.role == "computer"]
        [librarian] = [each for each in members if each.role == "agent"]
        revision = await lease_and_claim(intruder, elsewhere)
        for number, caller in enumerate((librarian.sid, "sid", "nobody", target.sid)):
            asked = call(target, f"spoken-{number}", revision=revision, number=number, caller=caller)
            await intruder.write(target.process, "speaker", key.sign("speaker", target.process, asked, 0.0))
        await intruder.client.flush(30)
        until(lambda: sum(map(scene.servers[0].log.count, REFUSALS)) >= 4)

    with victim(scene.servers[0], "spoken-for") as sock, joined(scene.servers[1].url) as agent:
        member = {"role": "agent", "name": "librarian", "office_id": "spoken-for"}
        send_text(agent, f"42/smcp,1{json.dumps(['server:join_office', member])}")
        receive_until(agent, b"43/smcp,1[true")
        during = scene.pair.watch(lambda: with_stolen_credentials(scene, attack))
        request = {"agent": "a", "req_id": "own", "computer": "victim", "tool_name": "t", "params": {}, "timeout": 30}
        send_text(agent, f"42/smcp,2{json.dumps(['client:tool_call', request])}")
        seen = stamps(sock, "own")
        forget(scene, elsewhere)
    assert seen == [{"name": "librarian", "bound": False}]
    assert during.calls and not during.failures and not during.departures
