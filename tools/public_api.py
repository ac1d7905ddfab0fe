"""Writes `public-api.txt`: every name of the API reference, where it is defined, and its parameters or fields.

`python -m tools.public_api` after a change of the public API. The change of that file then shows what breaks for users.
"""

import importlib
import inspect
import re
import typing
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

__all__ = ["FILE", "public_api"]

ROOT = Path(__file__).parent.parent
FILE = ROOT / "public-api.txt"
_DIRECTIVE = re.compile(r"^::: (a2c_smcp[\w.]*)", re.MULTILINE)


def public_api() -> str:
    """The text of the file, from the pages in `docs/api/` and the code."""
    names = {line for page in (ROOT / "docs" / "api").glob("*.md") for line in _of_page(page)}
    return "".join(f"{line}\n" for line in sorted(names))


def _of_page(page: Path) -> Iterator[str]:
    for path in _DIRECTIVE.findall(page.read_text(encoding="utf-8")):
        module, _, name = path.rpartition(".")
        try:
            found = importlib.import_module(path)
        except ModuleNotFoundError:
            yield from _of_name(path, getattr(importlib.import_module(module), name))
        else:
            for public in found.__all__:
                yield from _of_name(f"{path}.{public}", getattr(found, public))


def _of_name(path: str, thing: object) -> Iterator[str]:
    if not isinstance(thing, type):
        yield path + _parameters(thing)
        return
    yield path + _fields(thing)
    for name in sorted({name for base in thing.__mro__ if _is_ours(base) for name in vars(base)}):
        member = inspect.getattr_static(thing, name)
        is_shown = callable(member) or isinstance(member, (staticmethod, classmethod, property))
        if name.startswith("_") or not is_shown:
            continue
        yield f"{path}.{name}" + ("" if isinstance(member, property) else _parameters(getattr(thing, name)))


def _is_ours(base: type) -> bool:
    return base.__module__.partition(".")[0] == "a2c_smcp"


def _fields(thing: type) -> str:
    if issubclass(thing, Enum):
        return "{" + ", ".join(thing.__members__) + "}"
    if typing.is_typeddict(thing):
        return "{" + ", ".join(sorted(thing.__annotations__)) + "}"
    own = any(_is_ours(base) and "__init__" in vars(base) for base in thing.__mro__)
    is_protocol = getattr(thing, "_is_protocol", False)  # nobody makes one
    return _parameters(thing) if own and not is_protocol else ""


def _parameters(thing: object) -> str:
    if not callable(thing) or not getattr(thing, "__module__", "").startswith("a2c_smcp"):
        return ""
    return "(" + ", ".join(_marked(inspect.signature(thing).parameters.values())) + ")"


def _marked(parameters: typing.Iterable[inspect.Parameter]) -> Iterator[str]:
    """Names, with `=` if there is a default, and with the stars. Types are left to the type checkers."""
    is_by_name = False
    for each in parameters:
        if each.kind is each.VAR_POSITIONAL:
            is_by_name = True
        elif each.kind is each.KEYWORD_ONLY and not is_by_name:
            is_by_name = True
            yield "*"
        stars = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        yield stars + each.name + ("" if each.default is each.empty else "=")


if __name__ == "__main__":
    FILE.write_text(public_api(), encoding="utf-8")
