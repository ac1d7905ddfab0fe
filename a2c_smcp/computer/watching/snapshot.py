"""The state of a Computer at one moment, as one value, with the number of the last event before it."""

from collections.abc import Mapping
from dataclasses import dataclass

from a2c_smcp.computer.calls.log import EndedCall, RunningCall
from a2c_smcp.computer.decisions.book import Decision
from a2c_smcp.computer.rules.store import ListedRule
from a2c_smcp.computer.watching.events import OfficeStatus, ServerStatus
from a2c_smcp.errors import ToolNameDuplicatedError
from a2c_smcp.smcp import GetComputerConfigRet, SMCPTool
from a2c_smcp.types import SERVER_NAME, TOOL_NAME

__all__ = ["ComputerSnapshot"]


@dataclass(frozen=True, slots=True)
class ComputerSnapshot:
    """A Computer at one moment. Events with a greater `number` happened later.

    The desktop, the documents and the logs of servers are not in it. Events say when these change; `get_desktop`,
    `get_finder` and `server_logs` return them.
    """

    number: int
    name: str
    servers: tuple[ServerStatus, ...]
    tools: tuple[SMCPTool, ...]
    """As agents see them. Do not change them."""
    tool_servers: Mapping[TOOL_NAME, SERVER_NAME]
    conflicts: tuple[ToolNameDuplicatedError, ...]
    config: GetComputerConfigRet
    """As agents see it: with placeholders, and with secrets masked."""
    inputs: Mapping[str, bool]
    """Every input by its id, and whether it has a value."""
    offices: tuple[OfficeStatus, ...]
    running_calls: tuple[RunningCall, ...]
    ended_calls: tuple[EndedCall, ...]
    """The last hundred, oldest first; `Computer.past_calls` has more."""
    decisions: tuple[Decision, ...]
    """The decisions that nobody has made yet, oldest first."""
    answerers: tuple[str, ...]
    """Who can decide now."""
    rules: tuple[ListedRule, ...]
    """The rules, in the order in which they decide."""
    recorded: bool = False
    """Whether there is a record, which has earlier calls."""
