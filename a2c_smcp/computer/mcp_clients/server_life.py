"""One life of an MCP server: the transport to it, a session over that transport, and how both ended. Knows nothing
of restarts.
"""

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Final

import anyio
import anyio.lowlevel
from mcp_types import METHOD_NOT_FOUND, Implementation, LoggingMessageNotification, LoggingMessageNotificationParams

from a2c_smcp import __version__
from a2c_smcp.computer.mcp_clients.change_feed import ChangeFeed
from a2c_smcp.computer.mcp_clients.connection_options import ConnectionHooks, ConnectionOptions
from a2c_smcp.computer.mcp_clients.elicitation.asking import Questions
from a2c_smcp.computer.mcp_clients.handshakes import AUTO
from a2c_smcp.computer.mcp_clients.log_messages import MAX_LOG_LINE, log_lines
from a2c_smcp.computer.mcp_clients.mcp_error import MCPError
from a2c_smcp.computer.mcp_clients.mcp_session import MCPSession
from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, StdioServerConfig
from a2c_smcp.computer.mcp_clients.pipes.process import withheld_advice
from a2c_smcp.computer.mcp_clients.protocol_client import ClientHooks, ProtocolClient, ServerSaid
from a2c_smcp.computer.mcp_clients.restarts import LifeEnd, end_reason, with_last_words
from a2c_smcp.computer.mcp_clients.task_calls import TaskNews
from a2c_smcp.computer.mcp_clients.transports import ServerTransport
from a2c_smcp.utils.distribution import DISTRIBUTION

__all__ = ["WANTS_SIGN_IN", "ServerLife"]

#: Why a server does not run before a person has signed in.
WANTS_SIGN_IN: Final = "it wants a person to sign in; `a2c computer login` does that, too"


