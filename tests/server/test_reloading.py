"""Files that are read again while a server runs: keys, certificates and limits."""

import asyncio
import json
import os
import signal
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from a2c_smcp.errors import BadRequestError, UnauthorizedError
from a2c_smcp.link.interface import Disconnected, LinkEvent, LinkOptions, Membership, RejoinFailed
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.server.admin.client import AdminClient
from a2c_smcp.server.auth import APIKeyAuthentication, Key
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.limits_file import LimitsFileError, changed_limits, load_limits
from a2c_smcp.smcp import STAMP_FIELD
from a2c_smcp.utils.reloading import FileReloads, ReloadPart
from tests.certificates import Certificate, self_signed
from tests.server.harness import eventually
from tests.server.test_cli import running


@dataclass
class Reader:
    """Reads one file, and writes down what it read."""

    file: Path
    read: list[str] = field(default_factory=list)

    async def __call__(self) -> str | None:
        text = self.file.read_text("utf-8")
        if "broken" in text:
            raise ValueError(f"{self.file.name} is broken")
        self.read.append(text)
        return f"it says {text}"


@asynccontextmanager
async def watched(file: Path) -> AsyncIterator[tuple[Reader, FileReloads]]:
    replace(file, "first")
    reader = Reader(file)
    async with FileReloads([ReloadPart("words", (file,), reader)]) as reloads:
        yield reader, reloads


