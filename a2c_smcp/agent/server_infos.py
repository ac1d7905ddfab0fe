"""Which MCP servers of computers do not run, and why, as lines for people and models."""

import asyncio
from collections.abc import Iterable
from typing import Final, Protocol

from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import GetComputerConfigRet
from a2c_smcp.utils.strangers_words import told_on_line

__all__ = ["not_running", "servers_not_running"]

_AS_MEANT: Final = ("running", "disabled")
_MOST_SERVERS: Final = 20


class _Asks(Protocol):
    async def get_config(self, computer: str) -> GetComputerConfigRet: ...


def not_running(config: GetComputerConfigRet) -> list[str]:
    """One line for each server that does not run; none if the computer does not say."""
    infos = config.get("server_info") or {}
    states = [(name, str(info.get("state", "unknown")), info.get("reason")) for name, info in infos.items()]
    lines = [
        told_on_line(f"{name} is {state}" + (f": {reason}" if reason else ""), 300)
        for name, state, reason in states
        if state not in _AS_MEANT
    ]
    more = len(lines) - _MOST_SERVERS
    return lines if more <= 0 else [*lines[:_MOST_SERVERS], f"and {more} more"]


async def servers_not_running(agent: _Asks, computers: Iterable[str], seconds: float) -> dict[str, list[str]]:
    """The lines for each computer. A computer that does not answer in time has none."""

    async def one(computer: str) -> list[str]:
        try:
            async with asyncio.timeout(seconds):
                return not_running(await agent.get_config(computer))
        except (SMCPError, TimeoutError):
            return []

    names = list(computers)
    return dict(zip(names, await asyncio.gather(*map(one, names)), strict=True))
