"""The subscriptions of hosts, held at the computers whose resources they are about."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from a2c_smcp.agent.for_models.addresses import Address
from a2c_smcp.agent.for_models.office_agent import OfficeAgent
from a2c_smcp.errors import SMCPError
from a2c_smcp.utils.text import cut, in_log, printable

__all__ = ["HostSubscriptions"]

logger = logging.getLogger(__name__)


class HostSubscriptions:
    """Subscribes to a resource at its computer while a host wants it. The agent itself subscribes again after a lost
    connection. A subscription that failed is tried again when its computer enters the office, or shares other things.
    """

    def __init__(self, agent: OfficeAgent) -> None:
        self._agent = agent
        self._wanted: set[Address] = set()
        self._held: set[Address] = set()
        self._working: dict[Address, asyncio.Task[None]] = {}
        for name in ("enter_office", "update_resources"):
            agent.on(name)(self._try_again)

    def want(self, address: Address, wanted: bool) -> None:
        """From now on a host wants to hear of this resource, or none does."""
        if wanted:
            self._wanted.add(address)
        else:
            self._wanted.discard(address)
        self._follow(address)

    def _try_again(self, notice: Mapping[str, Any]) -> None:
        for address in self._wanted - self._held:
            if address.computer == notice.get("computer"):
                self._follow(address)

    def _follow(self, address: Address) -> None:
        if address not in self._working:
            self._working[address] = asyncio.create_task(self._keep_up(address))

    async def _keep_up(self, address: Address) -> None:
        """One task for each resource: what hosts want may change while a request is under way."""
        assert address.uri is not None
        try:
            while (wanted := address in self._wanted) != (address in self._held):
                if wanted:
                    await self._agent.subscribe_resource(address.computer, address.uri)
                    self._held.add(address)
                else:
                    self._held.discard(address)
                    with suppress(SMCPError):  # the office or the computer has gone, and the subscription with it
                        await self._agent.unsubscribe_resource(address.computer, address.uri)
        except SMCPError as error:
            if address not in self._wanted:
                return
            what = "a host does not hear of changes of %s at %s: %s"
            uri, computer = in_log(cut(address.uri, 200)), in_log(address.computer)
            logger.warning(what, uri, computer, printable(cut(str(error))))
        finally:
            del self._working[address]
