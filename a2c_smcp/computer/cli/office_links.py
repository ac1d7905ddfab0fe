"""How a page's wish to join an office becomes a connection of the command that runs. No secret of one server goes to
another.
"""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.link import LinkOptions

if TYPE_CHECKING:
    from a2c_smcp.computer.cli.session import CLISession

__all__ = ["SessionDoor", "link_to"]


def link_to(known: LinkOptions, url: str, api_key: str | None) -> LinkOptions:
    """How a server is reached that a person named: as before if it is the one before, and else without its key."""
    if url in (known.url, masked_url(known.url)):
        return replace(known, api_key=known.api_key if api_key is None else api_key)
    return replace(known, url=url, api_key=api_key, headers={})


class SessionDoor:
    """The office of the prompt."""

    def __init__(self, session: "CLISession") -> None:
        self._session = session

    @property
    def url(self) -> str:
        return masked_url(self._session.link.url)

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        session = self._session
        await session.connect(link_to(session.link, url, api_key), session.computer.name, office)

    async def leave(self) -> None:
        if self._session.membership is not None:
            with suppress(SMCPError):  # a server that does not answer is left all the same
                await self._session.leave()
        await self._session.disconnect()
