"""The way to a server, from its config: over pipes, or through mcp's transports. Every answer passes through this
module.

Knows how to reach a server and that it spoke or went silent; nothing of sessions, restarts or states.
"""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionOptions
from a2c_smcp.computer.mcp_clients.dispatching import Dispatcher
from a2c_smcp.computer.mcp_clients.item_limits import too_much
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, StdioServerConfig
from a2c_smcp.computer.mcp_clients.pipes.stdio import StdioTransport
from a2c_smcp.computer.mcp_clients.probe import Probe
from a2c_smcp.computer.mcp_clients.resource_lists import PAGED, Pages
from a2c_smcp.computer.mcp_clients.tool_lists import without_invalid_tools
from a2c_smcp.computer.sign_in.challenges import Challenge
from a2c_smcp.computer.sign_in.watched_requests import WatchedRequest
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import PayloadTooLargeError
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError
from a2c_smcp.utils.system import IS_UNIX

if TYPE_CHECKING:
    from a2c_smcp.computer.mcp_clients.mcp_streams import McpWay
    from a2c_smcp.computer.sign_in.server_sign_in import ServerSignIn

__all__ = ["ServerTransport"]

_MCP_STREAMS: Final = "a2c_smcp.computer.mcp_clients.mcp_streams"


class ServerTransport:
    """One way to a server, entered once. It tells when the server last spoke and when it hung up.

    `probe` says whether the first requests are a probe.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        options: ConnectionOptions,
        *,
        on_stderr: Callable[[str], None],
        probe: bool,
    ) -> None:
        self._config = config
        self._options = options
        self.process: StdioTransport | None = None
        self.has_ended = False
        self.on_stuck: Callable[[], None] = ignore
        """Called when a process has read the probe and the handshake, and answered neither."""
        self.on_end: Callable[[], None] = ignore
        self.protocol_version: str | None = None
        """The version that the handshake agreed on. The server's tools are checked against this version, one by one."""
        self.pages = Pages()
        """The resources, templates and prompts that the server lists, kept away from the session."""
        self.invalid_tools: dict[str, str] = {}
        """The tools that were left out of the server's lists, and what is wrong with each. Its reader clears it."""
        self.needs_sign_in = False
        """Whether the server refuses requests until a person has signed in."""
        self.on_sign_in_needed: Callable[[], None] = ignore
        self._sign_in: ServerSignIn | None = None
        self._mcp_way: McpWay | None = None
        self._way: AbstractAsyncContextManager[Dispatcher] | None = None
        if isinstance(config, StdioServerConfig) and IS_UNIX and config.name not in options.ways:
            self._way = self.process = StdioTransport(
                config.server_parameters,
                timings=options.timings.stdio,
                on_stderr=on_stderr,
                on_end=self.note_end,
                screen=self.screen,
                redaction=options.redaction,
                probe=Probe(options.timings.probe, lambda: self.on_stuck()) if probe else None,
                max_message=options.max_message,
                guardian=options.guardian,
                keeps_detached=config.detached == "keep",
            )

    async def __aenter__(self) -> Dispatcher:
        if self._way is None:
            self._way = self._mcp_way = await self._through_mcp()
        return await self._way.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        assert self._way is not None
        return await self._way.__aexit__(exc_type, exc, traceback)

    async def _through_mcp(self) -> "McpWay":
        if _MCP_STREAMS not in sys.modules:  # its import takes a second: other servers are called meanwhile
            await asyncio.to_thread(import_module, _MCP_STREAMS)
        from a2c_smcp.computer.mcp_clients.mcp_streams import McpWay

        config, sign_ins = self._config, self._options.sign_ins
        if sign_ins is not None and config.name not in self._options.ways:
            self._sign_in = sign_ins.of(config)
        return McpWay(config, self._options, self, self._sign_in)

    @property
    def heard_at(self) -> float:
        """When anything last came over HTTP, by the event loop's clock."""
        return 0.0 if self._mcp_way is None else self._mcp_way.heard_at

    def note_sign_in(self, challenge: Challenge) -> bool:
        """Note that a person is needed. Returns whether the session ends for it: not if one call needs more rights."""
        if challenge.is_step_up and self.protocol_version is not None:
            return False
        assert self._sign_in is not None
        self._sign_in.challenge = challenge
        if not self.needs_sign_in:
            self.needs_sign_in = True
            self.on_sign_in_needed()
        return True

    async def more_rights(self, refused: WatchedRequest) -> bool:
        """Ask a person for the rights that a refused request needs. Returns whether to send it again."""
        assert self._sign_in is not None
        assert refused.challenge is not None
        return await self._sign_in.more_rights(refused.signed_in_at, refused.challenge) is not None

    def screen(self, method: str, result: dict[str, Any]) -> dict[str, Any]:
        """The part of a result that the session gets. Raises `MCPError` if the result is so large that it would stop
        the computer.
        """
        if problem := too_much(result):
            raise MCPError(PayloadTooLargeError.default_code, problem)
        if method in PAGED:
            return self.pages.take_out(method, result)
        if method != "tools/list":
            return result
        usable, left_out = without_invalid_tools(result, self.protocol_version)
        self.invalid_tools.update(left_out)
        return dict(usable)

    def note_end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.on_end()

    def describe(self, failure: Exception | None) -> str | None:
        """Why the server could not be reached, in a few words. `failure` is the error of its session."""
        if self._sign_in is not None and self._sign_in.problem is not None:
            return f"it cannot be signed in: {self._sign_in.problem}"
        if self._mcp_way is not None and (said := self._mcp_way.describe()) is not None:
            return said
        cause = self._failure or failure
        return None if cause is None else _described(cause)

    def is_lasting(self, failure: Exception | None) -> bool:
        """Whether a later try would fail as well: its command is missing, or a key is refused."""
        if self._sign_in is not None and isinstance(self._sign_in.problem, IssuerSilentError):
            return False
        if self._mcp_way is not None and (refused := self._mcp_way.is_refused()) is not None:
            return refused
        return _is_missing(self._failure or failure)

    @property
    def _failure(self) -> Exception | None:
        return None if self._mcp_way is None else self._mcp_way.failure


def _described(error: BaseException) -> str:
    """An error of a transport or session in a few words, without URLs: they may carry credentials."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError) and error.filename:
        name = str(error.filename)
        advice = "; write the program alone into command, and the rest into args" if " " in name else ""
        return f"{name!r} is not found{advice}"
    text = str(error)
    return type(error).__name__ if not text or "://" in text else f"{type(error).__name__}: {text}"


def _is_missing(error: BaseException | None) -> bool:
    """Whether a command cannot be run."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
