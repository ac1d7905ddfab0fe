"""The name under which this package is installed, which is not its import name. Pure.

`a2c-smcp` is another project, with the same import name.
"""

from typing import Final

__all__ = ["DISTRIBUTION", "install_command"]

DISTRIBUTION: Final = "a2c-office"


def install_command(extra: str) -> str:
    """The command that adds one of our extras."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"
