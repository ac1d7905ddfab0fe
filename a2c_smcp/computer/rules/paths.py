"""Which file a text names, as a rule compares it. Pure: links are resolved elsewhere, and handed in.

An `allow` takes what is certain. A `deny` takes every text that may name the same file.
"""

import os.path
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import unquote

from a2c_smcp.computer.rules.fits import Fit
from a2c_smcp.computer.rules.globs import Glob, PlainGlob
from a2c_smcp.computer.rules.hosts import HostAddresses
from a2c_smcp.utils.text import has_control_characters

__all__ = [
    "BY_TEXT",
    "Known",
    "RealPath",
    "climbs",
    "fixed_folder",
    "is_certain_path",
    "lexical",
    "may_be_same",
    "may_name",
    "trimmed",
    "under_fit",
]

#: The path with all links resolved; `None` if it is not known.
RealPath: TypeAlias = Callable[[str], str | None]

_UP: Final = os.pardir
#: The links that a process has to its own folders and files.
_OWN: Final = re.compile(r"/(proc/(self|thread-self|\d+)/(.*/)?(cwd|root|exe|fd|map_files)|dev/(fd|std\w+))(/|\Z)")
#: The URL of a file: a host that does not count, and the path.
_FILE_URL: Final = re.compile(r"file:(?://[^/?#]*)?(/[^?#]*)", re.IGNORECASE)


def lexical(path: str) -> str:
    """The path without `.` and `..`, by its text alone."""
    plain = os.path.normpath(path)
    # POSIX lets a path begin with two slashes, and says that this may mean something else. Nowhere it does.
    return os.path.normcase(f"/{plain.lstrip('/')}" if plain.startswith("//") else plain)


@dataclass(frozen=True, slots=True)
class Known:
    """What was looked up before a call is decided."""

    real_path: RealPath = lexical
    folds_case: Callable[[str], bool] = lambda _: False
    """Whether the file system there takes `A` and `a` for the same name."""
    addresses: HostAddresses = lambda _: ()
    """The addresses of a name; `None` if nobody knows."""


#: Nothing was looked up: texts are what they say.
BY_TEXT: Final = Known()


def is_certain_path(value: str) -> bool:
    """Whether it is clear which file is meant. A relative path depends on where the server runs, `~` on the server.
    Programs end a path at a control character, cut blanks off, or take a backslash for a slash. What `/proc/self/cwd`
    and `/dev/fd/3` are is different for each process.
    """
    if not os.path.isabs(value) or value != trimmed(value) or has_control_characters(value):
        return False
    if os.sep == "/" and "\\" in value:
        return False
    return not _is_of_process(value)


def _is_of_process(path: str) -> bool:
    """Whether it is a place that only the process knows that opens it."""
    return ("proc/" in path or "dev/" in path) and _OWN.match(lexical(path)) is not None


def trimmed(value: str) -> str:
    """The text that programs take for a path: without blanks around it, and up to a NUL. Of the URL of a file it is the
    path.
    """
    value = value.strip()
    if (url := _FILE_URL.match(value)) is not None:
        value = unquote(url[1])
    return value.partition("\0")[0].strip()


def climbs(text: str) -> bool:
    """Whether a text has a step up, so that it names another file than it seems to."""
    return _UP in text and _UP in text.replace("\\", "/").split("/")


def under_fit(folder: str, value: str, known: Known) -> Fit:
    """Whether a path is in a folder or below it."""
    if not is_certain_path(value):
        return Fit.MISFIT
    path, real_folder = known.real_path(value), known.real_path(folder)
    if path is None or real_folder is None:
        return Fit.MISFIT
    if _is_within(lexical(path), lexical(real_folder)):
        return Fit.HOLDS
    # The text points into the folder, a link leads out of it: an `allow` must not match, a `deny` must.
    paths, folders = (path, value), (real_folder, folder)
    if any(_is_within(lexical(one), lexical(other)) for one in paths for other in folders):
        return Fit.MISFIT
    if known.folds_case(value) and any(_is_within(_folded(one), _folded(other)) for one in paths for other in folders):
        return Fit.MISFIT
    return Fit.FAILS


