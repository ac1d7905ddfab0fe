"""The rules of one Computer: read from their file, changed from a card, written back, and asked about each call.

    store.open(path)                    read the file; then `follow()` reads it again when it changes
    await store.verdict(call)           what a rule says about a call
    store.add(rule), store.remove(id)   they hold at once, and are written to the file in the background

Call everything on the Computer's event loop. A file with a mistake changes nothing, and `problem` says so.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import anyio
import anyio.to_thread

from a2c_smcp.computer.asker import Asker
from a2c_smcp.computer.rules.cautions import cautions_of
from a2c_smcp.computer.rules.deciding import (
    Moment,
    RuleCounters,
    RuledCall,
    RuledTool,
    RuleVerdict,
    answer_for_all,
    decide,
)
from a2c_smcp.computer.rules.deciding_reads import ReadVerdicts, decide_read
from a2c_smcp.computer.rules.lookups import FindAddresses, LookUp, Resolve, addresses_of, needed_for, real_paths
from a2c_smcp.computer.rules.paths import BY_TEXT, Known
from a2c_smcp.computer.rules.reads import RuledRead
from a2c_smcp.computer.rules.rule import Effect, Rule
from a2c_smcp.computer.rules.rule_list import AddRule, RemoveRule, RuleEdit, RuleList, denies_in, only_denies_more
from a2c_smcp.computer.rules.rules_file import change_file, rules_in, seen_beside, text_of
from a2c_smcp.computer.rules.toml_text import comments_of, read_rules
from a2c_smcp.computer.rules.words import sentence_of
from a2c_smcp.computer.utils.following import follow_folders
from a2c_smcp.errors import BadRequestError, SMCPError
from a2c_smcp.utils.state_folder import make_private_folder
from a2c_smcp.utils.text import on_one_line

__all__ = ["SETTLES", "ListedRule", "RuleChange", "RuleStore", "RulesInForce", "real_paths"]

logger = logging.getLogger(__name__)

#: How often a change of the file is tried again, if somebody else writes to it at the same time.
_TRIES: Final = 20
#: An editor may empty the file and then write it. So a change that lifts something counts when it was read twice, so
#: many seconds apart.
SETTLES: Final = 0.5
_MOST_WARNINGS: Final = 20


@dataclass(frozen=True, slots=True)
class ListedRule:
    """A rule as it is listed for a person."""

    rule: Rule
    source: str
    """`file`, `config`, or `run` for a rule that holds until the Computer stops."""
    matched: int
    last: float | None
    """When it decided last, in Unix time."""
    comment: str = ""
    """The comment above it: a rule of a card says there who made it."""


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What has changed."""

    outcome: Literal["added", "undone", "read", "written", "problem", "gone"]
    """`gone`: the file has fewer rules now that forbid something."""
    rule: str | None = None
    says: str = ""
    """The rule in words, the problem, or how many are gone."""
    by: str | None = None
    """Where a person made the change."""
    denies: int | None = None
    """How many are gone."""


@dataclass(frozen=True, slots=True)
class RulesInForce:
    """The rules at the moment when a call was decided."""

    rules: RuleList
    at: Moment | None
    """`None` if they hold at any time."""


