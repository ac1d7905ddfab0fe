"""Keys and tokens at the processes of a cluster: each process checks for itself, and all of them agree."""

import asyncio
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from a2c_smcp.errors import ForbiddenError, UnauthorizedError
from a2c_smcp.link.interface import Disconnected, LinkEvent, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from tests.nats_server import NatsServer
from tests.oidc.forging import AUDIENCE, signed
from tests.oidc.issuer import Issuer, needs_issuer
from tests.oidc.issuer import running_issuer as running_issuer
from tests.server.admin.test_across import process
from tests.server.harness import eventually

pytestmark = pytest.mark.anyio
STAYS = '[[keys]]\nname = "stays"\nkey = "the-key-that-stays"\n'
GOES = '[[keys]]\nname = "goes"\nkey = "the-key-that-goes"\n'
RULES = 'leeway = 0\n[[allow]]\nwhen = { groups = "%s" }\n'


@pytest.fixture
def cluster(nats: NatsServer, prefix: str, tmp_path: Path) -> list[str]:
    """The options of every process."""
    key = tmp_path / "cluster.key"
    key.write_text("the key that these servers share\n")
    return ["--nats", nats.url, "--nats-prefix", prefix, "--cluster-key-file", str(key)]


def two(stack: ExitStack, folder: Path, *options: str) -> list[str]:
    """The URLs of two processes."""
    urls = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        urls.append(stack.enter_context(process(folder / name, *options))[0])
    return urls


def has_ended(events: list[LinkEvent]) -> bool:
    return any(isinstance(event, Disconnected) and event.final for event in events)


async def test_a_key_that_is_gone_from_the_file_ends_its_sessions_in_every_process(
    cluster: list[str], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.toml"
    keys.write_text(STAYS + GOES)
    with ExitStack() as stack:
        urls = two(stack, tmp_path, "--keys", str(keys), *cluster)
        told: list[list[LinkEvent]] = [[], []]
        links = [
            OfficeLink(LinkOptions(url, api_key="the-key-that-goes"), {}, on_event=events.append)
            for url, events in zip(urls, told, strict=True)
        ]
        quiet: list[LinkEvent] = []
        stays = OfficeLink(LinkOptions(urls[0], api_key="the-key-that-stays"), {}, on_event=quiet.append)
        async with links[0], links[1], stays:
            await stays.join(Membership("agent", "smith", "o"))
            for number, link in enumerate(links):
                await link.join(Membership("computer", f"laptop-{number}", "o"))
            began = time.monotonic()
            keys.write_text(STAYS)
            await eventually(lambda: all(map(has_ended, told)))
            assert time.monotonic() - began < 15  # a second, on a machine that is not busy; a ping would take 30
            assert not any(isinstance(event, Disconnected) for event in quiet)
        for url in urls:
            with pytest.raises(UnauthorizedError):
                async with OfficeLink(LinkOptions(url, api_key="the-key-that-goes"), {}):
                    pass


@needs_issuer
async def test_a_token_counts_at_every_process_and_new_rules_end_its_sessions_there(
    cluster: list[str], tmp_path: Path, running_issuer: Issuer
) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text(RULES % "staff")
    oidc = ("--oidc", running_issuer.url, "--oidc-audience", AUDIENCE, "--oidc-rules", str(rules))
    with ExitStack() as stack:
        urls = two(stack, tmp_path, *oidc, *cluster)
        token = signed(running_issuer, groups=["staff"])
        told: list[list[LinkEvent]] = [[], []]
        links = [
            OfficeLink(LinkOptions(url, api_key=token, reconnect=False), {}, on_event=events.append)
            for url, events in zip(urls, told, strict=True)
        ]
        async with links[0], links[1]:
            await links[0].join(Membership("agent", "smith", "o"))
            await links[1].join(Membership("computer", "laptop", "o"))
            rules.write_text(RULES % "board")
            await eventually(lambda: all(any(isinstance(each, Disconnected) for each in events) for events in told))
        for url in urls:
            async with asyncio.timeout(60):
                with pytest.raises((ForbiddenError, UnauthorizedError)):
                    async with OfficeLink(LinkOptions(url, api_key=token), {}):
                        pass
