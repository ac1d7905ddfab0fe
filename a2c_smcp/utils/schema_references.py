"""References inside a JSON Schema: where they lead, circles, and how large the schema is when they are followed. Pure.

Many hosts put the target in the place of each reference. A circle never ends then, and thirty references can stand for
a thousand million schemas.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from a2c_smcp.utils.schema_keywords import children

__all__ = ["Followed", "cut_references", "follow", "target_of"]


@dataclass(frozen=True, slots=True)
class Followed:
    """How large a schema is when its references are followed. `circles` are the schemas whose reference leads back."""

    parts: int
    levels: int
    circles: list[dict[str, Any]]


def target_of(root: Mapping[str, Any], reference: str) -> dict[str, Any] | None:
    """The schema that a local reference means, `#` or `#/…`; `None` if there is none."""
    if not reference.startswith("#"):
        return None
    place: Any = root
    for step in unquote(reference[1:]).split("/")[1:] if reference != "#" else ():
        step = step.replace("~1", "/").replace("~0", "~")
        if isinstance(place, list) and step.isascii() and step.isdigit() and len(step) < 6 and int(step) < len(place):
            place = place[int(step)]
        elif isinstance(place, Mapping) and step in place:
            place = place[step]
        else:
            return None
    if reference != "#" and not reference.startswith("#/"):
        return None
    return place if isinstance(place, dict) else None


def cut_references(root: dict[str, Any]) -> bool:
    """Take out the references of a tidy schema that lead out of it, or nowhere. Returns whether there were any."""
    schemas, known = [root], {id(root)}
    for schema in schemas:
        found = list(children(schema))
        schemas += found
        known.update(map(id, found))
    cut = False
    for schema in schemas:
        target = target_of(root, schema["$ref"]) if "$ref" in schema else None
        if "$ref" in schema and (target is None or id(target) not in known):
            del schema["$ref"]
            cut = True
    return cut


def follow(root: dict[str, Any]) -> Followed:
    """Follow all references of a schema whose references are local. It takes as long as the schema is large."""
    sizes: dict[int, tuple[int, int]] = {}
    circles: dict[int, dict[str, Any]] = {}
    open_ids = {id(root)}
    path: list[tuple[dict[str, Any], Iterator[dict[str, Any]]]] = [(root, _next(root, root))]
    while path:
        schema, following = path[-1]
        for each in following:
            if id(each) in open_ids:
                circles[id(schema)] = schema
            elif id(each) not in sizes:
                path.append((each, _next(root, each)))
                open_ids.add(id(each))
                break
        else:
            path.pop()
            open_ids.discard(id(schema))
            inside = [sizes[id(each)] for each in _next(root, schema) if id(each) in sizes]
            sizes[id(schema)] = (1 + sum(size for size, _ in inside), 1 + max((deep for _, deep in inside), default=0))
    parts, levels = sizes[id(root)]
    return Followed(parts, levels, list(circles.values()))


def _next(root: dict[str, Any], schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from children(schema)
    if "$ref" in schema and (target := target_of(root, schema["$ref"])) is not None:
        yield target
