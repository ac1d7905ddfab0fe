"""`a2c computer`, also installed as `a2c-computer` and `smcp-computer`."""

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


def main() -> None:
    app()
