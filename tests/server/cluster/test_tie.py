"""What a server process says of its key when it begins."""

import pytest

from a2c_smcp.server import Limits, OpenAuthentication
from a2c_smcp.server.cluster.options import ClusterOptions
from a2c_smcp.server.cluster.tie import ClusterTie
from a2c_smcp.server.metrics import Metrics
from tests.nats_server import NatsServer

KEY = b"k" * 32


@pytest.mark.parametrize(
    ("keys", "accept_unsigned", "said"),
    [
        ((), False, "no cluster key: everybody who may write to NATS can use every computer"),
        ((KEY,), True, "messages without a signature are accepted: everybody who may write to NATS"),
        ((KEY,), False, None),
    ],
    ids=["no key", "a rollout", "a key"],
)
async def test_what_is_not_protected_is_said_in_one_line(
    nats: NatsServer,
    prefix: str,
    caplog: pytest.LogCaptureFixture,
    keys: tuple[bytes, ...],
    accept_unsigned: bool,
    said: str | None,
) -> None:
    tie = ClusterTie(ClusterOptions((nats.url,), prefix=prefix, keys=keys, accept_unsigned=accept_unsigned))
    tie.switchboard(OpenAuthentication(), Limits(), Metrics(tie.registry))
    async with tie:
        pass
    lines = [record.getMessage() for record in caplog.records if record.name == "a2c_smcp.server.cluster.tie"]
    assert len(lines) == (said is not None) and (said or "") in "".join(lines)
    assert "kkk" not in caplog.text
