"""The tour itself: what exists so far, shown at work. Prints for people; its exit code is for programs."""

from rich.console import Console
from rich.table import Table

from a2c_smcp import PROTOCOL_VERSION
from a2c_smcp.computer.utils.dpe_uri import element_uri, page_uri, parse_dpe_uri, with_params
from a2c_smcp.errors import SMCPError
from a2c_smcp.smcp import EVENTS, TOOL_CALL_EVENT, Kind
from a2c_smcp.utils.window_uri import WindowURI
from a2c_smcp.wire import parse

__all__ = ["run"]


def run() -> int:
    """Walk through the tour and return the exit code."""
    console = Console(highlight=False)
    console.print(f"\n[bold]A2C-SMCP[/bold], protocol {PROTOCOL_VERSION}\n")
    _show_events(console)
    _show_addresses(console)
    _show_refusals(console)
    console.print("\n[green]✓[/green] The tour is over.\n")
    return 0


def _show_events(console: Console) -> None:
    console.print("[bold]1. One table is the whole protocol.[/bold]")
    table = Table("event", "who sends it", "what the server does with it", box=None, pad_edge=False)
    for event in EVENTS.values():
        if event.kind is not Kind.NOTIFICATION:
            action = f"broadcasts {event.notification}" if event.notification else event.kind.value
            table.add_row(event.name, " or ".join(sorted(event.senders)), action)
    console.print(table)


def _show_addresses(console: Console) -> None:
    console.print("\n[bold]2. Windows and documents have addresses.[/bold]")
    window = WindowURI("com.example.browser", ("main", "src/page"), priority=80, fullscreen=True)
    console.print(f"   a window    {window}")
    document = "dpe://com.example.docs/年度报告"
    page = page_uri(document, 3)
    for label, uri in (
        ("a document ", document),
        ("its page 3 ", with_params(page, {"format": "markdown"})),
        ("an element ", element_uri(document, "table/1")),
    ):
        console.print(f"   {label} {uri}  [dim](level {parse_dpe_uri(uri).level})[/dim]")


def _show_refusals(console: Console) -> None:
    console.print("\n[bold]3. Bad input gets an answer that says what is wrong.[/bold]")
    request = {"agent": "a", "req_id": "1", "computer": "laptop", "tool_name": "echo", "params": {}, "timeout": 0}
    for attempt in (
        lambda: parse(TOOL_CALL_EVENT, request),
        lambda: parse("client:dance", {}),
        lambda: WindowURI.parse("window://com.example?priority=101"),
        lambda: parse_dpe_uri("dpe://com.example.docs/report/pages/-1"),
    ):
        try:
            attempt()
        except SMCPError as error:
            console.print(f"   [yellow]{error}[/yellow]")
