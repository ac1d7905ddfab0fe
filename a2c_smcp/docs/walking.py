"""Which files of a folder may be documents, and why the others are not. Parses none.

Hidden files, links, what a `.gitignore` names, files that may hold secrets, and kinds that are never documents are left
out. A pattern of `--include` brings back whatever is left out by its name; a link is never followed. A file that may
hold secrets comes back only on purpose: by its whole name, or by a pattern for such files, such as `*.pem`.
"""

import logging
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pathspec import GitIgnoreSpec

from a2c_smcp.docs.formats import is_never_a_document
from a2c_smcp.docs.paths import open_folder, open_inside

__all__ = ["MAY_HOLD_SECRET", "FoundFile", "IncludeRules", "LeftOut", "Walk", "include_rules", "walk"]

logger = logging.getLogger(__name__)

_IGNORE_FILE = ".gitignore"
_LARGEST_IGNORE_FILE = 2**20
_DEEPEST = 64
_MOST_NAMED = 10_000

#: Names of files that often hold passwords or private keys, in lower case: keys and their stores; what programs and
#: clouds sign in with; wallets; exports and vaults of password managers and browsers.
_SECRETS: Final = GitIgnoreSpec.from_lines(
    re.findall(
        r"\S+",
        """*.pem *.key *.ppk *.p12 *.pfx *.p8 *.jks *.keystore *.env .env* .netrc _netrc
        id_rsa* id_dsa* id_ecdsa* id_ed25519*
        password.txt passwords.* *[-_]passwords.* secret.json secret.y*ml secret.toml secrets.*
        credentials* *[-_]credentials.* .git-credentials
        .htpasswd .npmrc .pypirc .pgpass service-account*.json service_account*.json *[-_]service-account.json
        client_secret*.json application_default_credentials.json kubeconfig kubeconfig.* *.kubeconfig
        *.tfstate *.tfstate.* *.tfvars *.tfvars.json .vault-token
        wallet.dat wallet.json *.wallet utc--* *.keyfile
        *.kdbx *.kdb *.1pif *.1pux *.psafe3 key4.db logins.json
        1password*.csv 1password*.json bitwarden*.csv bitwarden*.json lastpass*.csv dashlane*.csv dashlane*.json
        keepass*.csv keepass*.xml enpass*.csv enpass*.json nordpass*.csv protonpass*.csv roboform*.csv
        *?passwords*.csv *passwort*.csv *密码*.csv""",
    )
)
#: What is added to the name of a copy, in lower case: at its end, and by browsers and file managers before its kind.
_KEPT: Final = re.compile(r"(?:~|\.(?:bak|backup|copy|old|orig|sav|save|swp|tmp|txt|[0-9]{1,8}))+\Z")
_COPY: Final = re.compile(r"(?: \([0-9]{1,3}\)|[ _-]{1,3}(?:copy|kopie|backup|副本)(?: ?\(?[0-9]{1,3}\)?)?)+(?=\.|\Z)")
_VAULTS: Final = (".opvault", ".agilekeychain")
#: The columns of exports of password managers and browsers, whatever the file is called.
_PASSWORD_COLUMNS: Final = frozenset({"password", "login_password"})
_USER_COLUMNS: Final = frozenset({"username", "login_username", "login name", "user name", "user", "login", "email"})
_FIRST_LINE: Final = 2048
MAY_HOLD_SECRET: Final = "may hold a secret"
_PACKAGES: Final = "node_modules"

_Rules: TypeAlias = tuple[tuple[str, GitIgnoreSpec], ...]
"""The ignore files from the root down, each with the folder it stands in."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file as it was when the folder was walked. `path` is relative to the root, with `/`."""

    path: str
    size: int
    mtime_ns: int

    @property
    def version(self) -> tuple[int, int]:
        """Another one means that the file holds something else."""
        return self.size, self.mtime_ns


@dataclass(slots=True)
class LeftOut:
    """What is not served, and why. A folder is one entry, whatever is in it, and its path ends with `/`."""

    reasons: dict[str, str] = field(default_factory=dict)
    """By path, of at most 10,000."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often there is each reason, of all."""

    def add(self, path: str, reason: str) -> None:
        self.counts[reason] += 1
        if len(self.reasons) < _MOST_NAMED:
            self.reasons[path] = reason

    @property
    def total(self) -> int:
        return self.counts.total()


@dataclass(frozen=True, slots=True)
class Walk:
    """What a walk found: files that may be documents by path, the folders they stand in, and what is left out."""

    files: dict[str, FoundFile] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    """With their numbers in the file system: a folder that was replaced is another one."""
    left_out: LeftOut = field(default_factory=LeftOut)


@dataclass(frozen=True, slots=True)
class IncludeRules:
    """What is served although its name says otherwise, and what of it may hold secrets."""

    all: GitIgnoreSpec
    secrets: GitIgnoreSpec


def include_rules(patterns: Sequence[str]) -> IncludeRules:
    """Raises `ValueError` for a pattern that cannot be one."""
    return IncludeRules(
        GitIgnoreSpec.from_lines(patterns),
        GitIgnoreSpec.from_lines([each for each in patterns if _is_on_purpose(each)]),
    )


def _is_on_purpose(pattern: str) -> bool:
    """Whether somebody who writes this pattern means files with secrets: it is the whole name of a file, or the form of
    such names. `*.csv` is not.
    """
    name = pattern.rpartition("/")[2]
    return bool(name) and (not set(name) & set("*?[") or _SECRETS.match_file(name.lower()))


