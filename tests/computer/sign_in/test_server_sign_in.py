"""The sign-in at one server, beside a service that misbehaves: outages, refusals, shutdowns and missing rights."""

import asyncio
import time
from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import TypeAdapter

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import MissingSignIn
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.sign_in.token_store import MemoryStore, key_of
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError
from tests.computer.fakes.computers import text
from tests.computer.sign_in.fake_service import Answer, CountingStore, FakeService, fake_service
from tests.computer.sign_in.protected import DEADLINE, sign_in_of, until

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("kind", ["streamable", "sse"])


async def call(computer: Computer, tool: str = "echo", timeout: float = DEADLINE) -> Any:
    return await computer.execute_tool("r", tool, {}, timeout=timeout)


async def eventually(is_so: Any) -> None:
    with anyio.fail_after(DEADLINE):
        while not is_so():  # noqa: ASYNC110 - a state
            await anyio.sleep(0.01)


async def read_again(store: CountingStore) -> None:
    """Wait until the Computer has looked several times whether another process has signed in."""
    enough = store.loads + 5
    await eventually(lambda: store.loads >= enough)


async def kept_in(store: MemoryStore, service: FakeService, path: str = "/mcp") -> dict[str, Any]:
    kept = await store.load(key_of("s", service.url + path, None))
    assert kept is not None
    return kept.tokens or {}


def computer_of(service: FakeService, store: MemoryStore, kind: str = "streamable", **parameters: Any) -> Computer:
    return Computer("pc", mcp_servers=[service.config(kind, **parameters)], sign_in_store=store)


async def expire(computer: Computer, store: MemoryStore, service: FakeService, seconds: float) -> None:
    """The kept token ends in so many seconds."""
    key = key_of("s", f"{service.url}/mcp", None)
    kept = await store.load(key)
    assert kept is not None
    await store.save(key, replace(kept, expires_at=time.time() + seconds))
    sign_in = computer._sign_ins._servers["s"]
    sign_in._kept = None


async def test_a_server_that_refuses_every_token_asks_once_and_waits() -> None:
    async with fake_service() as service:
        service.accepts = lambda token: False
        store = await service.signed_in()
        computer = computer_of(service, store)
        computer._sign_ins._pause = 0.02
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                await until(computer, ServerState.SIGN_IN)
                first = await sign_in_of(computer)
                renewals = len(service.forms)
                await read_again(store)  # the renewed token in it is no sign-in
                assert [each.id for each in computer.decisions.pending] == [first.id]
                assert len(service.forms) == renewals
                # Another Computer of the same user renews its token. That is no sign-in either.
                await service.keep(store, tokens={"access_token": "x", "refresh_token": "y", "token_type": "Bearer"})
                await read_again(store)
                assert [each.id for each in computer.decisions.pending] == [first.id]
                # But a sign-in in another process is one.
                service.accepts = lambda token: token == "access-0"
                await service.keep(store, signed_in_at=2.0)
                await until(computer, ServerState.RUNNING)
                assert not computer.decisions.pending


@BOTH
@pytest.mark.parametrize(
    "answer",
    [
        Answer(503, {"error": "temporarily_unavailable"}),
        Answer(403, b"<html>a firewall</html>"),
        Answer(404, {"error": "not_found"}),
        Answer(302, None, "location: https://login.example/\r\n"),
        Answer(200, b"<html>a captive portal</html>"),
        Answer(400, {"error": "temporarily_unavailable"}),
    ],
    ids=lambda answer: f"{answer.status}",
)
async def test_an_issuer_that_cannot_renew_now_is_no_sign_out(answer: Answer, kind: str) -> None:
    async with fake_service() as service:
        service.accepts = lambda token: token not in ("", "access-0")
        service.token_answer = lambda form: answer
        store = await service.signed_in(kind, expires_in=-5)
        computer = computer_of(service, store, kind)
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                await until(computer, ServerState.BACKING_OFF)
                assert "it cannot be signed in" in (computer.statuses[0].reason or "")
                assert not computer.decisions.pending and not service.requests  # neither bare nor with the old token
                service.token_answer = service.without_reuse
                service.forms.clear()
                await until(computer, ServerState.RUNNING)
                assert service.forms[0]["refresh_token"] == "refresh-0"
                assert text(await call(computer)) == "echo"


