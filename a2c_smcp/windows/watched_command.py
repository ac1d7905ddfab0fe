"""What a command prints, run again and again. It runs in a group of its own, with a time limit."""

import asyncio
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from a2c_smcp.utils.children import kill_group, start_group
from a2c_smcp.windows.noise import last_of_each_line

__all__ = ["WatchedCommand"]

_MOST_OUTPUT: Final = 256 * 1024
_SHORTEST_LIMIT: Final = 10.0


@dataclass(slots=True)
class WatchedCommand:
    """A command of the person's, and what it printed the last time."""

    command: str
    every: float
    """Seconds between the starts of two runs."""
    folder: Path
    environment: Mapping[str, str] = field(repr=False)
    lines: list[str] = field(default_factory=list)
    exit_code: int | None = None
    problem: str | None = "has not run yet"

    async def run(self) -> bool:
        """Run it once. Returns whether it printed or returned something else than before."""
        before = (self.lines, self.exit_code, self.problem)
        limit = max(self.every, _SHORTEST_LIMIT)
        try:
            output, self.exit_code = await self._output(limit)
            self.lines, self.problem = last_of_each_line(output.decode(errors="replace")).rstrip("\n").split("\n"), None
        except TimeoutError:
            self.exit_code, self.problem = None, f"did not end within {limit:g} s"
        except OSError as error:
            self.exit_code, self.problem = None, error.strerror or str(error)
        return (self.lines, self.exit_code, self.problem) != before

    async def _output(self, limit: float) -> tuple[bytes, int]:
        process = await start_group(
            "/bin/sh",
            "-c",
            self.command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            cwd=self.folder,
            env=dict(self.environment),
        )
        try:
            async with asyncio.timeout(limit):
                assert process.stdout is not None
                output = bytearray()
                while chunk := await process.stdout.read(65536):
                    output += chunk
                    # The end says how it went.
                    del output[:-_MOST_OUTPUT]
                return bytes(output), await process.wait()
        finally:
            await kill_group(process)
