"""`a2c`: the one command. Each subcommand imports its own room when it runs, so that `a2c --help` stays quick."""

from typing import Annotated

import typer

from a2c_smcp import PROTOCOL_VERSION, __version__
from a2c_smcp.computer.cli.main import app as computer_app

__all__ = ["app", "main"]

app = typer.Typer(
    help="A2C-SMCP: an agent uses the tools, the screen and the documents of many computers through one server.",
    no_args_is_help=True,
    add_completion=False,
)
app.add_typer(computer_app)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"a2c-smcp {__version__} (protocol {PROTOCOL_VERSION})")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options that stand before any subcommand."""


@app.command()
def demo() -> None:
    """A guided tour on this machine: no configuration, no questions, nothing left behind."""
    from a2c_smcp.demo.tour import run

    raise typer.Exit(run())


def main() -> None:
    app()
