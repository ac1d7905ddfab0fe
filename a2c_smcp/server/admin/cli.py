"""`a2c server admin`: looks at running servers and acts on them. Imports what it needs when it runs."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from a2c_smcp.terminal.exits import FAILED, REFUSED
from a2c_smcp.terminal.options import CommandApp
from a2c_smcp.terminal.screen import aligned, say

if TYPE_CHECKING:
    from a2c_smcp.server.admin.client import AdminClient
    from a2c_smcp.server.admin.tables import Table

__all__ = ["app"]

T = TypeVar("T")

app = CommandApp(name="admin", help="See who is connected to running servers, and act: kick, drain, reload, revoke.")
keys_app = CommandApp(name="keys", help="The keys that the servers accept. The keys themselves are never shown.")
app.add_typer(keys_app)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, for programs.")]
Limit = Annotated[int, typer.Option(min=1, help="Rows that are shown at most.")]


@dataclass(frozen=True)
class AdminFlags:
    """Which server, and how it is reached."""

    socket: Annotated[
        Path | None,
        typer.Option(
            envvar="A2C_ADMIN_SOCKET",
            metavar="PATH",
            help="The admin socket of a server.",
            show_default="that of the server on this machine",
        ),
    ] = None
    url: Annotated[
        str | None, typer.Option(envvar="A2C_ADMIN_URL", metavar="URL", help="Instead: the address of its admin port.")
    ] = None
    key_file: Annotated[
        Path | None, typer.Option(envvar="A2C_ADMIN_KEY_FILE", metavar="FILE", help="With --url: the admin key.")
    ] = None
    ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --url: PEM file of certificates to trust.", show_default=False),
    ] = None

    def client(self) -> "AdminClient":
        from a2c_smcp.server.admin.client import AdminClient
        from a2c_smcp.terminal.options import key_from_file

        if self.url is not None:
            if self.key_file is None:
                raise typer.BadParameter("--url needs --key-file, or A2C_ADMIN_KEY_FILE")
            return AdminClient(url=self.url.rstrip("/"), key=key_from_file(self.key_file), ca=self.ca)
        return AdminClient(socket=self.socket or _only_socket())


def _only_socket() -> Path:
    from a2c_smcp.server.admin.client import live_sockets

    found = live_sockets()
    if len(found) == 1:
        return found[0]
    if not found:
        raise typer.BadParameter(
            "no server of this user runs here with an admin socket; name one with --socket, which its first line shows"
        )
    raise typer.BadParameter(f"several servers run here; name one with --socket: {', '.join(map(str, found))}")


def _run(work: Callable[[], T]) -> T:
    """What a server answers. A refusal ends the command."""
    from a2c_smcp.errors import SMCPError

    try:
        return work()
    except SMCPError as error:
        say(f"a2c server admin: {error}", err=True, one_line=True)
        raise typer.Exit(REFUSED) from None


def _print(answer: dict[str, Any], table: "Table | None", as_json: bool) -> None:
    """Print an answer, and on stderr which processes gave none."""
    import json

    from a2c_smcp.server.admin.tables import silent_lines

    if as_json:
        # Escapes keep words of others from acting on a terminal.
        say(json.dumps(answer))
        return
    for line in aligned(table) if table is not None else ():
        say(line)
    for line in silent_lines(answer.get("silent", ())):
        say(line, err=True, one_line=True)


def _pages(client: "AdminClient", what: str, limit: int, **query: Any) -> dict[str, Any]:
    """The first rows, page by page: one answer of a server has a bounded number of rows."""
    import json

    from a2c_smcp.server.admin.rows import MOST_ROWS

    rows: list[Any] = []
    after: Any = None
    while True:
        page = client.get(what, limit=min(limit - len(rows), MOST_ROWS), after=after, **query)
        rows += page[what]
        if page["next"] is None or len(rows) >= limit:
            return {**page, what: rows}
        after = page["next"] if isinstance(page["next"], str) else json.dumps(page["next"])


def _say_more(answer: dict[str, Any], limit: int) -> None:
    if answer["next"] is not None:
        say(f"There are more than {limit}; --limit shows more.", err=True)


def _now() -> float:
    import time

    return time.time()


@app.command()
def offices(*, server: AdminFlags, limit: Limit = 200, as_json: Json = False) -> None:
    """The offices: who is their agent, how many computers they have, and how many tool calls were made."""
    from a2c_smcp.server.admin.tables import office_table

    answer = _run(lambda: _pages(server.client(), "offices", limit))
    _print(answer, office_table(answer["offices"]), as_json)
    if not as_json:
        _say_more(answer, limit)


@app.command()
def members(
    *,
    office: Annotated[str | None, typer.Option(help="Only those of this office.", show_default=False)] = None,
    name: Annotated[str | None, typer.Option(help="Only those of this name.", show_default=False)] = None,
    server: AdminFlags,
    limit: Limit = 200,
    as_json: Json = False,
) -> None:
    """Who is connected: members of offices, and clients that are in no office yet."""
    from a2c_smcp.server.admin.tables import member_table

    answer = _run(lambda: _pages(server.client(), "members", limit, office=office, name=name))
    _print(answer, member_table(answer["members"], _now()), as_json)
    if not as_json:
        _say_more(answer, limit)


@app.command()
def processes(*, server: AdminFlags, as_json: Json = False) -> None:
    """The server processes that work as one system."""
    from a2c_smcp.server.admin.tables import process_table

    answer = _run(lambda: server.client().get("processes"))
    _print(answer, process_table(answer["processes"], _now()), as_json)


@app.command()
def top(
    *,
    once: Annotated[bool, typer.Option("--once", help="Print it once, and end. So does a pipe.")] = False,
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two looks.")] = 2.0,
    server: AdminFlags,
    as_json: Json = False,
) -> None:
    """A live view: the server processes, offices by calls, the slowest tools and the longest queues. q ends it."""
    from a2c_smcp.server.admin.top import run_top, top_tables

    if not (once or as_json) and sys.stdout.isatty():
        _run(lambda: run_top(server.client(), every))
        return
    answer = _run(lambda: server.client().get("top"))
    if not as_json:
        for title, table in top_tables(answer, _now()):
            say(f"{title}:")
            for line in aligned(table):
                say(f"  {line}")
            say("")
    _print(answer, None, as_json)


@app.command()
def kick(
    target: Annotated[str, typer.Argument(metavar="NAME/OFFICE|SESSION", help="Whom.", show_default=False)],
    *,
    server: AdminFlags,
    as_json: Json = False,
) -> None:
    """End the connection of one member, wherever it is connected. Its client may come back: revoke its key to keep it
    out.
    """
    answer = _run(lambda: server.client().post("kick", target=target))
    _print(answer, None, as_json)
    if not as_json:
        row = answer["kicked"]
        say(f"ended the session {row['session']} of {row['name'] or 'a client'}, key {row['key']}", one_line=True)


@app.command()
def drain(
    process: Annotated[
        str | None,
        typer.Option(help="Another process of the system, as `processes` shows it.", show_default="the one asked"),
    ] = None,
    *,
    server: AdminFlags,
    as_json: Json = False,
) -> None:
    """End one server process as SIGTERM does: calls finish, clients move to other processes."""
    answer = _run(lambda: server.client().post("drain", process=process))
    _print(answer, None, as_json)
    if not as_json:
        say(f"server process {answer['draining']} ends", one_line=True)


@app.command()
def reload(*, server: AdminFlags, as_json: Json = False) -> None:
    """Let all processes read their keys, certificates and limits again. A file that is broken changes nothing."""
    answer = _run(lambda: server.client().post("reload"))
    _print(answer, None, as_json)
    if not as_json:
        for host, said in answer["reloaded"].items():
            say(f"{host}: {'; '.join(said) or 'nothing has changed'}", one_line=True)


@keys_app.command("list")
def list_keys(*, server: AdminFlags, as_json: Json = False) -> None:
    """The names and fingerprints of the keys, what they allow, and how many sessions use them."""
    from a2c_smcp.server.admin.tables import key_table

    answer = _run(lambda: server.client().get("keys"))
    _print(answer, key_table(answer["keys"]), as_json)


@keys_app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="NAME|FINGERPRINT", help="Which key.", show_default=False)],
    *,
    server: AdminFlags,
    as_json: Json = False,
) -> None:
    """Accept a key no more, in all processes, and end its sessions. Take it out of the keys file, too: a process that
    starts later reads that file.
    """
    answer = _run(lambda: server.client().post("revoke", key=key))
    _print(answer, None, as_json)
    if not as_json:
        count = f"{answer['processes']} processes" if answer["processes"] != 1 else "1 process"
        say(f"revoked in {count}: {', '.join(answer['revoked'])}", one_line=True)
        say("Take it out of the keys file, too: a process that starts later reads that file.", err=True)
    if answer["silent"]:  # they may accept it still
        raise typer.Exit(FAILED)
