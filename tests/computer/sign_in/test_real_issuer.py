"""Sign-ins at a real issuer, npm's oidc-provider: over streamable HTTP and SSE, with expiry, revocation and restart."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import Accepted
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.sign_in.token_store import TokenStore, key_of
from tests.computer.fakes.computers import text
from tests.computer.sign_in.protected import DEADLINE, config, protected_server, sign_in_of, until
from tests.oidc.issuer import Issuer, needs_issuer
from tests.oidc.issuer import running_issuer as running_issuer

pytestmark = [pytest.mark.anyio, needs_issuer]


@pytest.fixture(scope="module")
def url(running_issuer: Issuer) -> Iterator[str]:
    with protected_server(running_issuer.url) as url:
        yield url


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenStore:
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    return TokenStore(tmp_path / "sign-in")


async def call(computer: Computer, tool: str, **arguments: Any) -> Any:
    return await computer.execute_tool("r", tool, arguments, timeout=DEADLINE)


async def signed_in(computer: Computer, issuer: Issuer, *, paste: bool = False) -> None:
    """A person signs in. The browser comes back, or its last address is pasted."""
    decision = await sign_in_of(computer)
    ended_at = await anyio.to_thread.run_sync(issuer.sign_in, decision.url)
    if paste:
        computer.decisions.answer(decision.id, Accepted(ended_at), by="test", digest=decision.digest)
    else:
        async with httpx2.AsyncClient(timeout=DEADLINE) as browser:
            assert (await browser.get(ended_at)).status_code == 200
    await until(computer, ServerState.RUNNING)


@pytest.mark.parametrize(("kind", "paste"), [("streamable", False), ("sse", True)])
async def test_expiry_loses_no_call_and_a_restart_asks_nobody_and_a_revocation_asks_again(
    kind: str,
    paste: bool,
    url: str,
    running_issuer: Issuer,
    store: TokenStore,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    running_issuer.change(accessSeconds=4)
    caplog.set_level("DEBUG", "a2c_smcp")
    async with Computer("pc", mcp_servers=[config(url, kind)], sign_in_store=store) as computer:
        await until(computer, ServerState.SIGN_IN)  # at once: nobody could be asked when it started
        with computer.decisions.attend("test", {"sign_in"}):
            computer.begin_sign_in("guarded")
            await signed_in(computer, running_issuer, paste=paste)
        before = json.loads(text(await call(computer, "stats")))["started"]
        refreshes = running_issuer.hits("/token")

        async def several(turn: int) -> None:
            for _ in range(8):
                assert text(await call(computer, "sleep", seconds=0.6 + turn / 100)) == "done"

        async with asyncio.TaskGroup() as tasks:  # 40 calls over more than one life of a token
            for turn in range(5):
                tasks.create_task(several(turn))
        assert json.loads(text(await call(computer, "stats")))["started"] == before + 40  # none lost, none twice
        assert running_issuer.hits("/token") > refreshes
        kept = await store.load(key_of("guarded", f"{url}/{'mcp' if kind == 'streamable' else 'sse'}", None))
        assert kept is not None and kept.issuer == running_issuer.url
        shown = repr(computer.snapshot()) + repr(computer.get_config()) + caplog.text
        assert kept.secrets and not [secret for secret in kept.secrets if secret in shown]

    await asyncio.sleep(4.5)  # the kept token has expired
    async with Computer("pc", mcp_servers=[config(url, kind)], sign_in_store=TokenStore(tmp_path / "sign-in")) as again:
        assert again.statuses[0].state is ServerState.RUNNING
        assert text(await call(again, "echo", text="back")) == "back"
        running_issuer.revoke("ada")
        with anyio.fail_after(DEADLINE):
            while (result := await call(again, "echo", text="x")).is_error is not True:  # noqa: ASYNC110 - a call
                await anyio.sleep(0.3)
        assert result.meta is not None and result.meta["error_code"] == 4003
        await until(again, ServerState.SIGN_IN)
        result = await call(again, "echo", text="x")
        assert (result.meta or {}).get("error_code") == 4003 and (result.meta or {}).get("state") == "sign_in"
        assert await again.sign_out("guarded")
        assert not list((tmp_path / "sign-in").glob("*.json"))


async def test_an_outage_of_the_issuer_is_no_sign_out(url: str, running_issuer: Issuer, store: TokenStore) -> None:
    running_issuer.change(accessSeconds=600)
    async with Computer("pc", mcp_servers=[config(url)], sign_in_store=store) as computer:
        with computer.decisions.attend("test", {"sign_in"}):
            computer.begin_sign_in("guarded")
            await signed_in(computer, running_issuer)
        running_issuer.go_down()
        try:
            assert text(await call(computer, "echo", text="still")) == "still"
        finally:
            running_issuer.come_up()


async def test_a_person_who_refuses_is_asked_again_only_on_request(
    url: str, running_issuer: Issuer, store: TokenStore
) -> None:
    async with Computer("pc", mcp_servers=[config(url)], sign_in_store=store, auto_connect=False) as computer:
        with computer.decisions.attend("test", {"sign_in"}):
            with pytest.raises(Exception, match="sign in"):
                await computer.start_server("guarded")
            decision = await sign_in_of(computer)
            running_issuer.change(auto=False)
            try:
                back = await anyio.to_thread.run_sync(lambda: running_issuer.sign_in(decision.url, refuse=True))
            finally:
                running_issuer.change(auto=True)
            computer.decisions.answer(decision.id, Accepted(back), by="test")
            with anyio.fail_after(DEADLINE):
                while "access_denied" not in (computer.statuses[0].reason or ""):  # noqa: ASYNC110 - a state
                    await anyio.sleep(0.02)
            assert computer.decisions.pending == ()
            computer.begin_sign_in("guarded")
            await signed_in(computer, running_issuer)


async def test_a_machine_signs_in_by_itself(url: str, running_issuer: Issuer, store: TokenStore) -> None:
    secret = "machine-secret-0123456789"
    running_issuer.add_client(
        "robot",
        client_secret=secret,
        token_endpoint_auth_method="client_secret_basic",
        grant_types=["client_credentials"],
        redirect_uris=[],
        response_types=[],
    )
    robot = {"client_id": "robot", "client_secret": secret, "grant": "client_credentials", "issuer": running_issuer.url}
    async with Computer("pc", mcp_servers=[config(url, scopes=["read"], **robot)], sign_in_store=store) as computer:
        assert computer.statuses[0].state is ServerState.RUNNING, computer.statuses
        assert text(await call(computer, "echo", text="beep")) == "beep"
        assert secret not in repr(computer.get_config()) + repr(computer.snapshot())
