"""The sign-ins of one Computer: one for each remote server, and the flows in which a person takes part."""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, OAuthParameters, StdioServerConfig
from a2c_smcp.computer.sign_in.asking import SignInAsker
from a2c_smcp.computer.sign_in.token_store import MemoryStore, SignInStore
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.oidc.sign_in_errors import SignInError
from a2c_smcp.types import SERVER_NAME

if TYPE_CHECKING:
    from a2c_smcp.computer.sign_in.server_sign_in import ServerSignIn

__all__ = ["SignIns"]

logger = logging.getLogger(__name__)


class SignIns:
    """`of` has the sign-in of a server. `begin` lets a person sign in; `on_end` is told how that ended.

    `learn` is told every secret, so that none is shown. While a server waits for a sign-in, the store is read every
    `pause` seconds: another process may sign in.
    """

    def __init__(
        self,
        asker: SignInAsker,
        store: SignInStore | None = None,
        learn: Callable[[str], None] = ignore,
        pause: float = 5.0,
    ) -> None:
        self._asker = asker
        self._store = store or MemoryStore()
        self._learn = learn
        self._servers: dict[SERVER_NAME, ServerSignIn] = {}
        self._flows: dict[SERVER_NAME, asyncio.Task[None]] = {}
        self._watches: dict[SERVER_NAME, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._pause = pause
        self.on_end: Callable[[SERVER_NAME, str | None], None] = ignore
        """Called with the name of a server, and with the problem if nobody is signed in."""

    def of(self, config: MCPServerConfig) -> "ServerSignIn | None":
        """The sign-in of this server; `None` for a server that has none, or that has its own key in a header."""
        if isinstance(config, StdioServerConfig):
            return None
        parameters = config.server_parameters
        if parameters.oauth is None and any(key.lower() == "authorization" for key in parameters.headers or {}):
            return None
        known, oauth = self._servers.get(config.name), parameters.oauth or OAuthParameters()
        has_headers = bool(parameters.headers)
        if known is not None and (known.url, known.oauth, known.has_headers) == (parameters.url, oauth, has_headers):
            return known
        if known is not None:
            closing = asyncio.create_task(known.aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        # It imports mcp and cryptography, which a computer without remote servers does not need.
        from a2c_smcp.computer.sign_in.server_sign_in import ServerSignIn

        self._servers[config.name] = made = ServerSignIn(
            config.name, parameters.url, oauth, self._store, self._asker, self._learn, has_headers=has_headers
        )
        return made

    def begin(self, name: SERVER_NAME) -> None:
        """Let a person sign in, if anybody can be asked. A flow that runs goes on."""
        sign_in = self._servers.get(name)
        if sign_in is None:
            return
        if name not in self._watches:
            self._watches[name] = asyncio.create_task(self._watch(name, sign_in), name=f"sign-ins elsewhere at {name}")
        if name not in self._flows and self._asker.can_ask():
            self._flows[name] = asyncio.create_task(self._run(name, sign_in), name=f"sign-in at {name}")

    def give_up(self, name: SERVER_NAME) -> None:
        """The server does not wait for a sign-in any more, nor for more rights."""
        if (sign_in := self._servers.get(name)) is not None:
            sign_in.give_up()
        for task in (self._flows.pop(name, None), self._watches.pop(name, None)):
            if task is not None and task is not asyncio.current_task():
                task.cancel()

    async def _watch(self, name: SERVER_NAME, sign_in: "ServerSignIn") -> None:
        """Another process may sign in: `a2c computer login`."""
        while True:
            await asyncio.sleep(self._pause)
            if await sign_in.has_appeared():
                self.give_up(name)
                self.on_end(name, None)
                return

    async def _run(self, name: SERVER_NAME, sign_in: "ServerSignIn") -> None:
        problem: str | None = None
        try:
            await sign_in.sign_in()
        except SignInError as error:
            problem = str(error)
            logger.warning("MCP server %s: nobody is signed in: %s", name, error)
        except Exception:
            # A boundary: nobody awaits this task.
            logger.exception("the sign-in at MCP server %s failed", name)
            problem = "internal error"
        finally:
            if self._flows.get(name) is asyncio.current_task():
                del self._flows[name]
        self.on_end(name, problem)

    async def forget(self, config: MCPServerConfig) -> bool:
        """Delete what is kept of the sign-in at this server. Returns whether there was something."""
        self.give_up(config.name)
        sign_in = self.of(config)
        return sign_in is not None and await sign_in.forget()

    async def aclose(self) -> None:
        """Give up every flow, in bounded time."""
        flows = [*self._flows.values(), *self._watches.values()]
        for flow in flows:
            flow.cancel()
        if flows:
            await asyncio.wait(flows, timeout=10)
        # All at once: each may take seconds, and several issuers may be silent.
        await asyncio.gather(*self._closing, *(sign_in.aclose() for sign_in in self._servers.values()))
