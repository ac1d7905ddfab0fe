"""A process that cannot work with the others says so, where the operator and the clients look."""

from pathlib import Path

import nats as nats_py
import pytest

from a2c_smcp.errors import InternalError
from a2c_smcp.server import OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from tests.nats_server import NatsServer, running_nats
from tests.server.cluster.test_app_on_nats import get
from tests.server.harness import Running, async_server, eventually

KEYS = (b"the first key of these two servers", b"the other key of these two servers")


async def not_ready(server: Running, words: str) -> str:
    """Wait until the server says that it is not ready because of this; returns all that it says."""
    await eventually(lambda: words in get(server, "/readyz")[1])
    status, said = get(server, "/readyz")
    assert status == 503
    status, heard = get(server, "/socket.io/?EIO=4&transport=polling")
    assert status == 503 and heard.startswith("not ready: /readyz"), "a client without a key hears no names of machines"
    return said


@pytest.mark.usefixtures("patient")
async def test_a_newcomer_with_another_key_is_not_ready_and_those_before_it_stay_ready(
    nats: NatsServer, prefix: str
) -> None:
    first, second = (ClusterOptions((nats.url,), prefix=prefix, keys=(key,)) for key in KEYS)
    with async_server(OpenAuthentication(), cluster=first) as elder:
        await eventually(lambda: get(elder, "/readyz")[0] == 200)
        with async_server(OpenAuthentication(), cluster=second) as newcomer:
            assert "--cluster-key-file" in await not_ready(newcomer, "another cluster key")
            assert get(elder, "/readyz")[0] == 200
            with pytest.raises(InternalError, match="another cluster key"):
                newcomer.namespace.registry.check_writable()  # joins are refused with this


@pytest.mark.usefixtures("patient")
async def test_a_prefix_that_a_stranger_uses_is_said(nats: NatsServer, prefix: str) -> None:
    client = await nats_py.connect(nats.url)
    try:
        await client.jetstream().create_key_value(bucket=f"{prefix}-members")
        with async_server(OpenAuthentication(), cluster=ClusterOptions((nats.url,), prefix=prefix)) as server:
            assert "--nats-prefix" in await not_ready(server, f"another program has made the bucket {prefix}-members")
    finally:
        await client.close()


async def test_a_process_that_nobody_can_reach_over_nats_is_not_ready(tmp_path: Path, prefix: str) -> None:
    config = tmp_path / "nats.conf"
    config.write_text(
        'authorization { users = [{user: a, password: b, permissions: {publish: ">", subscribe: "_INBOX.>"}}] }'
    )
    with running_nats(tmp_path, ("-c", str(config))) as nats:
        url = nats.url.replace("//", "//a:b@")
        with async_server(OpenAuthentication(), cluster=ClusterOptions((url,), prefix=prefix)) as server:
            assert "docs/scaling.md" in await not_ready(server, "NATS does not deliver")
