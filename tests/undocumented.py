"""How the tests of `…_internals` say that a library has not what we use of it: in a sentence, with its version."""

import importlib.metadata
import inspect
from collections.abc import Callable, Iterable
from typing import Any


class Library:
    """A library of which we use more than it documents, and our module that says what."""

    def __init__(self, distribution: str, module: str) -> None:
        self._name = f"{distribution} {importlib.metadata.version(distribution)}"
        self._module = module

    def has(self, thing: Any, names: Iterable[str]) -> None:
        for name in names:
            assert hasattr(thing, name), f"{self._name}: {_shown(thing)} has no {name} any more: see {self._module}"

    def takes(self, function: Callable[..., Any], *parameters: str) -> None:
        found = [name for name in inspect.signature(function).parameters if name not in ("self", "kwargs")]
        problem = f"{self._name}: {_shown(function)} takes {found} and not {list(parameters)}: see {self._module}"
        assert found == list(parameters), problem

    def says(self, function: Any, *passages: str) -> None:
        """That it does, somewhere, what these pieces of its source do. White space does not count."""
        source = "".join(inspect.getsource(function).split())
        for passage in passages:
            problem = f"{self._name}: {_shown(function)} has no `{passage}` any more: see {self._module}"
            assert "".join(passage.split()) in source, problem

    def is_overridden(self, ours: type, theirs: type, *names: str) -> None:
        """That our class overrides these of theirs, and no other by accident: the library may get new ones."""
        mine = {name for each in ours.__mro__ if each.__module__.startswith("a2c_smcp.") for name in vars(each)}
        found = {name for name in mine & set(dir(theirs)) if not name.startswith("__")} - {"_abc_impl"}
        odd = sorted(found ^ set(names))
        assert not odd, f"{self._name}: our {ours.__name__} overrides {odd}, or does not: see {self._module}"


def _shown(thing: Any) -> str:
    return getattr(thing, "__qualname__", None) or type(thing).__name__
