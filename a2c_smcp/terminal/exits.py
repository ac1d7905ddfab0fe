"""What the exit status of a command means, alike in all of them. docs/cli.md has the same table for users.

0    done
1    it was tried, and failed: the tool, a file, a check
2    the command line makes no sense; this one is typer's own
3    it did not get there: no server, or the server or the computer refused
130  interrupted
"""

from typing import Final

__all__ = ["FAILED", "INTERRUPTED", "REFUSED"]

FAILED: Final = 1
REFUSED: Final = 3
INTERRUPTED: Final = 130
