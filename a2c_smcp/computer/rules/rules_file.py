"""The rules file on the disk: reading it, changing it, and the tools that people saw when they made rules. Blocking."""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.rule_list import RuleEdit, edited_text
from a2c_smcp.computer.rules.toml_text import read_rules
from a2c_smcp.errors import BadRequestError, NotFoundError
from a2c_smcp.utils.file_locks import try_file_lock
from a2c_smcp.utils.owned_files import read_owned
from a2c_smcp.utils.replacing import replace_file
from a2c_smcp.utils.state_folder import make_private_folder

__all__ = ["change_file", "read_rules_file", "rules_in", "seen_beside", "text_of"]

_LARGEST_FILE: Final = 4 * 2**20
_LARGEST_SEEN: Final = 64 * 2**20
_LOCK_SECONDS: Final = 5.0


def read_rules_file(path: Path, *, needed: bool = False) -> tuple[Rule, ...]:
    """The rules of a file; none if there is no file, unless it is `needed`. Raises `InvalidConfigError` if there is a
    mistake in it, or if others may change it.
    """
    return rules_in(text_of(path), path, needed=needed)


def rules_in(text: str | None, path: Path, *, needed: bool) -> tuple[Rule, ...]:
    """The rules in the text that `text_of` has read from `path`. Raises what `read_rules_file` raises."""
    if text is None and needed:
        raise _unreadable(path, "cannot be read: there is no such file")
    rules, problems = read_rules(text or "", str(path))
    if problems:
        raise InvalidConfigError(problems)
    return rules


def text_of(path: Path) -> str | None:
    """The text of the file; `None` if there is none. Raises `InvalidConfigError` if it is not used."""
    try:
        content = read_owned(path, _LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None
    if len(content) > _LARGEST_FILE:
        raise _unreadable(path, "is larger than 4 MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise _unreadable(path, "is not UTF-8 text") from None


def _unreadable(path: Path, why: str) -> InvalidConfigError:
    return InvalidConfigError([Problem(why, file=str(path))])


def change_file(path: Path, known: str | None, edits: Sequence[RuleEdit], seen: Mapping[str, Any]) -> str | None:
    """Apply the changes to the file, and return its new text; `None` if its text is not `known`: then read it first.

    Raises `SMCPError` or `OSError`; the file is then as it was.
    """
    target = path.resolve()
    make_private_folder(target.parent)
    with _locked(target):
        stamp, found = _stamp(target), text_of(target)
        if found != known:
            return None
        text = found or ""
        for edit in edits:
            with suppress(NotFoundError):  # a rule that is gone need not be removed
                text = edited_text(text, edit)
        try:
            replace_file(target, text.encode(), lambda _: _check(target, stamp))
        except _FileChangedError:
            return None
        _keep_seen(target, text, seen)
        return text


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One computer of this user changes the file at a time. An editor does not ask for this lock: for that, the file is
    looked at once more before it is replaced.
    """
    flags = os.O_RDWR | os.O_CREAT | sum(getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOFOLLOW"))
    lock = os.open(target.with_name(f".{target.name}.lock"), flags, 0o600)
    try:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not try_file_lock(lock):
            if time.monotonic() > deadline:
                raise BadRequestError("another computer has locked the rules file for seconds")
            time.sleep(0.01)
        yield
    finally:
        os.close(lock)


class _FileChangedError(Exception):
    """Somebody else has written the file since it was read."""


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check(path: Path, stamp: tuple[int, ...] | None) -> None:
    if _stamp(path) != stamp:
        raise _FileChangedError


def _keep_seen(target: Path, text: str, seen: Mapping[str, Any]) -> None:
    digests = {rule.digest for rule in read_rules(text)[0]}
    known = {**seen_beside(target), **seen}
    kept = {digest: tool for digest, tool in known.items() if digest in digests}
    replace_file(_seen_file(target), json.dumps(kept, default=str).encode())


def _seen_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.seen.json")


def seen_beside(path: Path) -> dict[str, dict[str, Any]]:
    """The tools that people saw when they made the rules of a file, by digest; nothing if that is gone or broken. Then
    the person is told less about a change.
    """
    try:
        found = json.loads(read_owned(_seen_file(path), _LARGEST_SEEN))
    except (OSError, ValueError):
        return {}
    return {digest: tool for digest, tool in found.items() if isinstance(tool, dict)} if isinstance(found, dict) else {}
