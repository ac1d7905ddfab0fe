"""What the exit status means, the same in all commands. docs/cli.md has this table for users.

0    done
1    it was tried, but failed: the tool, a file, a check
2    the command line makes no sense; typer uses this status itself
3    not reached, or refused: no server, or the server or the computer refused
130  interrupted
"""

from typing import Final

__all__ = ["FAILED", "INTERRUPTED", "REFUSED"]

FAILED: Final = 1
REFUSED: Final = 3
INTERRUPTED: Final = 130