async def test_an_outage_that_begins_while_the_server_runs_is_no_sign_out() -> None:
    async with fake_service() as service:
        store = await service.signed_in()
        async with computer_of(service, store) as computer:
            assert text(await call(computer)) == "echo"
            service.token_answer = lambda form: Answer(503)
            service.accepts = lambda token: token not in ("", "access-0")
            result = await call(computer)  # refused, and the token cannot be renewed
            assert result.is_error and (result.meta or {}).get("state") != "sign_in"
            await until(computer, ServerState.BACKING_OFF)
            service.token_answer = service.new_tokens
            await until(computer, ServerState.RUNNING)


async def test_a_refused_refresh_token_asks_a_person() -> None:
    async with fake_service() as service:
        service.accepts = lambda token: token not in ("", "access-0")
        service.token_answer = lambda form: Answer(400, {"error": "invalid_grant"})
        store = await service.signed_in(expires_in=-5)
        async with computer_of(service, store) as computer:
            await until(computer, ServerState.SIGN_IN)
            assert await kept_in(store, service) == {}


@pytest.mark.parametrize("how", ["shutdown", "restart", "sign out"])
async def test_a_new_refresh_token_is_kept_however_the_renewal_is_interrupted(how: str) -> None:
    async with fake_service() as service:
        service.token_answer = service.without_reuse
        store = await service.signed_in()
        async with computer_of(service, store) as computer:
            await expire(computer, store, service, -5 if how == "restart" else 5)
            service.may_answer.clear()
            calling = asyncio.create_task(call(computer))
            await asyncio.wait_for(service.asked.wait(), DEADLINE)
            asyncio.get_running_loop().call_later(0.3, service.may_answer.set)
            if how == "restart":
                await computer.restart_server("s")
                await calling
                await until(computer, ServerState.RUNNING)
            elif how == "sign out":
                await calling
                assert await computer.sign_out("s")
                assert not await computer.is_signed_in("s")
                assert service.revoked == ["refresh-1"]
                return
            else:
                await calling
        assert [form["refresh_token"] for form in service.forms] == ["refresh-0"]
        assert (await kept_in(store, service))["refresh_token"] == "refresh-1"


async def test_requests_share_one_renewal() -> None:
    async with fake_service() as service:
        store = await service.signed_in()
        async with computer_of(service, store) as computer:
            await expire(computer, store, service, -5)
            service.may_answer.clear()
            calls = [asyncio.create_task(call(computer)) for _ in range(8)]
            await asyncio.wait_for(service.asked.wait(), DEADLINE)
            await anyio.wait_all_tasks_blocked()
            service.may_answer.set()
            assert {text(await each) for each in calls} == {"echo"}
            assert len(service.forms) == 1 and {token for _, token in service.calls} == {"access-1"}


async def test_requests_share_one_renewal_that_fails() -> None:
    async with fake_service() as service:
        service.token_answer = lambda form: Answer(503)
        store = await service.signed_in(expires_in=-5)
        async with Computer("pc", mcp_servers=[], sign_in_store=store) as computer:
            sign_in = computer._sign_ins.of(TypeAdapter(MCPServerConfig).validate_python(service.config()))
            assert sign_in is not None
            said = await asyncio.gather(*(sign_in.bearer() for _ in range(8)), return_exceptions=True)
            assert all(isinstance(each, IssuerSilentError) for each in said)
            assert len(service.forms) == 1


