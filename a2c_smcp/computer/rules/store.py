"""The rules of one Computer: read from their file, changed from a card, written back, and asked about each call.

    store.open(path)                    read the file; then `follow()` reads it again when it changes
    await store.verdict(call)           what a rule says about a call
    store.add(rule), store.remove(id)   they hold at once, and are written to the file in the background

Call everything on the Computer's event loop. A file with a mistake changes nothing, and `problem` says so.
"""

import asyncio
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread

from a2c_smcp.computer.config.problems import InvalidConfigError, Problem
from a2c_smcp.computer.rules.conditions import RealPath, lexical
from a2c_smcp.computer.rules.deciding import (
    Moment,
    RuleCounters,
    RuledCall,
    RuledTool,
    RuleVerdict,
    answer_for_all,
    decide,
    paths_to_resolve,
)
from a2c_smcp.computer.rules.rule import Effect, Rule
from a2c_smcp.computer.rules.rule_list import AddRule, RemoveRule, RuleEdit, RuleList, edited_text
from a2c_smcp.computer.rules.toml_text import read_rules
from a2c_smcp.computer.rules.words import sentence_of
from a2c_smcp.computer.utils.following import follow_folders
from a2c_smcp.errors import BadRequestError, NotFoundError, SMCPError
from a2c_smcp.utils.replacing import replace_file

__all__ = ["ListedRule", "RuleChange", "RuleStore", "RulesInForce", "read_rules_file", "real_paths"]

logger = logging.getLogger(__name__)

#: How often a change of the file is tried again, if somebody else writes to it at the same time.
_TRIES: Final = 20
_LARGEST_FILE: Final = 4 * 2**20
_LOCK_SECONDS: Final = 5.0
_LARGEST_SEEN: Final = 64 * 2**20


