"""A computer whose config file is a real one, and what people paste."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.config.writer import ConfigWriter
from a2c_smcp.computer.console import Console
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.computer.socketio import SMCPComputerClient
from tests.computer.console.harness import opened
from tests.computer.fakes.computers import server
from tests.computer.fakes.offices import options


def flat(name: str, mode: str = "normal", **more: Any) -> dict[str, Any]:
    """The entry of a misbehaving server as other programs write it."""
    config = server(name, mode, **more)
    own = {key: value for key, value in config.items() if key not in ("name", "type", "server_parameters")}
    return {**config["server_parameters"], **own}


def paste(name: str, mode: str = "normal", **more: Any) -> str:
    """As in a README."""
    return json.dumps({"mcpServers": {name: flat(name, mode, **more)}}, indent=2)


def with_comments(*names: str, **extra: Any) -> str:
    """A config file as a person wrote it."""
    entries = ",\n".join(f'    // about {name}\n    "{name}": {json.dumps({**flat(name), **extra})}' for name in names)
    return f'{{\n  "mcpServers": {{ // mine\n{entries}\n  }}\n}}\n'


def read(file: Path) -> str:
    return file.read_text()


def write(file: Path, text: str) -> None:
    file.write_text(text)


def forbid_writing(file: Path) -> None:
    file.chmod(0o444)


class Door:
    """The way to real offices, as a command would have it."""

    url = "http://127.0.0.1:1"
    computer: Computer

    def __init__(self) -> None:
        self._client: SMCPComputerClient | None = None

    async def join(self, url: str, office: str, api_key: str | None) -> None:
        client = SMCPComputerClient(self.computer, options(url, api_key=api_key))
        await client.connect()
        await self.leave()
        self._client = client
        await client.join_office(office)

    async def leave(self) -> None:
        if self._client is not None:
            await self._client.disconnect()


@asynccontextmanager
async def at_home(
    *files: Path, offices: Door | None = None, prefix_tools: bool = False, **more: Any
) -> AsyncIterator[tuple[Computer, Console]]:
    """A Computer with its console that was started with these config files."""
    found = load_config_files(*files, prefix_tools=prefix_tools)
    config = ConfigWriter(files, files[0] if files else None, prefix_tools=prefix_tools)
    home = ComputerHome(config, offices)
    async with opened(*found.servers, home=home, inputs=found.inputs, **more) as both:
        if offices is not None:
            offices.computer = both[0]
        try:
            yield both
        finally:
            if offices is not None:
                await offices.leave()
