"""Takes from this process what Python has on Unix only. Python imports it by its name, before the program.

Other libraries may import what they import on Linux: their own code for Windows cannot run here. What they and asyncio
need of `os` and `signal` stays, too.
"""

import asyncio
import builtins
import os
import signal
import sys
from typing import Any

MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
OF_OS = "O_CLOEXEC O_DIRECTORY O_NOFOLLOW O_NONBLOCK confstr fchmod fchown fork forkpty geteuid getpgid getuid openpty"
OF_SIGNAL = "ITIMER_REAL SIGALRM SIGHUP SIGUSR1 SIGUSR2 SIGWINCH alarm setitimer"
OF_LOOPS = "add_reader add_signal_handler add_writer create_unix_connection create_unix_server"

_import = builtins.__import__


def _import_less(name: str, globals: Any = None, *more: Any, **options: Any) -> Any:
    if name in MODULES and str((globals or {}).get("__name__")).startswith(("a2c_smcp", "__main__")):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return _import(name, globals, *more, **options)


def _not_here(*_: object, **__: object) -> None:
    raise NotImplementedError


builtins.__import__ = _import_less
sys.modules["uvloop"] = None  # type: ignore[assignment]  # importing it fails
for name in OF_OS.split():
    delattr(os, name)
os.supports_dir_fd.clear()
for name in OF_SIGNAL.split():
    delattr(signal, name)
for name in OF_LOOPS.split():
    setattr(asyncio.SelectorEventLoop, name, _not_here)
