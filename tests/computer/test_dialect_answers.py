"""Our computer with a raw agent of 0.4 at our server."""

from typing import Any

import pytest

from a2c_smcp.smcp import GET_BLOB_EVENT
from tests.computer.test_client import world
from tests.interop.generations import pictures
from tests.server.harness import Running

NEW = "?a2c_version=0.4.0"


def handle_in(result: Any) -> str:
    return str(result["content"][0]["_meta"]["a2c_blob_handle"])


async def test_a_remembered_result_has_bytes_behind_its_handles_after_both_were_away(hub: Running) -> None:
    async with world(hub.url, pictures(), hub=hub.url + NEW) as it:
        handle = handle_in(await it.agent.tool("pictures__image", 20, "kept", size=100_000))
        await it.cut()
        await it.rejoined()
        await it.agent.disconnect()
        await it.agent.join(hub.url + NEW, it.agent.office)
        assert handle_in(await it.agent.tool("pictures__image", 20, "kept", size=100_000)) == handle
        chunk = await it.agent.ask(GET_BLOB_EVENT, blob_handle=handle)
        assert (chunk["total_size"], chunk["eof"]) == (100_000, True)
        await it.client.leave_office()
        assert not len(it.client._blobs._blobs)


async def test_a_call_whose_result_cannot_be_translated_does_not_run_for_ever(
    hub: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Any) -> Any:
        raise RuntimeError("secret detail")

    async with world(hub.url, hub=hub.url + NEW) as it:
        with monkeypatch.context() as patch:
            patch.setattr(it.client._dialect, "shaped", broken)
            result = await it.agent.tool("a__a.echo", 20, "one", text="x")
            assert result["isError"] is True and "500" in str(result) and "secret" not in str(result)
        assert it.client._calls.tasks == []
        assert (await it.agent.tool("a__a.echo", 20, "one", text="x"))["isError"] is False
