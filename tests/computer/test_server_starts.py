"""What becomes of a server that does not start, or gets another config. Pure."""

import gc

import pytest

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.manager import UpdateAction, starting_servers, update_action
from a2c_smcp.computer.mcp_clients.server_starts import FailedStart
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.utils.callbacks import weakly
from a2c_smcp.errors import InputNotFoundError, ServerStartError

PASSING = ServerStartError("a", "exit code 1")
LASTING = ServerStartError("a", "'x' is not found", is_lasting=True)


@pytest.mark.parametrize(
    ("error", "tries", "options", "is_tried_again"),
    [
        (PASSING, 0, ConnectionOptions(), True),
        (PASSING, 9, ConnectionOptions(), True),
        (PASSING, 10, ConnectionOptions(), False),
        (PASSING, 0, ConnectionOptions(auto_reconnect=False), False),
        (LASTING, 0, ConnectionOptions(), False),
        (InputNotFoundError("key"), 0, ConnectionOptions(), False),
        (RuntimeError(), 0, ConnectionOptions(), False),
    ],
)
def test_only_what_may_pass_is_tried_again(
    error: Exception, tries: int, options: ConnectionOptions, is_tried_again: bool
) -> None:
    assert FailedStart.of(error, tries, options).is_tried_again is is_tried_again


def test_a_failed_start_says_why_and_never_what_is_internal() -> None:
    assert FailedStart.of(PASSING, 0, ConnectionOptions()).reason == "exit code 1"
    missing = InputNotFoundError("key")
    assert FailedStart.of(missing, 0, ConnectionOptions()) == FailedStart(missing.message, missing, False)
    assert FailedStart.of(KeyError("secret"), 0, ConnectionOptions()) == FailedStart("internal error", None, False)


@pytest.mark.parametrize(
    ("disabled", "serves", "auto_reconnect", "starts", "action"),
    [
        (True, True, True, True, UpdateAction.STOP),
        (True, False, False, False, UpdateAction.STOP),
        (False, True, False, True, UpdateAction.OFFER_RESTART),
        (False, True, True, False, UpdateAction.REPLACE),
        (False, False, False, True, UpdateAction.REPLACE),
        (False, False, True, False, UpdateAction.KEEP),
    ],
)
def test_what_a_new_config_does(
    disabled: bool, serves: bool, auto_reconnect: bool, starts: bool, action: UpdateAction
) -> None:
    assert update_action(disabled=disabled, serves=serves, auto_reconnect=auto_reconnect, starts=starts) is action


def test_who_is_starting() -> None:
    states = {"a": ServerState.STARTING, "b": ServerState.RUNNING, "c": ServerState.FAILED, "d": ServerState.FAILED}
    assert starting_servers(states, ["added", "b", "c"]) == ["a", "c", "added"]


def test_a_weak_callback_keeps_nothing_alive() -> None:
    class Target:
        def take(self, value: int, times: int = 1) -> None:
            taken.extend([value] * times)

    taken: list[int] = []
    target = Target()
    call = weakly(target.take)
    call(1, times=2)
    del target
    gc.collect()
    call(3)
    assert taken == [1, 1]
