"""`a2c server nats-setup`. It imports what it needs when it runs. `a2c server` itself is in `a2c_smcp.cli`."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from a2c_smcp.terminal.options import CommandApp
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import install_command

__all__ = ["app"]

app = CommandApp(name="server", no_args_is_help=False)

_NEXT = """\
Written to {folder}; only you can read these files:
  auth.conf, cluster.conf      for every NATS server; deploy/nats/nats.conf includes them from a folder keys beside it
  server.creds, cluster.key    for every a2c server
  operator.seed, account.seed  to make more users with; keep them elsewhere, no server needs them

Next:
  1. Restart the NATS servers.
  2. a2c doctor --nats {url} --nats-creds {folder}/server.creds{prefix}
  3. Start every server with
     a2c server --nats {url} --nats-creds {folder}/server.creds --cluster-key-file {folder}/cluster.key{prefix}
     If servers run already, docs/scaling.md says in which order to restart them."""


@app.command("nats-setup")
def nats_setup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The folder for the files. It is made if missing.")],
    nats_prefix: Annotated[str, typer.Option(help="The prefix of `a2c server --nats-prefix`.")] = "a2c",
    node: Annotated[
        list[str] | None,
        typer.Option(
            metavar="HOST",
            help="A NATS server: the name or address by which the others reach it; repeatable.",
            show_default="nats-1, nats-2, nats-3",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite files that exist. All servers need the new files then.")
    ] = False,
) -> None:
    """Make keys: one for NATS, which then asks for it, and one by which the a2c servers sign their messages.

    Makes one operator, one account for this system alone, and one user for all a2c servers. The user may use the
    subjects that the servers need, and no others. Needs no tool of NATS.
    """
    if find_spec("nkeys") is None:
        say(f"a2c server nats-setup needs the extra cluster: {install_command('cluster')}", err=True)
        raise typer.Exit(1)
    from a2c_smcp.server.cluster.nats_setup import make_files, write_files
    from a2c_smcp.server.cluster.options import ClusterOptions, parse_servers

    nodes = node or ["nats-1", "nats-2", "nats-3"]
    url = ",".join(f"nats://{each}:4222" for each in nodes)
    try:
        ClusterOptions(parse_servers(url), prefix=nats_prefix)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    try:
        write_files(folder, make_files(nats_prefix, nodes), overwrite=force)
    except FileExistsError as error:
        say(f"a2c server nats-setup: {error}; --force overwrites it, but then all servers need the new files", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        say(f"a2c server nats-setup: {error}", err=True)
        raise typer.Exit(1) from None
    prefix = "" if nats_prefix == "a2c" else f" --nats-prefix {nats_prefix}"
    say(_NEXT.format(folder=folder, url=url, prefix=prefix))