class ServerLife:
    """`run` starts the server with the handshake `mode`, and returns how its life ended; `stop` ends it.

    `watched` are the resources that the server is asked to watch. `advise` is passed to the `MCPSession`.
    """

    def __init__(
        self,
        config: MCPServerConfig,
        mode: str,
        options: ConnectionOptions,
        hooks: ConnectionHooks,
        watched: frozenset[str],
        advise: Callable[[MCPSession, MCPError, object | None], str],
    ) -> None:
        self._config = config
        self._mode = mode
        self._options = options
        self._timings = options.timings
        self._hooks = hooks
        self._advise = advise
        self._scope = anyio.CancelScope()
        self._is_stuck = False
        self._session: MCPSession | None = None
        self.opened: MCPSession | None = None
        """The session, once it takes requests. It may have ended meanwhile."""
        quote = options.redaction.quote
        self._feed = ChangeFeed(config.name, hooks.on_change, self._timings.feed, watched, quote)
        self._questions = Questions(config.name, options.asker, options.redaction.known, config.questions or "here")
        self._tasks = TaskNews()
        self.transport = ServerTransport(config, options, on_stderr=hooks.on_stderr, probe=mode == AUTO)
        self.transport.on_stuck = self._give_up

    @property
    def session(self) -> MCPSession | None:
        """The session, while it takes requests."""
        session = self.opened
        return None if session is None or session.ending is not None else session

    @property
    def pid(self) -> int | None:
        return self.transport.process.pid if self.transport.process else None

    @property
    def stderr_tail(self) -> tuple[str, ...]:
        """The last lines that the process wrote to stderr."""
        return self.transport.process.stderr_tail if self.transport.process else ()

    def explain(self, why: str) -> str:
        """This reason, redacted, with the last words of the process."""
        return with_last_words(self._options.redaction.quote(why), self.stderr_tail)

    def stop(self) -> None:
        """Interrupt the start, or end the session and whatever runs on it."""
        if self._session is not None and self._session.since is not None:
            self._session.end("was stopped")
        else:
            self._scope.cancel()

    def _give_up(self) -> None:
        self._is_stuck = True
        self._scope.cancel()

    async def run(self, on_running: Callable[[], None]) -> LifeEnd:
        """Open a session, let it be used, close it. `on_running` is called when the session takes requests."""
        hooks = ClientHooks(self._questions.declares, self._questions.elicit, self._hear)
        client = ProtocolClient(Implementation(name=DISTRIBUTION, version=__version__), hooks)
        failure: Exception | None = None
        is_sse = self._config.type == "sse"
        if is_sse:
            # Over SSE, a refused request has no answer: nothing must wait for one.
            self.transport.on_sign_in_needed = self._scope.cancel
        self._scope.deadline = anyio.current_time() + self._timings.start_of(self._config)
        with self._scope:
            try:
                async with client.over(self.transport, self._mode):
                    self.transport.protocol_version = client.protocol_version
                    session = self._session = MCPSession(
                        self._config.name,
                        client,
                        self.transport,
                        self._questions,
                        self._tasks,
                        self._feed,
                        self._options,
                        self._advise,
                    )
                    self.transport.on_end = partial(session.end, "ended the connection")
                    self.transport.needs_sign_in = False  # only the probe for the era of MCP may have been refused
                    give_up = session.end if is_sse else session.retire
                    self.transport.on_sign_in_needed = partial(give_up, "wants a person to sign in")
                    await self._serve(session, on_running)
            except Exception as error:  # whatever ended this life, the next one is decided by it
                failure = error
        return self._end(failure)

    def _hear(self, message: ServerSaid) -> None:
        if isinstance(message, LoggingMessageNotification):
            self._log(message.params)
        self._questions.on_message(message)
        self._tasks.on_message(message)
        self._feed.on_message(message)

    def _log(self, params: LoggingMessageNotificationParams) -> None:
        """A log message of the server goes where its stderr goes."""
        for line in log_lines(params):
            self._hooks.on_stderr(self._options.redaction(line)[:MAX_LOG_LINE])

    async def _serve(self, session: MCPSession, on_running: Callable[[], None]) -> None:
        """Let others use the session until it is over. The deadline of the start ends here; the deadline of the
        closing begins at the end.
        """
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._feed.run, session.client)
                # The server should not be shown before we hear its changes. But a server that came back may have to be
                # told of a hundred thousand resources, or may answer no subscription at all. It is shown all the same.
                with anyio.move_on_after(self._timings.feed.answer):
                    await self._feed.settled()
                await anyio.lowlevel.checkpoint_if_cancelled()  # it may be stopped at the last moment
                self._scope.deadline = math.inf
                session.since = anyio.current_time()
                self.opened = session
                on_running()
                if self.transport.process is None:
                    tasks.start_soon(self._ping_when_idle, session)
                if self.transport.has_ended:
                    session.end("ended the connection")
                await session.over.wait()
                self._scope.deadline = anyio.current_time() + self._timings.close
                with anyio.move_on_after(self._timings.cancel):
                    await session.drained()
                tasks.cancel_scope.cancel()
        finally:
            session.end("was lost")

    async def _ping_when_idle(self, session: MCPSession) -> None:
        """An idle HTTP connection does not notice by itself that the server is gone."""
        interval = self._timings.idle_probe
        while True:
            await anyio.sleep(max(0.0, self.transport.heard_at + interval - anyio.current_time()))
            if anyio.current_time() < self.transport.heard_at + interval:
                continue
            try:
                with anyio.fail_after(interval):
                    await session.client.ping()
            except (MCPError, TimeoutError) as error:
                if not isinstance(error, MCPError) or error.code != METHOD_NOT_FOUND:
                    session.end("does not answer any more")
                    return

    def _end(self, failure: Exception | None) -> LifeEnd:
        """How this life ended, for the people at this computer."""
        session, process, has_ended = self._session, self.transport.process, self.transport.has_ended
        lasted = None
        if session is not None and session.since is not None:
            lasted = anyio.current_time() - session.since
        if self.transport.needs_sign_in:
            return LifeEnd(WANTS_SIGN_IN, lasted, needs_sign_in=True)
        if lasted is not None and session is not None and session.has_retired:
            return LifeEnd(session.ending or "", lasted, is_planned=True)
        reason = end_reason(
            process.exit_reason if process is not None and has_ended else None,
            self.transport.describe(failure),
            session.ending if session is not None else None,
            self._timings.start_of(self._config),
        )
        if lasted is not None:
            return LifeEnd(self.explain(reason), lasted)
        wants_old = self._mode == AUTO and self.pid is not None and (has_ended or self._is_stuck)
        reason = self.explain(reason)
        if isinstance(self._config, StdioServerConfig):
            reason += withheld_advice(reason, self._config.server_parameters, os.environ)
        return LifeEnd(reason, None, wants_old, is_lasting=self.transport.is_lasting(failure))
