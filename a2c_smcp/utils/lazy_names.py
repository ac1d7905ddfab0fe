"""Packages whose names are imported when they are used, so that importing the package stays quick."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_names"]


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package. `modules` maps each name to its module below the package `a2c_smcp`."""

    def import_name(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"a2c_smcp.{modules[name]}"), name)

    return import_name
