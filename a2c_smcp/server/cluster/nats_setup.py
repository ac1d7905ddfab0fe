"""The files of `a2c server nats-setup`: those that NATS servers read, and those that our servers read."""

import secrets
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from a2c_smcp.server.cluster.nats_keys import Account, Operator, new_seed, server_permissions
from a2c_smcp.utils.replacing import replace_file

__all__ = ["make_files", "write_files"]


def make_files(prefix: str, nodes: Sequence[str]) -> dict[str, str]:
    """Make new keys. Returns the text of each file by its name. `nodes` are the hosts of the NATS servers."""
    operator, system, account = Operator(_seed("operator")), Account(_seed("account")), Account(_seed("account"))
    now = int(time.time())
    accounts = {
        system.public: operator.account_token("SYS", system.public, now),
        account.public: operator.account_token(prefix, account.public, now, streams=1),
    }
    return {
        "auth.conf": _auth(operator.token(prefix, system.public, now), system.public, accounts),
        "cluster.conf": _routes(nodes, secrets.token_urlsafe(32)),
        "server.creds": account.credentials("a2c server", _seed("user"), server_permissions(prefix), now),
        "cluster.key": f"{secrets.token_urlsafe(32)}\n",
        "operator.seed": f"{operator.seed}\n",
        "account.seed": f"{account.seed}\n",
    }


def _seed(kind: str) -> str:
    return new_seed(kind, secrets.token_bytes(32))


def _auth(operator: str, system: str, accounts: Mapping[str, str]) -> str:
    preload = "".join(f"  {account}: {token}\n" for account, token in accounts.items())
    return (
        "# Made by `a2c server nats-setup`: whom this NATS server trusts. Included by nats.conf.\n\n"
        f"operator: {operator}\n"
        f"system_account: {system}\n"
        "resolver: MEMORY\n"
        f"resolver_preload: {{\n{preload}}}\n"
    )


def _routes(nodes: Sequence[str], password: str) -> str:
    routes = ", ".join(f'"nats://route:{password}@{node}:6222"' for node in nodes)
    return (
        "# Made by `a2c server nats-setup`: how NATS servers know each other. Included by cluster {} of nats.conf.\n\n"
        f'authorization: {{user: route, password: "{password}", timeout: 2}}\n'
        f"routes: [{routes}]\n"
    )


def write_files(folder: Path, files: Mapping[str, str], *, overwrite: bool = False) -> None:
    """Write files that only their owner may read. If one of them exists, raises `FileExistsError` and writes
    nothing.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not overwrite and (there := [name for name in files if (folder / name).exists()]):
        raise FileExistsError(f"{folder / there[0]} exists already")
    for name, text in files.items():
        # Each is a new file, so that nobody has it open from before.
        replace_file(folder / name, text.encode())
