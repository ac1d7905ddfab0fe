"""A server that takes the tokens of a real issuer: which count, for how long, and what they allow."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from a2c_smcp.errors import ForbiddenError, InternalError, SMCPError, UnauthorizedError
from a2c_smcp.link.interface import Disconnected, LinkOptions, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.oidc.checking import SyncTokenChecker, TokenChecker
from a2c_smcp.oidc.key_pacing import KeyPacing
from a2c_smcp.oidc.token_rules import TokenRules
from a2c_smcp.server import Limits
from a2c_smcp.server.token_auth import OidcAuthentication, SyncOidcAuthentication
from a2c_smcp.smcp import AUTHENTICATE_EVENT, GET_TOOLS_EVENT, LIST_ROOM_EVENT, STAMP_FIELD
from tests.oidc.forging import AUDIENCE, forged_tokens, signed
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer
from tests.server.harness import Running, async_server, eventually, sync_server
from tests.server.test_cli import run as run_server
from tests.server.test_cli import running as running_server

__all__ = ["running_issuer"]

pytestmark = [needs_issuer, pytest.mark.anyio]
_PACING = KeyPacing(pause=0.3)
#: The clocks are the same. A session ends when its token does.
_RULES = TokenRules.model_validate(
    {
        "leeway": 0,
        "allow": [
            {"when": {"groups": "admins"}, "offices": ["*"]},
            {"when": {"groups": "named"}, "offices": ["named"], "names": ["{preferred_username}"]},
            {"when": {"sub": "mach*"}, "roles": ["computer"], "offices": ["lab-*"]},
            {"roles": ["agent"], "offices": ["home-{sub}"]},
        ],
    }
)
_LIMITS = Limits(wrong_keys=None)
_COLOURS = ("async", "threads")


@pytest.fixture(scope="module")
def servers(running_issuer: Issuer) -> Iterator[dict[str, Running]]:
    running_issuer.add_machine()
    url, options = running_issuer.url, {"rules": _RULES, "keys": ["a-key"], "pacing": _PACING}
    with (
        async_server(OidcAuthentication(url, AUDIENCE, **options), _LIMITS) as one,  # type: ignore[arg-type]
        sync_server(SyncOidcAuthentication(url, AUDIENCE, **options), _LIMITS) as other,  # type: ignore[arg-type]
    ):
        yield {"async": one, "threads": other}


@pytest.fixture(params=_COLOURS)
def server(request: pytest.FixtureRequest, servers: dict[str, Running]) -> Running:
    return servers[request.param]


Check = Callable[[str], Awaitable[Any]]


@pytest.fixture(params=_COLOURS)
async def make_check(request: pytest.FixtureRequest, running_issuer: Issuer) -> AsyncIterator[Callable[[], Check]]:
    """Makes checkers of either colour."""
    async with contextlib.AsyncExitStack() as stack:

        def make() -> Check:
            if request.param == "async":
                checker = TokenChecker(running_issuer.url, [AUDIENCE], pacing=_PACING)
                stack.push_async_exit(checker.__aexit__)
                return checker.check
            in_thread = SyncTokenChecker(running_issuer.url, [AUDIENCE], pacing=_PACING)
            return lambda token: asyncio.to_thread(in_thread.check, token)

        yield make


@contextlib.asynccontextmanager
async def linked(url: str, key: Any, events: list[Any] | None = None, **more: Any) -> AsyncIterator[OfficeLink]:
    heard = [] if events is None else events
    async with OfficeLink(LinkOptions(url, api_key=key, **more), {}, on_event=heard.append) as link:
        yield link


def row(link: OfficeLink, server: Running) -> Any:
    return next(client for client in server.namespace._clients.values() if client.record.name == link.membership.name)  # type: ignore[union-attr]


# --- which tokens count


async def test_no_forged_token_counts(make_check: Callable[[], Check], running_issuer: Issuer) -> None:
    check = make_check()
    assert (await check(signed(running_issuer))).claims["sub"] == "ada"
    for what, token in forged_tokens(running_issuer).items():
        with pytest.raises(UnauthorizedError):
            print(what, await check(token))


async def test_keys_rotate_and_requests_for_unknown_keys_are_few(
    make_check: Callable[[], Check], running_issuer: Issuer
) -> None:
    check, before = make_check(), signed(running_issuer)
    await check(before)
    running_issuer.rotate()
    assert (await check(signed(running_issuer))).claims["sub"] == "ada"
    await check(before)
    running_issuer.rotate(keep=False)
    await check(signed(running_issuer))
    with pytest.raises(UnauthorizedError):
        await check(before)
    asked, began = running_issuer.hits("/jwks"), time.monotonic()
    unknown = signed(running_issuer, {"kid": "nobody's"})
    for refused in await asyncio.gather(*(check(unknown) for _ in range(10)), return_exceptions=True):
        assert isinstance(refused, UnauthorizedError)
    assert running_issuer.hits("/jwks") - asked <= 1 + (time.monotonic() - began) / _PACING.pause


async def test_known_keys_count_through_an_outage_and_none_is_no_verdict(
    make_check: Callable[[], Check], running_issuer: Issuer
) -> None:
    known, new, token = make_check(), make_check(), signed(running_issuer)
    await known(token)
    running_issuer.go_down()
    try:
        assert (await known(token)).claims["sub"] == "ada"
        with pytest.raises(InternalError, match="try again"):
            await new(token)
    finally:
        running_issuer.come_up()
    assert (await new(token)).claims["sub"] == "ada"


async def test_an_issuer_that_is_slow_stops_nobody_else(running_issuer: Issuer) -> None:
    async with TokenChecker(running_issuer.url, [AUDIENCE], pacing=KeyPacing(fresh=0.0, retry=0.0)) as checker:
        token = signed(running_issuer)
        await checker.check(token)
        running_issuer.delay(5)
        began = time.monotonic()
        for _ in range(20):
            await checker.check(token)
        assert time.monotonic() - began < 4
        running_issuer.delay(0)


@pytest.mark.parametrize("url", ["http://issuer.example", "ftp://127.0.0.1", "https://me:pw@issuer.example", "issuer"])
def test_an_issuer_that_is_not_safe_to_ask_is_refused(url: str) -> None:
    with pytest.raises(SMCPError):
        TokenChecker(url, [AUDIENCE])


# --- who comes in


async def test_a_token_lets_in_and_its_claims_say_where(server: Running, running_issuer: Issuer) -> None:
    machine = running_issuer.token(AUDIENCE)
    async with linked(server.url, machine) as link:
        await link.join(Membership("computer", "pc", "lab-1"))
        assert row(link, server).record.grant.name == "machine"
        with pytest.raises(ForbiddenError):
            await link.join(Membership("computer", "pc", "office"))
    bob = signed(running_issuer, sub="bob*", email="bob@example.com")
    # `Authorization: Bearer` is the other way.
    async with linked(server.url, None, headers={"Authorization": f"Bearer {bob}"}) as link:
        with pytest.raises(ForbiddenError):
            await link.join(Membership("agent", "b", "home-bobby"))  # a claim is no pattern
        await link.join(Membership("agent", "b", "home-bob*"))
        assert row(link, server).record.grant.name == "bob@example.com"
    async with linked(server.url, "a-key") as link:
        await link.join(Membership("agent", "keyed", "lab-1"))


async def test_a_computer_is_told_the_subject_of_a_token_and_its_names_hold(
    server: Running, running_issuer: Issuer
) -> None:
    asked: list[Any] = []

    async def answer(data: Any) -> Any:
        asked.append(data[STAMP_FIELD])
        return {"tools": [], "req_id": "1"}

    named = signed(running_issuer, sub="u-17", groups=["named"], preferred_username="eve")
    key_like = signed(running_issuer, sub="api-key", groups=["named"], preferred_username="mallory")
    request = {"agent": "a", "req_id": "1", "computer": "pc"}
    async with OfficeLink(LinkOptions(server.url, api_key="a-key"), {"client:get_tools": answer}) as computer:
        await computer.join(Membership("computer", "pc", "named"))
        async with linked(server.url, named) as link:
            with pytest.raises(ForbiddenError, match="the names 'eve', and not 'librarian'"):
                await link.join(Membership("agent", "librarian", "named"))
            await link.join(Membership("agent", "eve", "named"))
            await link.request(GET_TOOLS_EVENT, request, 30)
            other = signed(running_issuer, sub="u-18", groups=["named"], preferred_username="mallory")
            (refused,) = await link.request(AUTHENTICATE_EVENT, {"token": other}, 30)
            assert refused["error"]["code"] == 401
        async with linked(server.url, key_like) as link:
            await link.join(Membership("agent", "mallory", "named"))
            await link.request(GET_TOOLS_EVENT, request, 30)
    # A subject that is the name of a key is not said: it would look like that key.
    assert asked == [{"name": "eve", "key": "u-17", "bound": True}, {"name": "mallory", "bound": True}]


async def test_a_wrong_token_is_401_and_says_where_to_sign_in(server: Running, running_issuer: Issuer) -> None:
    forged = forged_tokens(running_issuer)
    for token in (forged["HMAC with the public key"], forged["no signature"], forged["another audience"], "no-key"):
        with pytest.raises(UnauthorizedError) as refused:
            async with linked(server.url, token):
                pass
        assert refused.value.details == {"issuer": running_issuer.url, "audience": AUDIENCE}
        assert token not in str(refused.value)


async def test_a_server_says_whose_tokens_it_takes(servers: dict[str, Running], running_issuer: Issuer) -> None:
    async with httpx2.AsyncClient() as client:
        answer = await client.get(f"{servers['async'].url}/.well-known/oauth-protected-resource")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    assert (answer.json()["resource"], answer.json()["authorization_servers"]) == (AUDIENCE, [running_issuer.url])


# --- sessions and the end of tokens


def _short(issuer: Issuer, seconds: float, **claims: Any) -> str:
    now = int(time.time())
    return signed(issuer, groups=["admins"], iat=now, exp=now + seconds, **claims)


async def test_a_client_brings_a_new_token_before_the_old_one_ends(server: Running, running_issuer: Issuer) -> None:
    events: list[Any] = []
    given: list[str] = []

    async def source() -> str:
        given.append(_short(running_issuer, 4, jti=str(len(given))))
        return given[-1]

    async with linked(server.url, source, events) as link:
        await link.join(Membership("agent", "lasting", "lab-long"))
        first = row(link, server).record.grant.expires_at
        await eventually(lambda: row(link, server).record.grant.expires_at >= first + 4, 60)
        (listed,) = await link.request(
            LIST_ROOM_EVENT, {"agent": "lasting", "req_id": "1", "office_id": "lab-long"}, 30
        )
        assert [each["name"] for each in listed["sessions"]] == ["lasting"]
        assert link.joined
    assert len(given) >= 3
    assert not [event for event in events if isinstance(event, Disconnected) and not event.final]


async def test_a_session_ends_with_its_token(server: Running, running_issuer: Issuer) -> None:
    events: list[Any] = []
    async with linked(server.url, _short(running_issuer, 2), events) as link:
        await link.join(Membership("agent", "ending", "lab-ends"))
        await eventually(lambda: any(isinstance(event, Disconnected) and event.final for event in events), 60)
        ends = [event for event in events if isinstance(event, Disconnected)]
        assert "401" in ends[-1].reason
        assert "expired" in ends[-1].reason


async def test_one_whose_token_came_too_late_is_ended_and_comes_back(server: Running, running_issuer: Issuer) -> None:
    events: list[Any] = []
    held: list[OfficeLink] = []

    async def source() -> str:
        if held and held[0].connected:
            raise InternalError("the issuer is away")
        return _short(running_issuer, 600 if held else 2)

    async with linked(server.url, source, events) as link:
        held.append(link)
        await link.join(Membership("agent", "late", "lab-late"))
        await eventually(lambda: any(isinstance(event, Disconnected) for event in events), 60)
        await eventually(lambda: link.joined, 60)
        (refused,) = await link.request(AUTHENTICATE_EVENT, {"token": forged_tokens(running_issuer)["expired"]}, 30)
        assert refused["error"]["code"] == 401
        elsewhere = signed(running_issuer, sub="carol")
        (refused,) = await link.request(AUTHENTICATE_EVENT, {"token": elsewhere}, 30)
        assert refused["error"]["code"] == 401
        assert link.joined
        assert (await link.request(AUTHENTICATE_EVENT, {"token": "a-key"}, 30)) == ({},)
        assert row(link, server).record.grant.name == "api-key"


async def test_a_server_process_takes_tokens_and_reads_its_rules_again(tmp_path: Path, running_issuer: Issuer) -> None:
    rules, keys = tmp_path / "rules.toml", tmp_path / "keys.toml"
    everybody = """name = "nickname"
