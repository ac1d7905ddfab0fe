"""Brings the server a new token before the old one ends, so that the connection stays."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.link.connecting import current_key
from a2c_smcp.link.connection import Connection
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.utils.token_times import renewal_pause, token_claims

__all__ = ["renew_token"]

logger = logging.getLogger(__name__)

Authenticate: TypeAlias = Callable[[Connection, str], Awaitable[SMCPError | None]]


async def renew_token(connection: Connection, options: LinkOptions, authenticate: Authenticate) -> None:
    """Go on until the token has no successor in time. Then the server ends the connection, and the client comes back
    with what its source of keys gives it then.
    """
    if not callable(options.api_key):
        return
    while (pause := renewal_pause(connection.key, time.time())) is not None:
        await asyncio.sleep(pause)
        try:
            token = await current_key(options)
            if token is None or token == connection.key:
                continue
            refusal = await authenticate(connection, token)
        except SMCPError as error:
            logger.info("no new token for the server yet: %s", error)
            continue
        if refusal is None:
            connection.key = token
            logger.debug("the server has taken the new token")
        elif isinstance(refusal, BadRequestError):
            # A server that does not know the event. A second connection with the new token takes this one's place.
            left = max(0.0, token_claims(connection.key or "").get("exp", 0) - time.time())
            if not connection.told_to_move.done():
                connection.told_to_move.set_result(left)
            return
        else:
            logger.warning("the server refuses the new token: %s", refusal)
