"""The commands of the distribution a2c-office. They check their installation before they import the package.

The distribution a2c-smcp is another project with the same import name, `a2c_smcp`. If both are installed, files of one
replace or hide files of the other, and the removal of either deletes files of both. So this module is outside the
package, and imports it only after the check. The check reads the names in one folder:
`importlib.metadata.packages_distributions` reads files of every distribution, and `a2c --version` would take more than
half as long again.
"""

import importlib.util
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

__all__ = ["a2c", "a2c_computer", "problem_of", "smcp_computer"]

_PACKAGE: Final = "a2c_smcp"
_OTHER: Final = re.compile(r"a2c[-_.]smcp-[^/]*\.(dist|egg)-info", re.IGNORECASE)
_REMOVE: Final = "pip uninstall a2c-smcp"
_REINSTALL: Final = "pip install --force-reinstall ."
_WHERE: Final = "In your clone of the repository run:"


def a2c() -> None:
    """`a2c`, the one command."""
    _look("a2c")
    from a2c_smcp.cli import main

    main()


def a2c_computer() -> None:
    """`a2c-computer`, another name of `a2c computer`."""
    _look("a2c-computer")
    from a2c_smcp.computer.cli.main import main

    main()


def smcp_computer() -> None:
    """`smcp-computer`, the name in the specification."""
    _look("smcp-computer")
    from a2c_smcp.computer.cli.main import smcp_main

    smcp_main()


def problem_of(init: str | None, beside: Iterable[str]) -> str | None:
    """What is wrong with an installation, and what to do; `None` if all is well.

    `init` is the path of the package's `__init__.py`, if there is one, and `beside` has the names beside the package.
    """
    if init is None:
        return f"files of a2c-office are missing; a removal of a2c-smcp deletes them. {_WHERE} {_REINSTALL}"
    if any(_OTHER.fullmatch(name) for name in beside):
        folder = os.path.dirname(os.path.dirname(init))
        return (
            f"a2c-smcp, another project with the same import name, is installed too, in {folder}. "
            f"Each overwrites files of the other. {_WHERE} {_REMOVE} && {_REINSTALL}"
        )
    return None


def _look(command: str) -> None:
    spec = importlib.util.find_spec(_PACKAGE)
    init = spec.origin if spec else None  # without its __init__.py a package has none
    beside: list[str] = []
    if init:
        with suppress(OSError):  # a package in an archive has no folder
            beside = os.listdir(os.path.dirname(os.path.dirname(init)))
    problem = problem_of(init, beside)
    if problem:
        raise SystemExit(f"{command}: {problem}")