def replace(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    os.replace(new, file)


async def test_a_file_that_has_changed_is_read_and_a_broken_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with watched(tmp_path / "words") as (reader, reloads):
        replace(reader.file, "second")
        await eventually(lambda: reader.read == ["second"])
        reader.file.write_text("broken")
        await eventually(lambda: "the words stay as they were: words is broken" in caplog.text)
        reader.file.unlink()
        await eventually(lambda: "No such file" in caplog.text)
        replace(reader.file, "third")
        await eventually(lambda: reader.read == ["second", "third"])
        assert await reloads.reload() == ["it says third"]
        reloads.ask()
        await eventually(lambda: len(reader.read) == 4)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
async def test_a_fifo_is_not_read_and_stops_nothing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with watched(tmp_path / "words") as (reader, _):
        os.mkfifo(tmp_path / "fifo")
        os.replace(tmp_path / "fifo", reader.file)
        await eventually(lambda: "is not a regular file" in caplog.text)
        replace(reader.file, "second")
        await eventually(lambda: reader.read == ["second"])


async def test_a_file_that_is_being_written_is_waited_for(tmp_path: Path) -> None:
    async with watched(tmp_path / "words") as (reader, _):
        for number in range(8):
            reader.file.write_text(str(number))
            await asyncio.sleep(0.1)
        await eventually(lambda: reader.read[-1:] == ["7"])
        assert len(reader.read) <= 4  # not one for each write


def test_what_a_key_allows_now() -> None:
    old, other = Key(name="a", key="secret-a"), Key(name="b", key="secret-b")
    ring = APIKeyAuthentication([old, other])
    assert ring.current(old.grant) == old.grant
    ring.replace([Key(name="a", key="secret-a", offices=("lab",))])
    now = ring.current(old.grant)
    assert now is not None and now.offices == ("lab",)
    assert ring.current(other.grant) is None
    ring.revoke([old.fingerprint])
    ring.replace([old])
    assert ring.current(old.grant) is None
    with pytest.raises(ValueError, match="at least one"):
        ring.replace([])
    assert [grant.name for grant in ring.grants()] == ["a"]


BOUND = '[[keys]]\nname = "ci"\nkey = "the-key-of-planner"\nnames = [{}]\n'


async def test_the_names_of_a_key_are_read_again_and_end_who_has_another(tmp_path: Path) -> None:
    keys, asked = tmp_path / "keys.toml", list[Any]()
    keys.write_text(BOUND.partition("names")[0])

    async def answer(data: Any) -> Any:
        asked.append(data[STAMP_FIELD])
        return {"tools": [], "req_id": "1"}

    events: list[LinkEvent] = []
    with running("--keys", str(keys)) as process:
        options = LinkOptions(process.url, api_key="the-key-of-planner")
        async with (
            OfficeLink(options, {}, on_event=events.append) as agent,
            OfficeLink(options, {"client:get_tools": answer}) as computer,
        ):
            await agent.join(Membership("agent", "planner", "o"))
            await computer.join(Membership("computer", "pc", "o"))
            request = {"agent": "a", "req_id": "1", "computer": "pc"}

            async def stamp() -> Any:
                await agent.request("client:get_tools", request, 30)
                return asked[-1]

            assert await stamp() == {"name": "planner", "key": "ci", "bound": False}
            for names, bound in (('"planner", "pc"', True), ('"*"', False)):
                replace(keys, BOUND.format(names))
                async with asyncio.timeout(60):
                    while (await stamp())["bound"] is not bound:  # noqa: ASYNC110 - a server is asked, and tells nobody
                        await asyncio.sleep(0.05)
                assert await stamp() == {"name": "planner", "key": "ci", "bound": bound}
            assert not any(isinstance(event, Disconnected) for event in events)  # nobody had to come back for that
            replace(keys, BOUND.format('"pc"'))
            await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
            await eventually(lambda: any(isinstance(event, RejoinFailed) for event in events))
            refused = next(event.error for event in events if isinstance(event, RejoinFailed))
            assert refused.code == 403 and "'pc'" in refused.message
            assert computer.joined


@pytest.mark.parametrize(
    "text", ["max_message = 5", "pending_relays = 0", "pending_relays = '7'", "requests_per_second =", "[limits]"]
)
def test_a_limits_file_with_a_mistake_is_refused_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "limits.toml"
    file.write_text(text)
    with pytest.raises(LimitsFileError, match=r"limits\.toml"):
        load_limits(file, Limits())


def test_a_limits_file_counts_over_the_options(tmp_path: Path) -> None:
    file = tmp_path / "limits.toml"
    file.write_text("pending_relays = 3\nrequests_per_second = 2.5")
    options = Limits(max_timeout=7)
    found = load_limits(file, options)
    assert (found.pending_relays, found.requests_per_second, found.max_timeout) == (3, 2.5, 7)
    assert changed_limits(options, found) == "pending_relays is 3 now, requests_per_second is 2.5 now"
    assert changed_limits(found, options) == "pending_relays is 1024 now, requests_per_second is without a limit now"
    assert changed_limits(found, found) is None


# --- a whole server

STAYS = '[[keys]]\nname = "stays"\nkey = "the-key-that-stays"\n'
GOES = '[[keys]]\nname = "goes"\nkey = "the-key-that-goes"\n'
HERE_ONLY = '[[keys]]\nname = "goes"\nkey = "the-key-that-goes"\noffices = ["other"]\n'


def shown_certificate(url: str) -> str:
    address = urlsplit(url)
    return ssl.get_server_certificate((address.hostname or "", address.port or 0), timeout=30)


@dataclass(frozen=True)
class Files:
    """The files of one server. It begins with the first certificate."""

    folder: Path
    certificates: tuple[Certificate, Certificate]

    def __getitem__(self, name: str) -> Path:
        return self.folder / name

    def show(self, certificate: Certificate) -> None:
        for name, source in (("cert.pem", certificate.cert), ("key.pem", certificate.key)):
            replace(self[name], Path(source).read_text())

    @property
    def options(self) -> list[str]:
        names = {"keys": "keys.toml", "limits": "limits.toml", "tls-cert": "cert.pem", "tls-key": "key.pem"}
        return [part for option, name in names.items() for part in (f"--{option}", str(self[name]))]


@pytest.fixture
def files(tmp_path: Path) -> Files:
    certificates = self_signed(tmp_path, "127.0.0.1"), self_signed(tmp_path, "another", "127.0.0.1")
    found = Files(tmp_path, certificates)
    found.show(certificates[0])
    found["keys.toml"].write_text(STAYS + GOES)
    found["limits.toml"].write_text("")
    found["ca.pem"].write_text("".join(Path(each.cert).read_text() for each in certificates))
    return found


async def test_keys_certificates_and_limits_of_a_running_server(files: Files) -> None:
    keys, socket = files["keys.toml"], files["a.sock"]
    events: list[LinkEvent] = []
    with running(*files.options, "--admin-socket", str(socket)) as process:
        operator = AdminClient(socket=socket)
        stays, goes = (
            LinkOptions(process.url, api_key=f"the-key-that-{name}", ca=files["ca.pem"]) for name in ("stays", "goes")
        )
        async with OfficeLink(stays, {}) as agent, OfficeLink(goes, {}, on_event=events.append) as computer:
            await agent.join(Membership("agent", "smith", "o"))
            await computer.join(Membership("computer", "laptop", "o"))

            # Another certificate: new connections get it, and nobody is disconnected.
            before = await asyncio.to_thread(shown_certificate, process.url)
            files.show(files.certificates[1])
            await eventually(lambda: shown_certificate(process.url) != before)
            assert not any(isinstance(event, Disconnected) for event in events)

            # A broken file changes nothing, and an operator is told.
            replace(keys, "[[keys]")
            said = (await asyncio.to_thread(operator.post, "reload"))["reloaded"]
            assert any("the keys stay as they were" in sentence for sentence in next(iter(said.values())))
            async with OfficeLink(goes, {}):
                pass

            # Limits.
            replace(files["limits.toml"], "max_timeout = 5")
            process.popen.send_signal(signal.SIGHUP)
            request = {
                "agent": "smith",
                "req_id": "1",
                "computer": "laptop",
                "tool_name": "t",
                "params": {},
                "timeout": 6,
            }
            async with asyncio.timeout(30):
                while True:
                    (answer,) = await agent.request("client:tool_call", request, 30)
                    if "timeout" in json.dumps(answer):
                        break
                    await asyncio.sleep(0.05)
            assert answer["error"]["code"] == BadRequestError.default_code

            # A key that allows this office no more, and then a key that is gone.
            replace(keys, STAYS + HERE_ONLY)
            await eventually(lambda: any(isinstance(event, Disconnected) for event in events))
            replace(keys, STAYS)
            await eventually(lambda: any(isinstance(event, Disconnected) and event.final for event in events))
            with pytest.raises(UnauthorizedError):
                async with OfficeLink(goes, {}):
                    pass
            assert (await agent.request("server:list_room", {"agent": "smith", "req_id": "2", "office_id": "o"}, 30))[0]
        code, rest = await asyncio.to_thread(process.stop)
    assert code == 0
    assert "Traceback" not in rest
