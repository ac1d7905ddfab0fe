"""The loops of commands look names up like any other, and end without those that nobody answers."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from a2c_smcp.utils.loops import command_loop, fast_command_loop

Factory = Callable[[], asyncio.AbstractEventLoop]

both = pytest.mark.parametrize("factory", [command_loop, fast_command_loop])

#: The name server takes two minutes, and whoever asked gives up.
_GIVES_UP = """
import asyncio, socket, time
from a2c_smcp.utils.loops import {factory}

async def main():
    looking = asyncio.create_task(asyncio.get_running_loop().getaddrinfo("slow.example", 80))
    await asyncio.wait({{looking}}, timeout=0.2)
    looking.cancel()
    await asyncio.wait({{looking}})
    print("cancelled:", looking.cancelled())

socket.getaddrinfo = lambda *_, **__: time.sleep(120)
with asyncio.Runner(loop_factory={factory}) as runner:
    runner.run(main())
"""


@both
def test_a_name_is_looked_up_and_an_unknown_one_is_an_error(factory: Factory) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
        assert found == socket.getaddrinfo("localhost", 80, type=socket.SOCK_STREAM)
        with pytest.raises(socket.gaierror):
            await loop.getaddrinfo("127.0.0.1", "no such service")

    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())


@both
def test_a_lookup_that_nobody_answers_does_not_keep_the_process(factory: Factory) -> None:
    script = _GIVES_UP.format(factory=factory.__name__)
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert (result.stdout, result.stderr) == ("cancelled: True\n", "")
