"""Changes the config files of a run: finds the file of a server, and writes its new text in one step.

It knows files and their texts; `files.py` knows what an entry means, and the Computer what runs. The command line and
the console in the browser both write through it.
"""

import hashlib
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.config.files import ConfigFiles, read_config_text, read_config_texts
from a2c_smcp.computer.config.splice import add_input, add_server, entry_text, remove_server, replace_server
from a2c_smcp.errors import BadRequestError
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.system import IS_UNIX

__all__ = ["ConfigWriteError", "ConfigWriter", "FileChange", "StoredEntry"]

_WRITE_BITS: Final = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class ConfigWriteError(BadRequestError):
    """A config file was not written, and is as before. The message says why, and what to do."""

    title = "Config Not Written"


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """A server's entry; it may hold secrets in clear text."""

    path: Path | None
    """The file that has it; `None` if no file has the server."""
    text: str = field(repr=False)

    @property
    def digest(self) -> str:
        """The digest of the text. If it differs, the entry is not the one that the person looked at."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it will be after `write`; nothing has happened yet."""

    path: Path
    before: bytes | None = field(repr=False)
    """`None` if there is no such file yet."""
    after: bytes = field(repr=False)
    files: ConfigFiles = field(repr=False)
    """What all files will say together."""

    def server(self, name: str) -> dict[str, Any]:
        """The config of a server, as the Computer would get it from the files."""
        return next(raw for raw in self.files.servers if raw["name"] == name)


def _ignore(files: ConfigFiles) -> None:
    pass


class ConfigWriter:
    """`save` and `remove` return what would be written; `write` writes it.

    `paths` are all files of the run. `home_file` gets new servers; it is `None` if the computer was started without a
    config file. All methods raise `ConfigWriteError`, or `ConfigSpliceError` for a text that cannot be changed.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        home_file: Path | None,
        *,
        prefix_tools: bool = False,
        on_written: Callable[[ConfigFiles], None] = _ignore,
    ) -> None:
        self._paths = tuple(paths)
        self.on_written = on_written
        """To be called by the caller of `write`, with what the files say now. `write` does not call it, because
        `write` may run in a thread.
        """
        self.home_file = home_file
        self.prefix_tools = prefix_tools

    def find(self, name: str) -> StoredEntry | None:
        """The entry of a server; `None` if no file has it."""
        if (path := self._path_of(name)) is None:
            return None
        entry = entry_text(_decoded(path, _read(path)), name)
        return None if entry is None else StoredEntry(path, entry)

    def save(self, entries: Mapping[str, str], inputs: Mapping[str, str]) -> FileChange:
        """Put entries, by the names of their servers, and new inputs, by their ids, into one file.

        An entry replaces the old entry of its server. The entry of a new server goes into the home file.
        """
        places = {name: self._place(name) for name in entries}
        if len(set(places.values())) > 1:
            raise ConfigWriteError("these servers are in several files; save them one by one")
        path = next(iter(places.values()))

        def spliced(text: str) -> str:
            for name, entry in entries.items():
                is_new = entry_text(text, name) is None
                text = (add_server if is_new else replace_server)(text, name, entry, str(path))
            for entry in inputs.values():
                text = add_input(text, entry, str(path))
            return text

        return self._changed(path, spliced)

    def remove(self, name: str) -> FileChange:
        """A file without this server."""
        if (path := self._path_of(name)) is None:
            raise ConfigWriteError(f"no config file has the server {name!r} any more")
        return self._changed(path, lambda text: remove_server(text, name, str(path)))

    def write(self, change: FileChange) -> None:
        """Replace the old text by the new one in one step, and read it back."""
        target = Path(os.path.realpath(change.path))
        try:
            _replace(change, target)
        except OSError as error:
            raise ConfigWriteError(
                f"{change.path} cannot be written: {error.strerror}; allow it, or edit the file by hand"
            ) from None
        if _read(change.path) != change.after:
            raise ConfigWriteError(
                f"{change.path} was changed by somebody else at the same time; look at the file again"
            )

    def _path_of(self, name: str) -> Path | None:
        """The file that has a server."""
        for path in self._paths:
            if any(raw["name"] == name for raw in read_config_text(_decoded(path, _read(path)), str(path)).servers):
                return path
        return None

    def _place(self, name: str) -> Path:
        if (path := self._path_of(name)) is not None:
            return path
        if self.home_file is None:
            raise ConfigWriteError(
                "this computer was started without a config file; start it with --config FILE to keep what is added"
            )
        return self.home_file

    def _changed(self, path: Path, splice: Callable[[str], str]) -> FileChange:
        _check_writable(path)
        before = _read(path)
        after = splice(_decoded(path, before))
        texts = [(str(each), after if each == path else _decoded(each, _read(each))) for each in self._paths]
        files = read_config_texts(texts, prefix_tools=self.prefix_tools)
        if files.problems:
            raise ConfigWriteError(f"{files.problems[0]}; nothing was written")
        return FileChange(path, before, after.encode(), files)


def _read(path: Path) -> bytes | None:
    """The bytes of a file; `None` if there is no such file."""
    most = 4 * 2**20
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # opening a pipe would wait for its writer
            raise ConfigWriteError(f"{path} is not an ordinary file; it cannot be changed here")
        with path.open("rb") as file:
            content = file.read(most + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigWriteError(f"{path} cannot be read: {error.strerror}") from None
    if len(content) > most:
        raise ConfigWriteError(f"{path} has more than {most} bytes; change it with an editor")
    return content


def _decoded(path: Path, content: bytes | None) -> str:
    try:
        return "" if content is None else content.decode()
    except UnicodeDecodeError:
        raise ConfigWriteError(f"{path} is not UTF-8 text; change it with an editor") from None


def _check_writable(path: Path) -> None:
    """Raise for a read-only file. Root could write it all the same, but it is meant to stay."""
    with suppress(FileNotFoundError):
        if not path.stat().st_mode & _WRITE_BITS or not os.access(path, os.W_OK):
            raise ConfigWriteError(f"{path} is read-only; allow writing, or edit it by hand")


def _replace(change: FileChange, target: Path) -> None:
    def before_rename(descriptor: int) -> None:
        _copy_owner(target, descriptor)
        if _read(target) != change.before:
            raise ConfigWriteError(f"{change.path} was changed meanwhile; look at the file again")

    _check_writable(target)
    replace_file(target, change.after, before_rename)


def _copy_owner(target: Path, descriptor: int) -> None:
    if not IS_UNIX:
        return
    with suppress(FileNotFoundError):
        old = target.stat()
        with suppress(PermissionError):  # another user's file, in a folder of ours
            os.fchown(descriptor, old.st_uid, old.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
