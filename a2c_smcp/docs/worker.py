"""A process that opens files and reads their pages for `workers`, so that a file can harm only this process.

A request asks for something of one file or several, and has one answer for each thing that it asks for.
"""

import base64
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO, Final

from a2c_smcp.docs.describing import describe, element_from_json, page_to_json, texts_of
from a2c_smcp.docs.formats import OpenDocument, PicturedDocument, open_document
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.docs.paths import open_inside
from a2c_smcp.utils.serving_child import serve

__all__ = ["Desk", "answers"]

_MOST_OPEN: Final = 2


class Desk:
    """The documents that were asked for last. They are kept open."""

    def __init__(self, limits: DocumentLimits) -> None:
        self._limits = limits
        self._open: dict[tuple[Any, ...], tuple[BinaryIO, OpenDocument | None]] = {}

    def document(self, root: str, path: str, size: int, mtime_ns: int) -> OpenDocument | None:
        """The document in a file. Raises `ChangedError` if the file is another one by now, and `Unreadable`."""
        key = (root, path, size, mtime_ns)
        try:
            file = os.fdopen(open_inside(root, path), "rb")
        except OSError as error:
            raise ChangedError(error.strerror or str(error)) from None
        try:
            about = os.fstat(file.fileno())
            if (about.st_size, about.st_mtime_ns) != (size, mtime_ns):
                raise ChangedError("it was saved meanwhile")
            if key in self._open:
                file.close()
                self._open[key] = self._open.pop(key)
                return self._open[key][1]
            while len(self._open) >= _MOST_OPEN:
                self._close(next(iter(self._open)))
            if size > self._limits.file_bytes:
                limit = self._limits.file_bytes // 2**20
                raise Unreadable(
                    f"it has {size // 2**20} MiB, and the largest file that is read has {limit} MiB", 413, lasting=False
                )
            found = open_document(file, path, self._limits)
        except BaseException:
            file.close()
            raise
        self._open[key] = file, found
        return found

    def clear(self) -> None:
        for key in list(self._open):
            self._close(key)

    def _close(self, key: tuple[Any, ...]) -> None:
        file, document = self._open.pop(key)
        with suppress(Exception):  # of a library that had trouble with the file: it is done with
            getattr(document, "close", lambda: None)()
        file.close()


class ChangedError(Exception):
    """The file is not the one that was found. It has to be looked at again."""


def answers(desk: Desk, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One answer for each thing that is asked for. A failure is an answer too."""
    match request:
        case {"do": "describe", "files": files}:
            for file in files:
                yield _guarded(desk, partial(_answer, desk, "describe", file, 0))
        case {"do": "picture", "file": file, "first": index, "longest": longest}:
            element = request.get("element")
            yield _guarded(desk, partial(_picture, desk, file, index, element, longest))
        case {"do": what, "file": file, "first": first, "count": count}:
            for index in range(first, first + count):
                yield _guarded(desk, partial(_answer, desk, what, file, index))


def _guarded(desk: Desk, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        try:
            return ask()
        except MemoryError:
            desk.clear()
            return ask()
    except ChangedError as error:
        return {"changed": str(error)}
    except Unreadable as problem:
        return {"problem": problem.to_json()}
    except RecursionError:
        return {"problem": Unreadable("it is nested too deeply", 413).to_json()}
    except MemoryError:
        raise
    except Exception as error:  # a broken file makes a library raise anything
        return {"problem": Unreadable(f"the file is broken: {_sentence(error)}").to_json()}


def _sentence(error: Exception) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:200]


def _answer(desk: Desk, what: str, file: list[Any], index: int) -> dict[str, Any]:
    root, path, size, mtime_ns = file
    document = desk.document(root, path, size, mtime_ns)
    if document is None:
        return {"facts": None}
    if what == "describe":
        return {"facts": describe(document, path).to_json()}
    if index >= document.page_count:
        raise ChangedError("it has fewer pages")
    page = document.page(index)
    match what:
        case "page":
            return {"page": page_to_json(page)}
        case "summary":
            return {"title": page.title, "element_count": len(page.elements)}
        case "texts":
            return {"texts": texts_of(page)}
        case _:
            raise AssertionError(what)


def _picture(desk: Desk, file: list[Any], index: int, element: Any, longest: int) -> dict[str, Any]:
    document = desk.document(*file)
    if not isinstance(document, PicturedDocument):
        return {"picture": None}
    if index >= document.page_count:
        raise ChangedError("it has fewer pages")
    found = document.picture(index, element and element_from_json(element), longest)
    return {"picture": None if found is None else base64.b64encode(found).decode("ascii")}


if __name__ == "__main__":
    serve(partial(answers, Desk(DocumentLimits(**json.loads(sys.argv[2])))))