_NOTHING: Final = include_rules(())


def walk(root: str, most_files: int, included: IncludeRules = _NOTHING) -> Walk:
    """Walk down a folder. A folder that cannot be looked at is left out; a root that is gone raises `OSError`."""
    files: dict[str, FoundFile] = {}
    folders: dict[str, int] = {}
    left_out = LeftOut()
    todo: list[tuple[str, _Rules]] = [("", ())]
    while todo:
        folder, rules = todo.pop()
        try:
            names, number = _look_into(root, folder)
        except OSError as error:
            if not folder:
                raise
            left_out.add(f"{folder}/", f"cannot be looked at: {error.strerror}")
            continue
        folders[folder] = number
        if _IGNORE_FILE in names and (own := _ignore_rules(root, folder)) is not None:
            rules = (*rules, (folder, own))
        for name, about in sorted(names.items()):
            path = f"{folder}/{name}" if folder else name
            is_folder = stat.S_ISDIR(about.st_mode)
            shown = f"{path}/" if is_folder else path
            reason = _kind_problem(about.st_mode)
            if reason is None and _may_hold_secret(root, path, shown, included):
                reason = MAY_HOLD_SECRET
            if reason is None and not included.all.match_file(shown):
                reason = _name_problem(path, name, is_folder, rules)
            if reason is None and is_folder and path.count("/") >= _DEEPEST:
                reason = f"more than {_DEEPEST} folders deep"
            if reason is None and not is_folder and len(files) >= most_files:
                reason = f"beyond the limit of {most_files} files"
            if reason is not None:
                left_out.add(shown, reason)
            elif is_folder:
                todo.append((path, rules))
            else:
                files[path] = FoundFile(path, about.st_size, about.st_mtime_ns)
    return Walk(dict(sorted(files.items())), folders, left_out)


def _kind_problem(mode: int) -> str | None:
    if stat.S_ISLNK(mode):
        return "a link"
    return None if stat.S_ISDIR(mode) or stat.S_ISREG(mode) else "not a plain file"


def _may_hold_secret(root: str, path: str, shown: str, included: IncludeRules) -> bool:
    """Whether a file or a vault may hold secrets, by its name or by the columns of a table, and nobody wants it."""
    name = path.rpartition("/")[2].lower()
    if shown.endswith("/"):
        looks_so = name.endswith(_VAULTS)
    else:
        looks_so = (
            _SECRETS.match_file(name)
            or _SECRETS.match_file(_original(name))
            or (name.endswith(".csv") and _has_passwords(root, path))
        )
    return looks_so and not included.secrets.match_file(shown)


def _original(name: str) -> str:
    """The name of the file of which this one is a copy by its name: `passwords (1).csv`, `server.pem.bak`."""
    return _COPY.sub("", _KEPT.sub("", name))


def _has_passwords(root: str, path: str) -> bool:
    """Whether the first line of a table names a column of passwords beside one of users."""
    try:
        with os.fdopen(open_inside(root, path), "rb") as file:
            line = file.readline(_FIRST_LINE).decode("utf-8-sig", "replace")
    except (OSError, ValueError):
        return False
    columns = {column.strip(" \"'\r\n").lower() for column in re.split(r"[,;\t]", line)}
    return bool(columns & _PASSWORD_COLUMNS) and bool(columns & _USER_COLUMNS)


def _name_problem(path: str, name: str, is_folder: bool, rules: _Rules) -> str | None:
    """Why a name is left out by default; `None` if it is not."""
    if name.startswith("."):
        return "hidden"
    if is_folder and name == _PACKAGES:
        return "packages of others"
    if _is_ignored(path, is_folder, rules):
        return f"named by a {_IGNORE_FILE}"
    if is_folder or not is_never_a_document(name):
        return None
    return "left behind by an editor" if name.startswith("~$") or name.endswith("~") else "a kind that is no document"


def _look_into(root: str, folder: str) -> tuple[dict[str, os.stat_result], int]:
    """What stands in a folder, links as links; and the folder's number."""
    with open_folder(root, folder) as handle:
        return dict(_entries(handle)), os.fstat(handle).st_ino


def _entries(handle: int) -> Iterator[tuple[str, os.stat_result]]:
    with os.scandir(handle) as entries:
        for entry in entries:
            try:
                yield entry.name, entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it has gone meanwhile


def _ignore_rules(root: str, folder: str) -> GitIgnoreSpec | None:
    path = f"{folder}/{_IGNORE_FILE}" if folder else _IGNORE_FILE
    try:
        with os.fdopen(open_inside(root, path), "rb") as file:
            text = file.read(_LARGEST_IGNORE_FILE).decode("utf-8", "replace")
        return GitIgnoreSpec.from_lines(text.splitlines())
    except (OSError, ValueError) as error:
        logger.warning("%r is not followed: %s", path, error)
        return None


def _is_ignored(path: str, is_folder: bool, rules: _Rules) -> bool:
    """The innermost ignore file that says anything about a path decides."""
    for folder, spec in reversed(rules):
        below = path[len(folder) + 1 :] if folder else path
        verdict = spec.check_file(f"{below}/" if is_folder else below).include
        if verdict is not None:
            return verdict
    return False
