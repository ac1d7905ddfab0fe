"""What a host passes on to the servers that it starts, and what it must see: hosts do not give them their whole
environment.
"""

import os
import time
from collections.abc import Iterable

NAMES = ("PATH", "HOME", "A2C_URL", "A2C_OFFICE", "A2C_API_KEY", "XDG_RUNTIME_DIR", "XDG_STATE_HOME")
ENV = {name: os.environ[name] for name in NAMES if name in os.environ}
#: The whole list, however long it is.
ARGS = ["mcp", "--search", "never"]
HONEST = {"list_computers", "pc__echo", "pc__picture", "pc__fail", "pc__wait"}


_DEADLINE = time.monotonic() + 80


def complete(names: Iterable[str]) -> bool:
    """Whether all tools are there: those of the honest computer, and the forty of the hostile one."""
    seen = set(names)
    assert time.monotonic() < _DEADLINE, sorted(seen)
    return seen >= HONEST and sum(name.startswith("evil__") for name in seen) == 40
