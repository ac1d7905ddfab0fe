"""What a connection to an MCP server is given besides the config of the server: limits, waits, and whom to tell."""

import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Final, TypeAlias

from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeedTimings, ServerChange
from a2c_smcp.computer.mcp_clients.elicitation.asking import PersonAsker
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, StdioServerConfig
from a2c_smcp.computer.mcp_clients.pipes.guardian import Guardian
from a2c_smcp.computer.mcp_clients.pipes.process import StdioTimings
from a2c_smcp.computer.mcp_clients.probe import ProbeTimeouts
from a2c_smcp.computer.mcp_clients.server_state import StateChange
from a2c_smcp.computer.redaction import Redaction
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.backoff import backoff
from a2c_smcp.wire import DEFAULT_MAX_MESSAGE

if TYPE_CHECKING:
    from a2c_smcp.computer.mcp_clients.mcp_internals import TransportStreams
    from a2c_smcp.computer.sign_in.sign_ins import SignIns

__all__ = ["ConnectionHooks", "ConnectionOptions", "ServerWay", "Timings"]

#: Commands that download what they run, if it is not there yet.
_DOWNLOADERS: Final = frozenset({"bunx", "docker", "npx", "pipx", "pnpx", "podman", "uvx"})


#: Opens mcp's two streams to a server, for as long as it is entered. It is called for each life of the server.
ServerWay: TypeAlias = Callable[[], AbstractAsyncContextManager["TransportStreams"]]


@dataclass(frozen=True, slots=True)
class Timings:
    """Every wait of a connection, in seconds."""

    start: float = 30.0
    download: float = 180.0
    """For the start of a command that may download the server first, such as `npx`."""
    order: float = 5.0
    """How long a server that starts together with others waits for those before it in the config."""
    probe: ProbeTimeouts = field(default_factory=ProbeTimeouts)
    """How long to wait for a process that is probed for its MCP era and says nothing."""
    request: float = 30.0
    """For lists and reads. A tool call has the timeout of its caller."""
    idle_probe: float = 30.0
    """How long an HTTP server may be silent before it is pinged, and how long it may take to answer the ping."""
    backoff_first: float = 0.5
    backoff_most: float = 30.0
    healthy: float = 60.0
    """After a life of this length the count of restarts begins again at 0."""
    steady: float = 5.0
    """After a life of this length the next pause is the first, shortest one."""
    cancel: float = 1.0
    """How long running calls have to tell the server that they are cancelled. Then a stop closes its stdin."""
    close: float = 10.0
    """For closing a session. The shutdown of a subprocess has its own time: `stdio`."""
    stdio: StdioTimings = field(default_factory=StdioTimings)
    feed: ChangeFeedTimings = field(default_factory=ChangeFeedTimings)

    def start_of(self, config: MCPServerConfig) -> float:
        """How long the start of a server may take."""
        if config.start_timeout is not None:
            return config.start_timeout
        downloads = (
            isinstance(config, StdioServerConfig) and PurePath(config.server_parameters.command).stem in _DOWNLOADERS
        )
        return self.download if downloads else self.start

    def backoff(self, short_lives: int) -> float:
        """The pause after this many short lives in a row. It is random in part, so that servers restart apart."""
        pause = backoff(short_lives, self.backoff_first, self.backoff_most)
        return min(self.backoff_most, pause * random.uniform(1, 1.25))


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """What the connections of one Computer have in common."""

    auto_reconnect: bool = True
    """Whether a server that dies is started again."""
    max_restarts: int = 10
    """How many restarts in a row are tried."""
    max_calls: int = 64
    """How many tool calls run at a time on one server. The others wait."""
    max_message: int = DEFAULT_MAX_MESSAGE
    """The size of a message in bytes: `largest_answer` says how large an answer of the server may be."""
    timings: Timings = field(default_factory=Timings)
    redaction: Redaction = field(default_factory=Redaction)
    """Takes secrets out of everything that is said about a server: errors, reasons, stderr lines."""
    asker: PersonAsker | None = None
    """Puts the server's questions to a person. Without one nobody is asked."""
    ways: Mapping[SERVER_NAME, "ServerWay"] = field(default_factory=dict)
    """Servers that are reached in another way than their configs say."""
    guardian: Guardian | None = None
    """Starts the processes of stdio servers. Without it they are children of this process."""
    sign_ins: "SignIns | None" = None
    """The sign-ins at remote servers. Without it no server is signed in to."""


@dataclass(frozen=True, slots=True)
class ConnectionHooks:
    """What a connection tells. Each hook is called from the event loop and must return at once."""

    on_state: Callable[[StateChange], None] = ignore
    on_change: Callable[[ServerChange], None] = ignore
    on_stderr: Callable[[str], None] = ignore
    on_old_handshake: Callable[[], None] = ignore
    """The server turned out to need the handshake of MCP's older era."""
    on_restart_wanted: Callable[[str], None] = ignore
    """The server should be restarted, for this reason, and `auto_reconnect` is off."""
