"""Packages whose names are imported when they are used, so that importing the package stays quick.

Names that the releases of the other implementation have for the same things are known, too, with a warning. So are
public names of ours that have moved, at the place where they were.
"""

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names", "moved_names", "old_names"]


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


def moved_names(module: str, new: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module whose public names are in the module `new` below `a2c_smcp` now. Their use warns,
    with the new place. Version 0.4.0 removes the old one.
    """

    def import_name(name: str) -> Any:
        # Python asks every module for names like `__path__`.
        found = None if name.startswith("_") else import_module(f"a2c_smcp.{new}")
        if found is None or name not in found.__all__:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        said = f"{module}.{name} has moved to a2c_smcp.{new}; the old place answers until version 0.4.0"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return getattr(found, name)

    return import_name
