"""The name under which this package is installed, which is not its import name. Pure.

`a2c-smcp` is another project, with the same import name.
"""

from typing import Final

__all__ = ["DISTRIBUTION", "WHERE", "install_command"]

DISTRIBUTION: Final = "a2c-office"
#: Until there is a release, nobody owns the name at PyPI: whoever registers it would own who installs by it.
WHERE: Final = "in your clone of the repository"


def install_command(extra: str = "") -> str:
    """The command that installs this package, or adds one of its extras, and where to type it."""
    what = f"'.[{extra}]'" if extra else "."
    return f"pip install {what} ({WHERE})"