async def test_a_sign_in_whose_config_changes_asks_nobody_any_more() -> None:
    async with fake_service() as service:
        wants_write(service)
        computer = computer_of(service, await service.signed_in())
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                calling = asyncio.create_task(call(computer, "write"))
                await sign_in_of(computer)
                new = service.config(oauth={"scopes": ["other"]})
                computer._sign_ins.of(TypeAdapter(MCPServerConfig).validate_python(new))
                await eventually(lambda: not computer.decisions.pending)
                assert (await calling).is_error


async def test_two_computers_on_one_store_use_no_refresh_token_twice() -> None:
    async with fake_service() as service:
        service.token_answer = service.without_reuse
        store = await service.signed_in(expires_in=5)
        async with computer_of(service, store) as one, computer_of(service, store) as two:
            for _ in range(3):
                await expire(one, store, service, -5)
                two._sign_ins._servers["s"]._kept = one._sign_ins._servers["s"]._kept
                results = await asyncio.gather(call(one), call(two))
                assert {text(each) for each in results} == {"echo"}
        used = [form["refresh_token"] for form in service.forms]
        assert len(set(used)) == len(used)


async def test_a_wrong_key_in_a_header_is_no_sign_in() -> None:
    async with fake_service() as service:
        service.accepts, service.has_metadata = lambda token: False, False
        computer = computer_of(service, MemoryStore(), headers={"X-Api-Key": "wrong"})
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                await until(computer, ServerState.FAILED)
                assert "headers in its config" in (computer.statuses[0].reason or "")
                assert not service.registered
        service.has_metadata = True  # a header may be about something else
        computer = computer_of(service, MemoryStore(), headers={"X-Tenant": "7"})
        async with computer:
            await until(computer, ServerState.SIGN_IN)


# --- more rights for a call


def wants_write(service: FakeService) -> None:
    """`write` needs a token that a person has given more rights to."""
    more: set[str] = set()

    def answer(form: dict[str, str]) -> Answer:
        given = service.new_tokens(form)
        if "write" in form.get("code", ""):
            more.add(given.body["access_token"])
        return given

    service.token_answer = answer
    service.refuses_call = lambda tool, token: None if tool == "echo" or token in more else "write"


@BOTH
async def test_a_call_that_needs_more_rights_asks_and_is_retried_once(kind: str) -> None:
    async with fake_service() as service:
        wants_write(service)
        store = await service.signed_in(kind)
        computer = computer_of(service, store, kind)
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                calls = [asyncio.create_task(call(computer, "write")) for _ in range(3)]
                decision = await sign_in_of(computer)
                assert decision.is_step_up and "write" in decision.scopes
                assert text(await call(computer)) == "echo"  # others do not wait for the person
                assert computer.statuses[0].state is ServerState.RUNNING
                await service.come_back(decision)
                assert {text(await each) for each in calls} == {"write"}
                assert [tool for tool, _ in service.calls] == ["echo", "write", "write", "write"]
                assert text(await call(computer, "write")) == "write" and not computer.decisions.pending


@BOTH
async def test_a_call_without_rights_fails_at_once_if_nobody_can_be_asked(kind: str) -> None:
    async with fake_service() as service:
        service.refuses_call = lambda tool, token: "write" if tool == "write" else None
        async with computer_of(service, await service.signed_in(kind), kind) as computer:
            with anyio.fail_after(DEADLINE / 2):
                assert (await call(computer, "write", timeout=10 * DEADLINE)).is_error
            assert computer.statuses[0].state is ServerState.RUNNING
            assert text(await call(computer)) == "echo"


@BOTH
async def test_a_call_is_cancelled_while_a_person_is_asked_and_a_stop_withdraws_the_question(kind: str) -> None:
    async with fake_service() as service:
        wants_write(service)
        computer = computer_of(service, await service.signed_in(kind), kind)
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                calling = asyncio.create_task(call(computer, "write", timeout=10 * DEADLINE))
                await sign_in_of(computer)
                calling.cancel()
                with anyio.fail_after(DEADLINE):
                    await asyncio.wait({calling})
                assert computer.decisions.pending  # the person may be at it
                await computer.stop_server("s")
                await eventually(lambda: not computer.decisions.pending)


