"""How a command joins the office that a person named in the page. A key of one server is never sent to another."""

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from a2c_smcp.computer.mcp_clients.masking import masked_url
from a2c_smcp.errors import SMCPError
from a2c_smcp.link.interface import LinkOptions

if TYPE_CHECKING:
    from a2c_smcp.computer.cli.session import CLISession

__all__ = ["SessionDoor", "link_to"]


def link_to(known: LinkOptions, url: str, api_key: str | None) -> LinkOptions:
    """The options for the server that a person named: the known server keeps its key and headers, another gets none."""
    if url in (known.url, masked_url(known.url)):
        return replace(known, api_key=known.api_key if api_key is None else api_key)
    return replace(known, url=url, api_key=api_key, headers={})


class SessionDoor:
    """The way of a page to the office that the prompt is in."""

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