class RuleStore:
    """`on_change` is called after every change of the rules; it must return at once."""

    def __init__(
        self,
        on_change: Callable[[RuleChange], None] = lambda _: None,
        *,
        resolve: Resolve = real_paths,
        resolve_seconds: float = 5.0,
        find_addresses: FindAddresses = addresses_of,
    ) -> None:
        self.file: Path | None = None
        self.list = RuleList()
        self._look_up = LookUp(resolve, find_addresses, resolve_seconds)
        self._unread = self._unwritten = ""
        self.gone_denies = 0
        """How many rules that forbid something have gone from the file while this computer ran."""
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

    @property
    def gone(self) -> str:
        """`gone_denies` in words; empty if there are none."""
        return f"{_gone(self.gone_denies)} from the rules file" if self.gone_denies else ""

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
        known = BY_TEXT
        if self.list.has_lookups and (needed := needed_for(rules, call)):
            known = await self._look_up.known(needed, lambda so_far: self._denies(rules, call, so_far))
            rules = self.list.about(call.tool)  # they may have changed meanwhile
        now = _moment()
        verdict = decide(rules, call, now, self._counters, known, counted)
        if verdict is not None and counts and verdict.rule.id != counted:
            self._counters.count(verdict.rule, now)
        return verdict

    def _denies(self, rules: Sequence[Rule], call: RuledCall, known: Known) -> bool:
        verdict = decide(rules, call, _moment(), self._counters, known)
        return verdict is not None and verdict.effect == "deny"

    def likely(self, call: RuledCall) -> RuleVerdict | None:
        """What a rule says about this call, without links and without being counted. Only `verdict` is for certain."""
        return decide(self.list.about(call.tool), call, _moment(), self._counters)

    @property
    def has_read_rules(self) -> bool:
        """Whether a rule may be about what agents read."""
        return bool(self.list.about_reads)

    def read_verdicts(self, asker: Asker | None, before: ReadVerdicts | None = None) -> ReadVerdicts:
        """What the rules say about the reads of an agent now: the verdicts of `before`, as long as they are good."""
        if before is not None and before.is_good(self.list, time.time()):
            return before
        return ReadVerdicts(self.list, _moment(), asker)

    def likely_read(self, read: RuledRead) -> RuleVerdict | None:
        """What a rule says about this read."""
        return decide_read(self.list.about_reads, read, _moment())

    def answer_for_all(self, tool: RuledTool, otherwise: Effect) -> Effect | None:
        """The one answer that holds for every call of a tool, if there is one."""
        return answer_for_all(self.list.about(tool), tool, otherwise)

    # --- what there is

    def listed(self) -> list[ListedRule]:
        """All rules, in the order in which they decide."""
        unwritten = {edit.rule.id for edit in self.list.edits if isinstance(edit, AddRule)}
        own = {rule.id for rule in self.list.own}
        said = comments_of(self._text or "", self.list.in_file)
        said |= {edit.rule.id: edit.comment for edit in self.list.edits if isinstance(edit, AddRule)}
        return [
            ListedRule(
                rule,
                "config" if rule.id not in own else "run" if rule.id in unwritten else "file",
                *self._counters.matched(rule.id),
                said.get(rule.id, "") if rule.id in own else "",
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
        replaces: Sequence[str] = (),
    ) -> None:
        """Add a rule in front of all others if it `is_first`, in front of the one with the id `before`, or behind the
        rules of the file. It holds at once. `by` is the place where a person made it. The rules in `replaces` go at the
        same time. Raises what `remove` raises, and `BadRequestError` if another rule has the id.

        `seen` is the tool that the person saw. It is kept by the rule's digest, to show later what has changed.
        """
        if seen is not None and rule.digest is not None:
            self._seen[rule.digest] = dict(seen)
        gone = [self._own(each).id for each in replaces]
        if rule.id not in gone and any(each.id == rule.id for each in self.list.all):
            raise BadRequestError(f"another rule has the id {rule.id!r}", {"rule": rule.id})
        edits: list[RuleEdit] = [*map(RemoveRule, gone), AddRule(rule, before, comment, is_first)]
        self._edit(edits, RuleChange("added", rule.id, sentence_of(rule), by))

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
        rule = self._own(rule_id)
        self._edit((RemoveRule(rule_id),), RuleChange("undone", rule.id, sentence_of(rule), by))

    def _own(self, rule_id: str) -> Rule:
        rule = self.list.find(rule_id)
        if rule not in self.list.own:
            raise BadRequestError("this rule stands in a config file; change it there", {"rule": rule_id})
        return rule

    def _edit(self, edits: Sequence[RuleEdit], change: RuleChange) -> None:
        self._take(self.list.edited(*edits), change)
        if self.file is not None and (self._saving is None or self._saving.done()):
            self._saving = asyncio.get_running_loop().create_task(self._save())

    def use_config(self, rules: Sequence[Rule]) -> None:
        """Take over the rules of the config files. They decide after those of the rules file. Whoever reads them from a
        file that has changed asks `lifts` before.
        """
        if tuple(rules) == self.list.in_configs:
            return
        gone = denies_in(self.list.in_configs) - denies_in(rules)
        _warn(rules)
        self._take(replace(self.list, in_configs=tuple(rules)), RuleChange("read", says="config files"))
        if gone > 0:
            self._tell_gone(gone, f"{_gone(gone)} from the config files")

    def lifts(self, rules: Sequence[Rule]) -> bool:
        """Whether with these rules of the config files something may be allowed, or not forbidden, that was not before:
        then they count when they were read twice, `SETTLES` seconds apart.
        """
        return not only_denies_more(self.list.in_configs, rules)

    def _take(self, rules: RuleList, change: RuleChange) -> None:
        self.list = rules
        self._counters.keep(rules.all)
        self._on_change(change)

    # --- the file

    def open(self, path: Path, *, needed: bool = False) -> None:
        """Read the file, and write rules to it from now on. Raises `InvalidConfigError` for a mistake in it: a
        computer without its rules would do too much. A file that is not there yet has no rules, unless it is `needed`.
        """
        text = text_of(path)
        rules = rules_in(text, path, needed=needed)
        self.file, self._text = path, text
        _warn(rules)
        self._seen |= seen_beside(path.resolve())
        self._take(replace(self.list, in_file=rules), RuleChange("read", says=str(self.file)))

    async def follow(self) -> None:
        """Read the file again whenever it changes, until cancelled."""
        if self.file is None:
            return
        # The file may be a link: then it changes where it leads, or it leads elsewhere.
        folders = {self.file.absolute().parent, self.file.resolve().parent}
        try:
            for folder in folders:
                await anyio.to_thread.run_sync(make_private_folder, folder)
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
            text, rules = await self._settled(file)
        except SMCPError as error:
            problem = f"the rules file is not in force, the rules stay as they were: {error}"
            before, self._unread = self._unread, problem
            self._tell_problem(before, problem)
            return
        if text == self._text:
            if self._unread:
                self._unread = self._unwritten = ""
                self._on_change(RuleChange("read", says=str(file)))
            return
        gone = denies_in(self.list.in_file) - denies_in(rules)
        self._text, self._unread, self._unwritten = text, "", ""
        self.gone_denies = max(0, self.gone_denies + gone)
        logger.info("the rules file is read again: %d rules", len(rules))
        _warn(rules)
        self._take(replace(self.list, in_file=rules), RuleChange("read", says=str(file)))
        if gone > 0:
            self._tell_gone(gone, f"{_gone(gone)} from the rules file {file}")

    def _tell_gone(self, denies: int, says: str) -> None:
        logger.warning("%s", says)
        self._on_change(RuleChange("gone", says=says, denies=denies))

    async def _settled(self, file: Path) -> tuple[str | None, tuple[Rule, ...]]:
        """The text and the rules of the file, read twice if they lift something. Raises `SMCPError`."""

        async def read() -> tuple[str | None, tuple[Rule, ...]]:
            text = await anyio.to_thread.run_sync(text_of, file)
            # A file that is gone does not mean that nothing is forbidden any more.
            return text, rules_in(text, file, needed=bool(self.list.in_file))

        found = await read()
        for _ in range(_TRIES):
            if only_denies_more(self.list.in_file, found[1]):
                return found
            await anyio.sleep(SETTLES)
            before, found = found, await read()
            if found[1] == before[1]:
                return found
        raise BadRequestError("somebody changes it all the time")

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
        edits = self.list.edits
        try:
            text = await self._changed(file, edits)
        except (SMCPError, OSError) as error:
            problem = f"a rule is not written to {file}, it holds until this computer stops: {error}"
            before, self._unwritten = self._unwritten, problem
            self._tell_problem(before, problem)
            return False
        rules, _ = read_rules(text)
        self._text, self._unread, self._unwritten = text, "", ""
        self._take(replace(self.list, in_file=rules, edits=self.list.edits[len(edits) :]), RuleChange("written"))
        return True

    async def _changed(self, file: Path, edits: Sequence[RuleEdit]) -> str:
        """Write these changes, and return the new text. What somebody else has written meanwhile is taken over
        first.
        """
        for _ in range(_TRIES):
            seen = dict(self._seen)
            text = await anyio.to_thread.run_sync(change_file, file, self._text, edits, seen)
            if text is not None:
                return text
            await self._reload(file)
            if self._unread:
                raise BadRequestError(self._unread)
        raise BadRequestError("somebody else writes the rules file all the time")

    async def aclose(self) -> None:
        """Wait until the changes are written."""
        if self._recalling is not None:
            self._recalling.cancel()
        if self._saving is not None:
            with anyio.CancelScope(shield=True), anyio.move_on_after(5):
                await asyncio.wait([self._saving])


def _warn(rules: Sequence[Rule]) -> None:
    """Say in the log which rules match more than they seem to."""
    cautions = list(cautions_of(rules))
    for caution in cautions[:_MOST_WARNINGS]:
        logger.warning("%s", on_one_line(caution))
    if len(cautions) > _MOST_WARNINGS:
        logger.warning("%d more warnings about rules: 'rules list' has them", len(cautions) - _MOST_WARNINGS)


def _moment() -> Moment:
    now = time.time()
    clock = time.localtime(now)
    return Moment(now, clock.tm_hour * 60 + clock.tm_min, time.monotonic())


def _gone(number: int) -> str:
    return "1 deny is gone" if number == 1 else f"{number} denies are gone"