[[allow]]
when = { groups = "admins" }
[[allow]]
roles = ["agent"]
offices = ["home-{sub}"]
"""
    rules.write_text(everybody)
    keys.write_text('[[keys]]\nname = "one"\nkey = "a-key"\n')
    options = (
        "--oidc",
        running_issuer.url,
        "--oidc-audience",
        AUDIENCE,
        "--oidc-rules",
        str(rules),
        "--keys",
        str(keys),
    )
    with running_server(*options) as server:
        async with (
            linked(server.url, signed(running_issuer, groups=["admins"]), reconnect=False) as admin,
            linked(server.url, signed(running_issuer, sub="dora"), reconnect=False) as other,
            linked(server.url, "a-key", reconnect=False) as keyed,
        ):
            await admin.join(Membership("agent", "admin", "lab-1"))
            await other.join(Membership("agent", "dora", "home-dora"))
            rules.write_text("allow = 7")  # a mistake changes nothing
            keys.write_text('[[keys]]\nname = "two"\nkey = "another"\n')
            await eventually(lambda: not keyed.connected, 30)
            assert admin.joined
            assert other.joined
            rules.write_text(everybody.rpartition("[[allow]]")[0])
            await eventually(lambda: not other.connected, 30)
            assert admin.joined


def test_options_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    def said(*options: str) -> str:
        ended = run_server("--port", "0", *options)
        assert ended.returncode != 0
        return " ".join(ended.stderr.split())

    assert "--oidc-audience" in said("--oidc", "https://issuer.example")
    assert "https://" in said("--oidc", "http://issuer.example", "--oidc-audience", "x")
    (tmp_path / "rules.toml").write_text('[[allow]]\nroles = ["boss"]')
    rules = str(tmp_path / "rules.toml")
    assert "roles" in said("--oidc", "https://issuer.example", "--oidc-audience", "x", "--oidc-rules", rules)