@dataclass(frozen=True, slots=True)
class ListedRule:
    """A rule as it is listed for a person."""

    rule: Rule
    source: str
    """`file`, `config`, or `run` for a rule that holds until the Computer stops."""
    matched: int
    last: float | None
    """When it decided last, in Unix time."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What has changed."""

    outcome: Literal["added", "undone", "read", "written", "problem"]
    rule: str | None = None
    says: str = ""
    """The rule in words, or the problem."""
    by: str | None = None
    """Where a person made the change."""


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The rules at the moment when a call was decided."""

    rules: RuleList
    at: Moment | None
    """`None` if they hold at any time."""


class _FileChangedError(Exception):
    """Somebody else has written the file since it was read."""


def read_rules_file(path: Path, *, needed: bool = False) -> tuple[Rule, ...]:
    """The rules of a file; none if there is no file, unless it is `needed`. Raises `InvalidConfigError` if there is a
    mistake in it.
    """
    return _rules_in(_text_of(path), path, needed=needed)


def _rules_in(text: str | None, path: Path, *, needed: bool) -> tuple[Rule, ...]:
    if text is None and needed:
        raise InvalidConfigError([Problem("cannot be read: there is no such file", file=str(path))])
    rules, problems = read_rules(text or "", str(path))
    if problems:
        raise InvalidConfigError(problems)
    return rules


def real_paths(paths: Sequence[str]) -> dict[str, str | None]:
    """Where each path leads after all links; `None` if nobody can say. Blocking, perhaps for long."""
    found: dict[str, str | None] = {}
    for path in paths:
        try:
            found[path] = os.path.realpath(path)
        except (OSError, ValueError):  # half a character
            found[path] = None
    return found


class RuleStore:
    """`on_change` is called after every change of the rules; it must return at once."""

    def __init__(
        self,
        on_change: Callable[[RuleChange], None] = lambda _: None,
        *,
        resolve: Callable[[Sequence[str]], Mapping[str, str | None]] = real_paths,
        resolve_seconds: float = 5.0,
    ) -> None:
        self.file: Path | None = None
        self.list = RuleList()
        self._resolve = resolve
        self._resolve_seconds = resolve_seconds
        # A thread that waits for a dead network drive keeps its place. It must not take one that others need.
        self._resolving = anyio.CapacityLimiter(8)
        self._unread = self._unwritten = ""
        self._on_change = on_change
        self._counters = RuleCounters()
        self._text: str | None = None
        self._seen: dict[str, dict[str, Any]] = {}
        self._saving: asyncio.Task[None] | None = None
        self._recalling: asyncio.Task[None] | None = None
        #: One reads or writes the file at a time: an old text must not replace a newer one.
        self._turn = asyncio.Lock()

    @property
    def problem(self) -> str:
        """Why the file, as it is now, is not in force; or why a rule is not written to it."""
        return self._unread or self._unwritten

    # --- deciding

    @property
    def has_rules(self) -> bool:
        return bool(self.list.all)

    @property
    def in_force(self) -> RulesInForce:
        """What holds now. Take it in the same turn of the event loop as the verdict."""
        return RulesInForce(self.list, _moment() if self.list.has_times else None)

    def have_changed(self, since: RulesInForce) -> bool:
        """Whether other rules are in force now, so that a call must be decided again. Cheap if nothing has changed."""
        if self.list is not since.rules and self.list.all != since.rules.all:
            return True
        return since.at is not None and not self.list.holds_alike(since.at, _moment())

    async def verdict(self, call: RuledCall, *, counts: bool = True, counted: str | None = None) -> RuleVerdict | None:
        """What a rule says about this call; `None` if no rule matches. Unless it `counts`, it is only a question.

        `counted` is the rule that has counted this call already. It does not count it again.
        """
        rules = self.list.about(call.tool)
        if not rules:
            return None
        real_path: RealPath = lexical
        if self.list.has_paths and (paths := paths_to_resolve(rules, call)):
            # A path may lead to a network drive that does not answer. Then nobody knows where it leads.
            found: Mapping[str, str | None] = {}
            with anyio.move_on_after(self._resolve_seconds):
                found = await anyio.to_thread.run_sync(
                    self._resolve, paths, abandon_on_cancel=True, limiter=self._resolving
                )
            real_path = found.get
            rules = self.list.about(call.tool)  # they may have changed meanwhile
        now = _moment()
        verdict = decide(rules, call, now, self._counters, real_path, counted)
        if verdict is not None and counts and verdict.rule.id != counted:
            self._counters.count(verdict.rule, now)
        return verdict

    def likely(self, call: RuledCall) -> RuleVerdict | None:
        """What a rule says about this call, without links and without being counted. Only `verdict` is for certain."""
        return decide(self.list.about(call.tool), call, _moment(), self._counters)

    def answer_for_all(self, tool: RuledTool, otherwise: Effect) -> Effect | None:
        """The one answer that holds for every call of a tool, if there is one."""
        return answer_for_all(self.list.about(tool), tool, otherwise)

    # --- what there is

    def listed(self) -> list[ListedRule]:
        """All rules, in the order in which they decide."""
        unwritten = {edit.rule.id for edit in self.list.edits if isinstance(edit, AddRule)}
        own = {rule.id for rule in self.list.own}
        return [
            ListedRule(
                rule,
                "config" if rule.id not in own else "run" if rule.id in unwritten else "file",
                *self._counters.matched(rule.id),
            )
            for rule in self.list.all
        ]

    def add(
        self,
        rule: Rule,
        before: str | None = None,
        comment: str = "",
        seen: Mapping[str, Any] | None = None,
        *,
        is_first: bool = False,
        by: str | None = None,
    ) -> None:
        """Add a rule in front of all others if it `is_first`, in front of the one with the id `before`, or behind the
        rules of the file. It holds at once. `by` is the place where a person made it.

        `seen` is the tool that the person saw. It is kept by the rule's digest, to show later what has changed.
        """
        if seen is not None and rule.digest is not None:
            self._seen[rule.digest] = dict(seen)
        self._edit(AddRule(rule, before, comment, is_first), RuleChange("added", rule.id, sentence_of(rule), by))

    def recall(self, read: Callable[[], Mapping[str, tuple[int, float]]]) -> None:
        """Let a thread read how often rules decided in earlier runs, and when last. From then on it counts, too."""

        async def recalled() -> None:
            self._counters.recall(await anyio.to_thread.run_sync(read, abandon_on_cancel=True))

        self._recalling = asyncio.get_running_loop().create_task(recalled())

    def seen(self, digest: str) -> dict[str, Any] | None:
        """The tool that had this digest when a rule was made for it; `None` if nobody remembers it."""
        return self._seen.get(digest)

    def remove(self, rule_id: str, *, by: str | None = None) -> None:
        """Undo a rule. `by` is the place where a person does so. Raises `NotFoundError`, or `BadRequestError` for the
        rule of a config file.
        """
        rule = self.list.find(rule_id)
        if rule not in self.list.own:
            raise BadRequestError("this rule stands in a config file; remove it there", {"rule": rule_id})
        self._edit(RemoveRule(rule_id), RuleChange("undone", rule.id, sentence_of(rule), by))

    def _edit(self, edit: RuleEdit, change: RuleChange) -> None:
        self._take(self.list.edited(edit), change)
        if self.file is not None and (self._saving is None or self._saving.done()):
            self._saving = asyncio.get_running_loop().create_task(self._save())

    def use_config(self, rules: Sequence[Rule]) -> None:
        """Take over the rules of the config files. They decide after those of the rules file."""
        if tuple(rules) != self.list.in_configs:
            self._take(replace(self.list, in_configs=tuple(rules)), RuleChange("read", says="config files"))

    def _take(self, rules: RuleList, change: RuleChange) -> None:
        self.list = rules
        self._counters.keep(rules.all)
        self._on_change(change)

    # --- the file

    def open(self, path: Path, *, needed: bool = False) -> None:
        """Read the file, and write rules to it from now on. Raises `InvalidConfigError` for a mistake in it: a
        computer without its rules would do too much. A file that is not there yet has no rules, unless it is `needed`.
        """
        text = _text_of(path)
        rules = _rules_in(text, path, needed=needed)
        self.file, self._text = path, text
        self._seen |= _read_seen(_seen_file(path.resolve()))
        self._take(replace(self.list, in_file=rules), RuleChange("read", says=str(self.file)))

    async def follow(self) -> None:
        """Read the file again whenever it changes, until cancelled."""
        if self.file is None:
            return
        # The file may be a link: then it changes where it leads, or it leads elsewhere.
        folders = {self.file.absolute().parent, self.file.resolve().parent}
        try:
            for folder in folders:
                await anyio.to_thread.run_sync(_make_folder, folder)
        except OSError as error:
            logger.warning("rules last until this computer stops: there is no folder %s: %s", folder, error.strerror)
            return
        try:
            await follow_folders(folders, self.reload)
        except* (OSError, RuntimeError):
            logger.exception("changes of the rules file are no longer followed")

    async def reload(self) -> None:
        """Take over the file if it has changed. A file with a mistake changes nothing; the log says so."""
        if self.file is None:
            return
        async with self._turn:
            await self._reload(self.file)
        if self.list.edits and not self.problem:
            await self._save()

    async def _reload(self, file: Path) -> None:
        try:
            text = await anyio.to_thread.run_sync(_text_of, file)
            if text == self._text:
                if self._unread:
                    self._unread = self._unwritten = ""
                    self._on_change(RuleChange("read", says=str(file)))
                return
            # A file that is gone does not mean that nothing is forbidden any more.
            rules = _rules_in(text, file, needed=bool(self.list.in_file))
        except SMCPError as error:
            problem = f"the rules file is not in force, the rules stay as they were: {error}"
            before, self._unread = self._unread, problem
            self._tell_problem(before, problem)
            return
        self._text, self._unread, self._unwritten = text, "", ""
        logger.info("the rules file is read again: %d rules", len(rules))
        self._take(replace(self.list, in_file=rules), RuleChange("read", says=str(file)))

    def _tell_problem(self, before: str, problem: str) -> None:
        if problem != before:
            logger.error("%s", problem)
            self._on_change(RuleChange("problem", says=problem))

    async def _save(self) -> None:
        """Write all changes to the file. A change that cannot be written holds until the Computer stops."""
        while self.file is not None and self.list.edits:
            async with self._turn:
                if not await self._save_once(self.file):
                    return

    async def _save_once(self, file: Path) -> bool:
        edits, needed = self.list.edits, bool(self.list.in_file)
        try:
            text = await anyio.to_thread.run_sync(_write, file, edits, dict(self._seen), needed)
        except (SMCPError, OSError) as error:
            problem = f"a rule is not written to {file}, it holds until this computer stops: {error}"
            before, self._unwritten = self._unwritten, problem
            self._tell_problem(before, problem)
            return False
        rules, _ = read_rules(text)
        self._text, self._unread, self._unwritten = text, "", ""
        self._take(replace(self.list, in_file=rules, edits=self.list.edits[len(edits) :]), RuleChange("written"))
        return True

    async def aclose(self) -> None:
        """Wait until the changes are written."""
        if self._recalling is not None:
            self._recalling.cancel()
        if self._saving is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await asyncio.wait([self._saving])


def _moment() -> Moment:
    now = time.time()
    clock = time.localtime(now)
    return Moment(now, clock.tm_hour * 60 + clock.tm_min, time.monotonic())


def _text_of(path: Path) -> str | None:
    """The text of the file; `None` if there is none."""
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
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


def _write(path: Path, edits: Sequence[RuleEdit], seen: Mapping[str, Any], needed: bool) -> str:
    """Change the file as it is now. If somebody else writes it meanwhile, begin again with their text."""
    target = path.resolve()
    _make_folder(target.parent)
    with _locked(target):
        return _write_locked(target, edits, seen, needed)


def _write_locked(target: Path, edits: Sequence[RuleEdit], seen: Mapping[str, Any], needed: bool) -> str:
    for _ in range(_TRIES):
        stamp, found = _stamp(target), _text_of(target)
        if found is None and needed:
            raise BadRequestError("the file is gone; a new one would lack the rules that it had")
        text = found or ""
        for edit in edits:
            with suppress(NotFoundError):  # a rule that is gone need not be removed
                text = edited_text(text, edit)
        try:
            replace_file(target, text.encode(), lambda _, stamp=stamp: _check(target, stamp))  # type: ignore[misc]
        except _FileChangedError:
            continue
        digests = {rule.digest for rule in read_rules(text)[0]}
        known = {**_read_seen(_seen_file(target)), **seen}
        kept = {digest: tool for digest, tool in known.items() if digest in digests}
        replace_file(_seen_file(target), json.dumps(kept, default=str).encode())
        return text
    raise BadRequestError("somebody else writes the rules file all the time")


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """One computer of this user changes the file at a time. An editor does not ask for this lock: for that, the file is
    looked at once more before it is replaced.
    """
    try:
        import fcntl
    except ImportError:  # not on this system
        yield
        return
    deadline = time.monotonic() + _LOCK_SECONDS
    with target.with_name(f".{target.name}.lock").open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise BadRequestError("another computer has locked the rules file for seconds") from None
                time.sleep(0.01)
        yield


def _seen_file(path: Path) -> Path:
    """Beside the rules file: the tools that people saw when they made rules."""
    return path.with_name(f"{path.name}.seen.json")


def _read_seen(path: Path) -> dict[str, dict[str, Any]]:
    """What is remembered; nothing if the file is gone or broken. Then the person is told less about a change."""
    try:
        with path.open("rb") as file:
            found = json.loads(file.read(_LARGEST_SEEN))
    except (OSError, ValueError):
        return {}
    return {digest: tool for digest, tool in found.items() if isinstance(tool, dict)} if isinstance(found, dict) else {}


def _make_folder(folder: Path) -> None:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check(path: Path, stamp: tuple[int, ...] | None) -> None:
    if _stamp(path) != stamp:
        raise _FileChangedError
