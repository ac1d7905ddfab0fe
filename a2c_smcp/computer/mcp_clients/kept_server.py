"""One MCP server, kept running: started, watched, restarted and stopped by one task of its own.

    stopped ──► starting ──► running ──► backing_off ──► starting …
                   │            │             │
                   └────────────┴──► failed   └──► (any of these) ──► stopping ──► stopped
                   └────────────┴──► sign_in, until a person has signed in

A session is closed by the task that opened it. So a `KeptServer` has an owner task from `connect` to `disconnect`, and
each life of the server has a new `ProtocolClient`. Knows one server's config; nothing of what is asked of it.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import anyio

from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions
from a2c_smcp.computer.mcp_clients.handshakes import LEGACY, Handshake
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError, lacks_back_channel
from a2c_smcp.computer.mcp_clients.mcp_session import MCPSession
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig
from a2c_smcp.computer.mcp_clients.restarts import LifeEnd, Restarts
from a2c_smcp.computer.mcp_clients.server_life import WANTS_SIGN_IN, ServerLife
from a2c_smcp.computer.mcp_clients.server_state import TRANSITIONS, ServerState, StateChange
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.errors import ServerNotActiveError, ServerStartError, SignInNeededError, SMCPError

__all__ = ["KeptServer"]

logger = logging.getLogger(__name__)

#: The states in which no life follows by itself.
_ENDED: Final = (ServerState.FAILED, ServerState.SIGN_IN)


class KeptServer:
    """`connect` starts the server, `disconnect` stops it. Both may be called from any task, and any number of times.

    `old_handshake` says that this server needs the handshake of MCP's older era. An error that a hook raises is logged.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        options: ConnectionOptions | None = None,
        hooks: ConnectionHooks | None = None,
        *,
        old_handshake: bool = False,
    ) -> None:
        self.config = config
        self.options = options or ConnectionOptions()
        self._hooks = hooks or ConnectionHooks()
        self.state = ServerState.DISABLED if config.disabled else ServerState.STOPPED
        self.life: ServerLife | None = None
        """The life that the server has now, or had last."""
        self.watched: frozenset[str] = frozenset()
        """The resources that each new life watches."""
        self._handshake = Handshake.of(config, is_old=old_handshake)
        self._restarts = Restarts()
        self._owner: asyncio.Task[None] | None = None
        self._outcome: asyncio.Future[SMCPError | None] | None = None
        """Where the callers of `connect` wait."""
        self._interrupt: Callable[[], None] = ignore
        """Ends what the owner does now: a life, or a pause between two lives."""

    @property
    def name(self) -> str:
        return self.config.name

    @property
    def restarts(self) -> int:
        """How many times in a row it had to be started again."""
        return self._restarts.count

    @property
    def session(self) -> MCPSession | None:
        """The session that takes requests; `None` while the server does not run."""
        return None if self.life is None else self.life.session

    def start_error(self, why: str) -> ServerStartError:
        """The error of a start that failed after `connect`."""
        if self.life is not None and self.life.transport.needs_sign_in:
            return SignInNeededError(self.name, WANTS_SIGN_IN)
        return ServerStartError(self.name, why if self.life is None else self.life.explain(why))

    # --- from any task

    async def connect(self) -> None:
        """Return once the server runs, or raise `ServerStartError` that says why it does not.

        A server that is backing off is started now. Cancelling this call does not stop the server from starting.
        """
        if self.state is ServerState.STOPPING:
            await self._closed()
        if self.state is ServerState.DISABLED:
            raise ServerNotActiveError(self.name)
        if self.session is not None:
            return
        if self._outcome is None:
            self._outcome = asyncio.get_running_loop().create_future()
        if self.state is ServerState.BACKING_OFF:
            self._interrupt()
        elif self.state in (ServerState.STOPPED, *_ENDED):
            self._restarts = Restarts()
            self._move(ServerState.STARTING)
            self._owner = asyncio.create_task(self._own(), name=f"MCP server {self.name}")
        error = await asyncio.shield(self._outcome)
        if error is not None:
            raise error

    async def disconnect(self) -> None:
        """Stop the server and whatever runs on it. Idempotent; safe from any task, at any moment."""
        if self.state in (ServerState.STOPPED, ServerState.DISABLED):
            return
        if self.state is not ServerState.STOPPING:
            self._move(ServerState.STOPPING)
            self._interrupt()
        await self._closed()

    async def _closed(self) -> None:
        owner = self._owner
        if owner is not None and not owner.done():
            # `asyncio.wait` does not cancel the owner if this call is cancelled, and does not raise the owner's error.
            bound = self.options.timings.close + self.options.timings.cancel + 10
            _, late = await asyncio.wait({owner}, timeout=bound)
            if late:
                logger.error("MCP server %s could not be closed in %g s; its task is cancelled", self.name, bound)
                owner.cancel()
                await asyncio.wait({owner}, timeout=bound)
        if self.state is ServerState.STOPPING:
            self._move(ServerState.STOPPED)

    # --- the owner task

    async def _own(self) -> None:
        try:
            while not self._is_stopping():
                end = await self._live()
                if self._is_stopping():
                    return
                if end.is_planned:
                    self._move(ServerState.BACKING_OFF, end.reason)
                elif not await self._back_off(end):
                    return
                if not self._is_stopping():
                    self._move(ServerState.STARTING)
        except Exception:
            # A boundary: no task awaits the result of this one.
            logger.exception("the owner of MCP server %s failed", self.name)
            if not self._is_stopping():
                self._move(ServerState.FAILED, "internal error")
        finally:
            self._settle()

    async def _back_off(self, end: LifeEnd) -> bool:
        """Pause after a life that ended by itself. Returns `False` if no other life is to follow."""
        if end.needs_sign_in:
            self._move(ServerState.SIGN_IN, end.reason)
            self._resolve(SignInNeededError(self.name, self.options.redaction.quote(end.reason)))
            return False
        failed = ServerStartError(self.name, self.options.redaction.quote(end.reason), is_lasting=end.is_lasting)
        restarts = self._restarts.after(end.lasted, self.options)
        if restarts is None:
            self._move(ServerState.FAILED, end.reason)
            self._resolve(failed)
            return False
        self._restarts = restarts
        self._move(ServerState.BACKING_OFF, end.reason)
        if end.lasted is None:
            self._resolve(failed)
        # A caller that waits in `connect` wants the server at once.
        delay = 0 if self._outcome else self.options.timings.backoff(restarts.short_lives)
        with anyio.move_on_after(delay) as pause:
            self._interrupt = pause.cancel
            await anyio.sleep_forever()
        return True

    async def _live(self) -> LifeEnd:
        """One life of the server. A start that fails because of its handshake is tried once more with another one."""
        end = await self._run(self._handshake.mode)
        if self._handshake.is_fallback and end.lasted is None and not self._is_stopping():
            logger.warning("MCP server %s does not start with the old handshake: %s", self.name, end.reason)
            self._handshake = self._handshake.refused()
            end = await self._run(self._handshake.mode)
        if end.wants_old_handshake and not self._is_stopping():
            logger.info("MCP server %s cannot take the probe; it is started with the old handshake", self.name)
            end = await self._run(LEGACY)
        return end

    async def _run(self, mode: str) -> LifeEnd:
        def on_running() -> None:
            self._handshake = self._handshake.succeeded(mode)
            self._move(ServerState.RUNNING)
            self._resolve(None)

        life = self.life = ServerLife(self.config, mode, self.options, self._hooks, self.watched, self._advise)
        self._interrupt = life.stop
        return await life.run(on_running)

    def _is_stopping(self) -> bool:
        return self.state is ServerState.STOPPING

    def _settle(self) -> None:
        """When the owner task ends, for any reason: set the state, and release the callers that wait."""
        if self.state not in _ENDED:
            if not self._is_stopping():
                self._move(ServerState.STOPPING, "its event loop ends")
            self._move(ServerState.STOPPED)
        self._resolve(ServerNotActiveError(self.name))

    def _resolve(self, error: SMCPError | None) -> None:
        """Tell the callers that wait in `connect`."""
        if self._outcome is not None and not self._outcome.done():
            self._outcome.set_result(error)
        self._outcome = None

    def _move(self, new: ServerState, reason: str | None = None) -> None:
        old = self.state
        assert new in TRANSITIONS[old], f"{old} → {new}"
        self.state = new
        try:
            self._hooks.on_state(StateChange(self.name, old, new, reason, self.restarts))
        except Exception:
            # A boundary: the callback is not ours.
            logger.exception("the state callback of MCP server %s failed", self.name)

    # --- a server that could not ask

    def _advise(self, session: MCPSession, error: MCPError, call: object | None) -> str:
        """A tool may have failed only because the server was started in a way in which it cannot ask the person.

        Then the server is started again as soon as it is idle. Returns a text about that for the caller of the tool.
        """
        if session.is_modern and lacks_back_channel(error) and self._handshake.may_fall_back:
            if not self._handshake.is_old:
                self._handshake = self._handshake.fallen_back()
                self._hooks.on_old_handshake()
            why = "it asks the person as in MCP's older era, and needs a start with that handshake"
        elif session.questions.is_missed_by(error, call):
            why = "somebody can answer its questions now; at its start it was told that nobody can"
        else:
            return ""
        logger.info("MCP server %s: %s", self.name, why)
        if self.options.auto_reconnect:
            session.retire(why)
            return " (the server is started again so that it can ask; call it again)"
        self._hooks.on_restart_wanted(why)
        return " (the server can ask after a restart)"
