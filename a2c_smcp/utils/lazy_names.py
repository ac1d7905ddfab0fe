"""Packages whose names are imported when they are used, so that importing the package stays quick.

Names that the releases of the other implementation have for the same things are known, too, with a warning.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names", "old_names"]


def lazy_names(package: str, modules: Mapping[str, str], old: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `modules` maps each name to its module below the package `a2c_smcp`. `old` has
    names as in `old_names`.
    """
    import_old = old_names(package, old or {}, frames=3)

    def import_name(name: str) -> Any:
        if name not in modules:
            return import_old(name)
        return getattr(import_module(f"a2c_smcp.{modules[name]}"), name)

    return import_name


def old_names(package: str, new: Mapping[str, str], frames: int = 2) -> Callable[[str], Any]:
    """The `__getattr__` of a module that has names of the other implementation. `new` maps each of them to the module
    below `a2c_smcp` and the name of the same thing here, with a dot between them. Its use warns, with the line of the
    program: that many frames above the warning.
    """

    def import_name(name: str) -> Any:
        if name not in new:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, _, here = new[name].rpartition(".")
        said = f"{package}.{name} is called a2c_smcp.{new[name]} here; docs/migrating.md says what else is different"
        warnings.warn(said, DeprecationWarning, stacklevel=frames)
        return getattr(import_module(f"a2c_smcp.{module}"), here)

    return import_name
