"""Runs the program that a `command` input names and takes what it prints. Knows nothing of caches or prompts."""

import asyncio
import os
import shlex
from asyncio.subprocess import DEVNULL, PIPE, Process
from typing import Final

from a2c_smcp.computer.inputs.base import BaseInputResolver, InputFailedError
from a2c_smcp.computer.inputs.env import PREFIX
from a2c_smcp.computer.mcp_clients.model import CommandInput, MCPServerInput
from a2c_smcp.errors import InputNotFoundError
from a2c_smcp.utils.children import kill_group, start_group

__all__ = ["CommandInputResolver"]

_MAX_OUTPUT: Final = 64 * 1024


class CommandInputResolver(BaseInputResolver):
    """Answers `command` inputs. For other inputs it has no value."""

    def __init__(self, timeout: float = 30.0) -> None:
        self._timeout = timeout

    async def resolve(self, definition: MCPServerInput) -> str:
        if not isinstance(definition, CommandInput):
            raise InputNotFoundError(definition.id)
        try:
            process = await _start(definition)
        except OSError as error:
            raise InputFailedError(definition.id, f"the command cannot be started: {error.strerror}") from None
        except ValueError:
            raise InputFailedError(
                definition.id, "the command cannot be started: it contains a null character"
            ) from None
        try:
            async with asyncio.timeout(self._timeout):
                output, complaint, status = await _outcome(process)
        except TimeoutError:
            await kill_group(process)
            raise InputFailedError(definition.id, f"the command took longer than {self._timeout:g} s") from None
        except BaseException:
            await kill_group(process)
            raise
        if status:
            raise InputFailedError(definition.id, f"the command failed with status {status}{_last_lines(complaint)}")
        return _value(definition.id, output)


async def _start(definition: CommandInput) -> Process:
    words = [word for key, value in (definition.args or {}).items() for word in (f"--{key}", value)]
    if definition.shell:
        arguments = ["/bin/sh", "-c", " ".join([definition.command, *map(shlex.quote, words)])]
    else:
        arguments = [*shlex.split(definition.command), *words]
    # In a group of its own all of it can be ended. Without a terminal a command that asks fails, and does not hang.
    return await start_group(
        *arguments,
        stdin=DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
        # The command must not see the values of other inputs.
        env={name: value for name, value in os.environ.items() if not name.startswith(PREFIX)},
    )


async def _outcome(process: Process) -> tuple[bytes, bytes, int]:
    assert process.stdout is not None
    assert process.stderr is not None
    output, complaint = await asyncio.gather(_tail(process.stdout, _MAX_OUTPUT + 1), _tail(process.stderr, 1000))
    return output, complaint, await process.wait()


async def _tail(stream: asyncio.StreamReader, size: int) -> bytes:
    """Read to the end, and keep the last part: a command that prints without end must not fill the memory."""
    kept = b""
    while chunk := await stream.read(_MAX_OUTPUT):
        kept = (kept + chunk)[-size:]
    return kept


def _value(input_id: str, output: bytes) -> str:
    if len(output) > _MAX_OUTPUT:
        raise InputFailedError(input_id, f"the command printed more than {_MAX_OUTPUT} bytes")
    try:
        return output.decode().strip()
    except UnicodeDecodeError:
        raise InputFailedError(input_id, "the command printed something that is not UTF-8 text") from None


def _last_lines(complaint: bytes) -> str:
    lines = complaint.decode(errors="replace").strip().splitlines()[-5:]
    # Without escape sequences: they would act on our terminal.
    return "".join(f"\n  {''.join(c for c in line if c.isprintable())}" for line in lines)
