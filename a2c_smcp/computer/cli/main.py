"""`a2c computer`, also installed as `a2c-computer` and `smcp-computer`.

Each command imports what it needs when it runs, so that `--help` stays quick.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from a2c_smcp.utils.logs import LogFormat, configure_logging

__all__ = ["app", "main"]

app = typer.Typer(
    name="computer",
    help="Host MCP servers and offer their tools, windows and documents to an agent.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks show more than a log should hold
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


@app.command()
def run(
    name: Annotated[str, typer.Option(help="This computer's name in the office.")],
    office: Annotated[str, typer.Option(help="The office to join.")],
    config: Annotated[list[Path], typer.Option(metavar="FILE", help="Config file; repeatable. Changes are followed.")],
    inputs: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="File with inputs; repeatable. Changes are followed.")
    ] = None,
    url: Annotated[str, typer.Option(help="The server's URL.")] = "http://127.0.0.1:7000",
    api_key: Annotated[str | None, typer.Option(envvar="A2C_API_KEY", help="The server's key.")] = None,
    api_key_header: Annotated[str, typer.Option(help="Header that carries the key.")] = "x-api-key",
    headless: Annotated[bool, typer.Option("--headless", help="Serve until SIGTERM, and ask nobody anything.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Run every call, also of tools that are not auto_apply.")] = False,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="What goes to the log on stderr.")
    ] = "info",
    log_format: Annotated[LogFormat, typer.Option(help="For people, or one JSON object a line.")] = "text",
) -> None:
    """Host the MCP servers of config files in an office."""
    if not headless:
        raise typer.BadParameter("only --headless is there yet; the interactive front end is still to come")
    from a2c_smcp.computer.cli.headless import HeadlessOptions, run_headless
    from a2c_smcp.errors import SMCPError
    from a2c_smcp.utils.link import LinkOptions

    configure_logging(log_level, log_format)
    link = LinkOptions(url, api_key=api_key, api_key_header=api_key_header)
    try:
        run_headless(HeadlessOptions(name, office, link, (*config, *(inputs or ())), yes))
    except SMCPError as error:
        typer.echo(f"a2c computer: {error}", err=True)
        raise typer.Exit(1) from None


def main() -> None:
    app()
