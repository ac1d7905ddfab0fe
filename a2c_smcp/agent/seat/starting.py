"""Starting a holder: a process in a session of its own. It inherits the lock from the process that starts it, and
nothing else.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from a2c_smcp.agent.seat.holder_options import HolderOptions
from a2c_smcp.agent.seat.place import SeatPlace
from a2c_smcp.link.interface import LinkOptions, Membership
from a2c_smcp.login.fresh_tokens import LoginToken, login_for
from a2c_smcp.terminal.quick_end import quick_end, quick_imports
from a2c_smcp.utils.logs import configure_logging
from a2c_smcp.utils.loops import fast_command_loop

__all__ = ["hold", "start_holder"]


def start_holder(place: SeatPlace, lock: int, options: HolderOptions) -> None:
    """Start a holder and give it the lock; this process keeps no copy of the lock. Blocks for a moment. Raises
    `OSError`.
    """
    try:
        log = os.open(place.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            starter = subprocess.Popen(
                # -P: do not import a package of the same name from the current directory.
                [sys.executable, "-P", "-m", "a2c_smcp.agent.seat"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
                pass_fds=[lock],
                start_new_session=True,
                cwd="/",
            )
        finally:
            os.close(log)
        # Not as arguments, which everybody may see: the key is among them.
        starter.communicate(json.dumps(_plain(place, options)).encode())
    finally:
        os.close(lock)


def hold(told: dict[str, Any]) -> None:
    """Run the holder, as told on stdin."""
    with quick_imports():
        from a2c_smcp.agent.seat.holder import Holder

    place = SeatPlace(*(Path(told.pop(field.name)) for field in fields(SeatPlace)))
    link, membership = LinkOptions(**told.pop("link")), Membership(**told.pop("membership"))
    if told.pop("signed_in"):
        link = replace(link, api_key=login_for(link.url))
    options = HolderOptions(link, membership, **told)
    configure_logging("warning")  # some hosts come and go with every call, and the log stays

    async def run() -> None:
        holder = Holder(options, place)
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, holder.end)
        await holder.run()

    with quick_end(), asyncio.Runner(loop_factory=fast_command_loop) as runner:
        runner.run(run())


def _plain(place: SeatPlace, options: HolderOptions) -> dict[str, Any]:
    link = options.link
    signed_in = isinstance(link.api_key, LoginToken)  # the holder reads the same file
    link = replace(
        link,
        api_key=None if signed_in else link.api_key,
        headers=dict(link.headers),
        ca=os.path.abspath(link.ca) if link.ca is not None else None,
    )
    files = {field.name: str(getattr(place, field.name)) for field in fields(SeatPlace)}
    return {**files, **asdict(replace(options, link=link)), "signed_in": signed_in}
