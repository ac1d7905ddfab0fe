"""A sandbox for terminals by bubblewrap: the system to read, one folder to write. Pure but for finding `bwrap`, and the
file of the name servers.
"""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["sandbox_command"]

_HIDDEN: Final = ("/tmp", "/run")


def sandbox_command(folder: Path, environment: Mapping[str, str]) -> list[str]:
    """The command that runs a program in a sandbox. Raises `ValueError` if bubblewrap is not installed.

    Programs see the whole system and write only below `folder` and in a `/tmp` of their own. `/run` and the runtime
    folder are empty: through the sockets there, such as docker's, a program could write anywhere. They see no process
    of others, and end with the server. The terminal stays their controlling terminal: without it Ctrl-C would be lost.
    """
    if (bwrap := shutil.which("bwrap")) is None:
        raise ValueError("--sandbox needs bubblewrap: install the package bubblewrap, or leave --sandbox out")
    return [
        bwrap,
        *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *(word for hidden in _hidden(environment) for word in ("--tmpfs", hidden)),
        # Names of the network could not be looked up without this file, which is often a link into /run.
        *("--ro-bind-try", *[os.path.realpath("/etc/resolv.conf")] * 2),
        *("--bind", str(folder), str(folder)),
        *("--unshare-pid", "--unshare-ipc", "--die-with-parent", "--"),
    ]


def _hidden(environment: Mapping[str, str]) -> list[str]:
    runtime = environment.get("XDG_RUNTIME_DIR", "")
    is_elsewhere = runtime.startswith("/") and not any(Path(runtime).is_relative_to(hidden) for hidden in _HIDDEN)
    return [*_HIDDEN, runtime] if is_elsewhere and os.path.isdir(runtime) else list(_HIDDEN)