def may_be_same(path: str, value: str, known: Known) -> bool:
    """Whether a text that differs from a path may name the same file."""
    if "/" not in path and "/" not in value:
        return False
    if _is_of_process(trimmed(value)):
        return True
    if os.path.isabs(path) and not is_certain_path(trimmed(value)):
        return _ends_like(value, lambda name: name == os.path.basename(path), lexical(path))
    relative = _relative(path)
    if relative and any(
        _is_far(name) and lexical(name).endswith(f"/{relative}") for name in _known_names(value, known)
    ):
        return True
    real = known.real_path(path) if is_certain_path(path) else None
    wanted = {lexical(path)} | ({lexical(real)} if real is not None else set())
    found = [lexical(name) if name is not None else None for name in _names(value, known)]
    if any(name is None or name in wanted for name in found):
        return True
    return known.folds_case(trimmed(value)) and not {_folded(name) for name in found if name}.isdisjoint(
        map(_folded, wanted)
    )


def may_name(glob: Glob, value: str, known: Known) -> bool:
    """Whether a text may name something that the pattern matches."""
    if glob.may_match(value) or _is_of_process(trimmed(value)):
        return True
    if os.path.isabs(glob.text) and not is_certain_path(trimmed(value)):
        last = Glob(os.path.basename(glob.text)) if os.path.basename(glob.text) else glob
        return _ends_like(value, last.may_match)
    globs = [glob]
    folder = fixed_folder(glob)
    if folder and (real := known.real_path(folder)) not in (None, folder):
        globs.append(Glob(f"{real}{glob.text[len(folder) :]}"))
    names = list(_names(value, known))
    if None in names:
        return True
    if any(each.may_match(name) for each in globs for name in names if name is not None):
        return True
    if "/" in glob.text and (relative := _relative(glob.text)):
        anywhere = Glob(f"*/{relative}")
        if any(_is_far(name) and anywhere.may_match(lexical(name)) for name in names if name is not None):
            return True
    if not known.folds_case(trimmed(value)):
        return False
    return any(Glob(_folded_text(each.text)).may_match(_folded_text(name)) for each in globs for name in names if name)


def fixed_folder(glob: Glob | PlainGlob) -> str:
    """The folder in front of the first wildcard of a pattern for paths; empty if there is none."""
    wild = min((at for at in (glob.text.find("*"), glob.text.find("?")) if at >= 0), default=len(glob.text))
    folder = glob.text[:wild].rpartition("/")[0]
    return folder if is_certain_path(folder) else ""


def _names(value: str, known: Known) -> Iterator[str | None]:
    """What else a text is called if it is a path; `None` if nobody can say where it leads."""
    yield value
    path = trimmed(value)
    if not path or (path == value and "/" not in value):
        return
    yield from (path, lexical(value), lexical(path))
    if is_certain_path(path):
        yield known.real_path(path)


def _known_names(value: str, known: Known) -> list[str]:
    return [name for name in _names(value, known) if name is not None]


def _relative(path: str) -> str:
    """The path of a rule, if only the server knows where it begins; empty for every other one."""
    if os.path.isabs(path) or path.startswith("*"):
        return ""
    steps = [step for step in path.split("/") if step not in ("", ".", _UP)]
    return "/".join(steps[1:] if path.startswith("~") else steps)


def _is_far(name: str) -> bool:
    """Whether a name says itself where it begins: so a relative path may be its end."""
    return os.path.isabs(name) or name.startswith("~")


def _ends_like(value: str, is_last: Callable[[str], bool], path: str = "") -> bool:
    """Whether a path that is not certain may lead to a path: only the server knows where it begins."""
    value = trimmed(value)
    steps = [step for step in lexical(value).split("/") if step not in ("", ".", _UP)] if value else []
    if value.startswith("~"):
        steps = steps[1:]
    if not steps:
        return value.startswith("~") or climbs(value)
    is_whole = bool(path) and not os.path.isabs(value)
    return is_last(steps[-1]) and (not is_whole or path.endswith("/" + "/".join(steps)))


def _is_within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder.endswith(os.sep) else folder + os.sep)


def _folded(path: str) -> str:
    return _folded_text(lexical(path))


def _folded_text(text: str) -> str:
    return unicodedata.normalize("NFC", text.casefold())
