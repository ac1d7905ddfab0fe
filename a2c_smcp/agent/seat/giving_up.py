"""Asks the holder of a seat that no process uses any more to give it up: the holder keeps it for some seconds more."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from a2c_smcp.agent.seat.holder_options import FREED_PAUSE, FREED_SECONDS
from a2c_smcp.agent.seat.pipe import SeatPipe
from a2c_smcp.agent.seat.place import NotSharedError, peer_pid, place_of
from a2c_smcp.agent.seat.seat_frames import LONGEST_HEAD
from a2c_smcp.errors import RoomFullError
from a2c_smcp.link.interface import LinkOptions

__all__ = ["gives_up_seat", "join_freed"]


async def gives_up_seat(link: LinkOptions, office: str, seconds: float = 2.0) -> bool:
    """Whether a holder of this user had the seat of this office, for the same URL and key, and gives it up now. It does
    so if no process uses the seat.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[bool] = loop.create_future()

    def take(head: list[Any], _: bytes) -> None:
        if head == ["kept"] and not answer.done():
            answer.set_result(False)

    def ended(_: object) -> None:
        if not answer.done():
            answer.set_result(True)

    pipe = SeatPipe(take, link.max_message + LONGEST_HEAD)
    try:
        async with asyncio.timeout(seconds):
            await loop.create_unix_connection(lambda: pipe, str(place_of(link, office).socket))
            pipe.ended.add_done_callback(ended)
            peer_pid(pipe.socket)
            pipe.send(["yield"])
            return await answer
    except (NotSharedError, OSError):  # nobody holds it here, or an older holder does not know the question
        return False
    finally:
        pipe.close()


async def join_freed(join: Callable[[], Awaitable[None]]) -> None:
    """Join an office whose seat was given up just now. Raises the last refusal."""
    now = asyncio.get_running_loop().time
    deadline = now() + FREED_SECONDS
    while True:
        try:
            await join()
        except RoomFullError:
            if now() >= deadline:
                raise
            await asyncio.sleep(FREED_PAUSE)
        else:
            return
