"""`a2c computer`, also installed as `a2c-computer` and `smcp-computer`.

Each command imports what it needs when it runs, so that `--help` stays quick.
"""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app", "main"]

app = typer.Typer(
    name="computer",
    help="Host MCP servers and offer their tools, windows and documents to an agent.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def computer() -> None:
    """A callback keeps this a group of commands, however many there are."""


@app.command()
def validate(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Config files, read as one configuration.")],
) -> None:
    """Say everything that is wrong with config files, without starting or asking for anything."""
    from a2c_smcp.computer.cli.validate import validate_files

    raise typer.Exit(validate_files(files))


def main() -> None:
    app()
