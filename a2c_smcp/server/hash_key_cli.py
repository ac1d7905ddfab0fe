"""`a2c server hash-key`: a key for `--keys FILE` that nobody can read there. It imports what it needs when it runs."""

import sys
from typing import Annotated

import typer

from a2c_smcp.terminal.screen import say

__all__ = ["hash_key"]


def hash_key(
    name: Annotated[str, typer.Option(help="What logs and operators see.")] = "a key",
    new: Annotated[bool, typer.Option("--new", help="Make a key, and print it once on stderr.")] = False,
) -> None:
    """Print the entry of a key for --keys FILE, with its hash instead of the key.

    The key is read from stdin, or typed; it is not an option, because every user of the machine could read it there.
    """
    import hashlib
    import json
    import secrets

    if new:
        key = secrets.token_urlsafe(32)
        say(f"the key, which is shown only now: {key}", err=True)
    elif sys.stdin.isatty():
        key = typer.prompt("key", hide_input=True, err=True).strip()
    else:
        key = sys.stdin.readline().strip()
    if not key:
        raise typer.BadParameter("there is no key on stdin; --new makes one")
    if len(key) < 16:
        say("warning: this key is short, and can be found from its hash; --new makes a long one", err=True)
    # A JSON string of printable characters is a TOML string, too.
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    say(f'[[keys]]\nname = {json.dumps(name)}\nsha256 = "{digest}"')