@BOTH
async def test_rights_that_do_not_help_are_asked_for_once_for_each_sign_in(kind: str) -> None:
    async with fake_service() as service:
        service.refuses_call = lambda tool, token: "write" if tool == "write" else None
        asked: list[MissingSignIn] = []

        async def person(decision: Any) -> None:
            asked.append(decision)
            await service.come_back(decision)

        computer = computer_of(service, await service.signed_in(kind), kind)
        with computer.decisions.attend("test", {"sign_in"}, person):
            async with computer:
                for _ in range(3):
                    assert (await call(computer, "write")).is_error
                assert len(asked) == 1
                await computer.sign_out("s")
                await service.keep(computer._sign_ins._store, kind, signed_in_at=2.0)
                await computer.start_server("s")
                assert (await call(computer, "write")).is_error
                assert len(asked) == 2  # another sign-in


async def test_a_token_that_is_renewed_during_a_call_has_no_more_rights() -> None:
    async with fake_service() as service:
        wants_write(service)
        store = await service.signed_in()
        computer = computer_of(service, store)
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                refuse = service.refuses_call

                def renew_meanwhile(tool: str, token: str) -> str | None:
                    if token == "access-0":
                        sign_in = computer._sign_ins._servers["s"]
                        assert sign_in._kept is not None
                        new = {**(sign_in._kept.tokens or {}), "access_token": "access-renewed"}
                        sign_in._kept = replace(sign_in._kept, tokens=new)
                    return refuse(tool, token)

                service.refuses_call = renew_meanwhile
                calling = asyncio.create_task(call(computer, "write"))
                await service.come_back(await sign_in_of(computer))
                assert text(await calling) == "write"


async def test_an_issuer_that_refuses_the_scope_gets_a_new_client() -> None:
    async with fake_service() as service:
        wants_write(service)
        computer = computer_of(service, await service.signed_in())
        with computer.decisions.attend("test", {"sign_in"}):
            async with computer:
                calling = asyncio.create_task(call(computer, "write"))
                first = await sign_in_of(computer)
                registered = len(service.registered)
                await service.come_back(first, error="invalid_scope")
                await eventually(lambda: [each.id for each in computer.decisions.pending] not in ([], [first.id]))
                second = await sign_in_of(computer)
                assert len(service.registered) == registered + 1
                await service.come_back(second)
                assert text(await calling) == "write"


# --- calls beside each other


@BOTH
async def test_calls_overlap_and_a_cancel_arrives_before_the_tool_ends(kind: str) -> None:
    async with fake_service() as service:
        service.may_call.clear()
        async with computer_of(service, await service.signed_in(kind), kind) as computer:
            calls = [asyncio.create_task(call(computer)) for _ in range(8)]
            await eventually(lambda: service.open_calls == 8)
            calls[0].cancel()
            await asyncio.wait({calls[0]}, timeout=DEADLINE)
            await eventually(lambda: any(method == "notifications/cancelled" for method, _ in service.requests))
            assert not service.may_call.is_set()
            service.may_call.set()
            assert {text(await each) for each in calls[1:]} == {"echo"}


@BOTH
async def test_a_call_that_may_have_run_is_not_told_to_sign_in_and_call_again(kind: str) -> None:
    async with fake_service() as service:
        service.token_answer = lambda form: Answer(400, {"error": "invalid_grant"})
        service.may_call.clear()
        async with computer_of(service, await service.signed_in(kind), kind) as computer:
            running = asyncio.create_task(call(computer))
            await eventually(lambda: service.open_calls == 1)
            service.accepts = lambda token: False
            refused = await call(computer)
            assert (refused.meta or {})["state"] == "sign_in"
            service.may_call.set()
            result = await running
            assert (result.meta or {}).get("state") != "sign_in"
            assert result.is_error is (kind == "sse") or text(result) == "echo"
            await until(computer, ServerState.SIGN_IN)
