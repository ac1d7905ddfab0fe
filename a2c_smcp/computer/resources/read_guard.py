"""What an agent may read: the rules decide, a person is asked where a rule says so, and the record hears of each read.

A `ReadGuard` belongs to one connection to an office. An `AgentSight` is what one request may see. There is none if no
rule is about reads and nothing is recorded: then reads cost what they cost without rules.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from mcp_types import Resource

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.calls.log import HowDecided, WatchedCall
from a2c_smcp.computer.decisions.approvals import decided_at
from a2c_smcp.computer.decisions.book import RULE, Outcome, Resolution, ToolDefinition
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.recording.read_rows import ReadDone, story_of_read
from a2c_smcp.computer.resources.shared_lists import SharedItems
from a2c_smcp.computer.rules.deciding import RuleVerdict
from a2c_smcp.computer.rules.deciding_reads import ReadVerdicts
from a2c_smcp.computer.rules.reads import ReadKind, RuledRead, document_of, kind_of
from a2c_smcp.computer.rules.rule import Effect, Rule
from a2c_smcp.computer.utils.pool import slices
from a2c_smcp.errors import ForbiddenError, InternalError, RequestTimeoutError, SMCPError, TooManyRequestsError
from a2c_smcp.smcp import (
    UPDATE_CONFIG_EVENT,
    UPDATE_DESKTOP_EVENT,
    UPDATE_FINDER_EVENT,
    UPDATE_PROMPTS_EVENT,
    UPDATE_RESOURCES_EVENT,
    UPDATE_SKILLS_EVENT,
    DPEDocumentSummary,
)
from a2c_smcp.types import SERVER_NAME
from a2c_smcp.utils.bounded import BoundedDict
from a2c_smcp.utils.dpe_uri import document_ref, try_parse_dpe_uri
from a2c_smcp.wire import codec

if TYPE_CHECKING:
    from a2c_smcp.computer.recording.recorder import Recorder

__all__ = ["CARD_SECONDS", "MOST_CARDS", "READ_ANNOUNCEMENTS", "AgentSight", "ReadGuard"]

#: How long a card for a read waits for a person, also after the read that opened it has failed.
CARD_SECONDS: Final = 300.0
#: How many cards for reads wait at a time.
MOST_CARDS: Final = 16
_MOST_ANSWERS: Final = 10_000
_MOST_ASKERS: Final = 4
_MOST_LISTS: Final = 64
_NOBODY: Final = Asker("")
#: What the announcements tell of.
_TOLD: Final[Mapping[str, ReadKind]] = {
    UPDATE_DESKTOP_EVENT: ReadKind.WINDOW,
    UPDATE_FINDER_EVENT: ReadKind.DOCUMENT,
    UPDATE_RESOURCES_EVENT: ReadKind.RESOURCE,
    UPDATE_PROMPTS_EVENT: ReadKind.PROMPT,
    UPDATE_SKILLS_EVENT: ReadKind.SKILL,
    UPDATE_CONFIG_EVENT: ReadKind.CONFIG,
}

#: What is announced when other rules decide what an agent sees.
READ_ANNOUNCEMENTS: Final = frozenset(_TOLD)

#: Who reads which window or document, of which server.
_CardKey: TypeAlias = tuple[Asker, ReadKind, SERVER_NAME, str]
_RecordKey: TypeAlias = tuple[Asker, str, SERVER_NAME, str]


class ReadGuard:
    """Call `forget` when the agent has left. `seconds` is how long a read waits for a person."""

    def __init__(self, decisions: DecisionStore, recorder: "Recorder | None", seconds: float) -> None:
        self.decisions = decisions
        self.recorder = recorder
        self.seconds = seconds
        self.last: Asker | None = None
        """The agent that asked for something last."""
        self._verdicts: BoundedDict[Asker, ReadVerdicts] = BoundedDict(_MOST_ASKERS)
        self._answers: BoundedDict[_CardKey, Resolution] = BoundedDict(_MOST_ANSWERS)
        self._cards: dict[_CardKey, asyncio.Task[Resolution]] = {}
        self._rules: tuple[Rule, ...] = ()
        """The rules for which the answers are."""
        self._told: tuple[Rule, ...] = decisions.rules.list.about_reads
        """The rules of which the agent knows that they decide."""
        self.lists: BoundedDict[tuple[Asker, SERVER_NAME], tuple[SharedItems, ReadVerdicts, int, SharedItems]]
        self.lists = BoundedDict(_MOST_LISTS)
        """What is left for an agent of the lists of a server: of these lists, with these verdicts and answers."""
        self.version = 0
        """Changes whenever an answer comes or goes."""

    def sight(self) -> "AgentSight | None":
        """What the agent sees whose request this task answers; `None` if nothing is decided and nothing recorded."""
        if self.recorder is None and not self.decisions.rules.has_read_rules:
            return None
        asker = ASKER.get(None)
        return None if asker is None else self.sight_of(asker)

    def last_sight(self) -> "AgentSight | None":
        """What the agent sees that asked last; `None` if no rule is about reads."""
        return self.sight_of(self.last or _NOBODY) if self.decisions.rules.has_read_rules else None

    def sight_of(self, asker: Asker) -> "AgentSight":
        return AgentSight(self, asker, self.verdicts(asker))

    def verdicts(self, asker: Asker) -> ReadVerdicts | None:
        """What the rules say about this agent now."""
        now = self.decisions.rules.list.about_reads
        if now is not self._rules and now != self._rules:
            self._rules = now
            self._forget_answers()
        if not (rules := self.decisions.rules).has_read_rules:
            return None
        before = self._verdicts.get(asker)
        found = rules.read_verdicts(asker, before)
        if found is not before:
            self._verdicts.put(asker, found)
        return found

    def is_news(self) -> bool:
        """Whether the rules about reads are others than when this was last asked: then the agent must look again."""
        before, self._told = self._told, self.decisions.rules.list.about_reads
        return before != self._told

    def forget(self) -> None:
        """The agent has left: forget what a person answered, and withdraw the cards that wait."""
        for card in self._cards.values():
            card.cancel()
        self._cards.clear()
        self._verdicts.clear()
        self.lists.clear()
        self._forget_answers()
        self.last = None

    def _forget_answers(self) -> None:
        self._answers.clear()
        self.version += 1

    def answer(self, key: _CardKey) -> Resolution | None:
        """What a person has said about this read in this session."""
        return self._answers.get(key)

    async def ask(self, key: _CardKey, verdict: RuleVerdict) -> Resolution:
        """Wait for a person. All reads of one window or document share a card. Raises if nobody answers in time."""
        if (card := self._cards.get(key)) is None:
            self._check_room(verdict)
            card = asyncio.create_task(self._ask(key, verdict))
            self._cards[key] = card
            card.add_done_callback(partial(self._answered, key))
        await asyncio.wait({card}, timeout=self.seconds)
        if not card.done() or card.cancelled():
            raise RequestTimeoutError(
                "a person at the computer must allow this read, and nobody has answered yet. The question stays open"
                " there: try again later",
                {"outcome": "unanswered"},
            )
        return card.result()

    def _check_room(self, verdict: RuleVerdict) -> None:
        if not self.decisions.can_answer("confirmation"):
            raise _refused("a person must allow this read, and nobody can be asked here", "nobody", verdict.rule.reason)
        if len(self._cards) >= MOST_CARDS:
            raise TooManyRequestsError(f"{MOST_CARDS} reads wait for a person at the computer; try again later")

    async def _ask(self, key: _CardKey, verdict: RuleVerdict) -> Resolution:
        asker, kind, server, name = key
        read = RuledRead(kind, name, server, asker)
        what = {"uri" if "://" in name else "name": name} if name else {}
        about = story_of_read(*key)
        call = WatchedCall(
            *(about, about, asker.name, server or "this computer", None, f"read {kind}", what, None),
            *(time.time(), asker.office or None, asker.key, asker.is_claimed),
        )
        said = "The agent wants to read this. Your answer holds until the agent leaves or the rules change."
        definition = ToolDefinition(f"Read a {kind}", said, {"readOnlyHint": True}, server=server)
        expires = asyncio.get_running_loop().time() + CARD_SECONDS
        return await self.decisions.ask_confirmation(call, definition, expires=expires, verdict=verdict, reads=read)

    def _answered(self, key: _CardKey, card: asyncio.Task[Resolution]) -> None:
        if self._cards.get(key) is card:
            del self._cards[key]
            if not card.cancelled() and card.exception() is None and _is_answer(card.result()):
                self._answers.put(key, card.result())
                self.version += 1


def _is_answer(resolution: Resolution) -> bool:
    by_person = resolution.by is not None and resolution.by is not RULE
    return by_person and resolution.outcome in (Outcome.ACCEPTED, Outcome.DECLINED, Outcome.DISMISSED)


def _refused(message: str, outcome: str, reason: str) -> ForbiddenError:
    details = {"outcome": outcome} | ({"reason": reason} if reason else {})
    return ForbiddenError(f"{message}: {reason}" if reason else message, details)


class AgentSight:
    """What an agent may see now. Take a new one for each request."""

    __slots__ = ("_guard", "_verdicts", "asker")

    def __init__(self, guard: ReadGuard, asker: Asker, verdicts: ReadVerdicts | None) -> None:
        self._guard = guard
        self._verdicts = verdicts
        self.asker = asker

    # --- what is decided without asking anybody

    def effect(self, kind: ReadKind, server: SERVER_NAME, name: str = "") -> Effect:
        """What happens to this read: a person's answer in this session counts."""
        verdict = self._verdict(kind, server, name)
        if verdict is None or verdict.effect == "allow":
            return "allow"
        if verdict.effect == "ask" and (answer := self._guard.answer(self._key(kind, server, name))) is not None:
            return "allow" if answer.outcome is Outcome.ACCEPTED else "deny"
        return verdict.effect

    def shows(self, kind: ReadKind, server: SERVER_NAME, name: str = "") -> bool:
        """Whether the agent may know that it exists."""
        return self._verdicts is None or self.effect(kind, server, name) != "deny"

    def _shows_listed(self, kind: ReadKind, server: SERVER_NAME, uri: str) -> bool:
        """`shows` for what a server lists: it is kept, however much that is."""
        if self._verdicts is not None:
            self._verdicts.of(kind, server, uri, listed=True)
        return self.shows(kind, server, uri)

    def may_read(self, kind: ReadKind, server: SERVER_NAME, name: str = "") -> bool:
        """Whether it may be read without asking a person."""
        return self._verdicts is None or self.effect(kind, server, name) == "allow"

    def may_read_below(self, server: SERVER_NAME, prefix: str) -> bool:
        """Whether everything of a server may be read whose URI begins so."""
        return self._verdicts is None or self._verdicts.strictest_below(server, prefix) is None

    def _verdict(self, kind: ReadKind, server: SERVER_NAME, name: str) -> RuleVerdict | None:
        if self._verdicts is None:
            return None
        verdict = self._verdicts.of(kind, server, name)
        if kind is not ReadKind.DOCUMENT or (verdict is not None and verdict.effect == "deny"):
            return verdict
        if document_ref(name) is not None:
            return verdict
        document = try_parse_dpe_uri(name)
        if document is None or document.doc_ref is not None:
            return verdict
        # A catalogue tells of all documents of its host.
        return self._verdicts.strictest_below(server, f"dpe://{document.host}/") or verdict

    def _key(self, kind: ReadKind, server: SERVER_NAME, name: str) -> _CardKey:
        return self.asker, kind, server, document_of(name) if "://" in name else name

    def tells(self, event: str, changed: set[tuple[SERVER_NAME, str]] | None) -> bool:
        """Whether the agent may hear of this announcement. `changed` is what it is about; `None` if nobody knows."""
        if self._verdicts is None or event not in _TOLD:
            return True
        kind = _TOLD[event]
        if event in (UPDATE_SKILLS_EVENT, UPDATE_CONFIG_EVENT):
            return self.shows(kind, "")
        if changed is None:
            return not self._verdicts.none_of(kind, "")
        return any(self.shows(kind_of(name) if name else kind, server, name) for server, name in changed)

    # --- what is shown

    def windows(self, server: SERVER_NAME, windows: Sequence[Resource]) -> Sequence[Resource]:
        """The windows that the agent may know of."""
        if self._verdicts is None:
            return windows
        return [window for window in windows if self._shows_listed(ReadKind.WINDOW, server, window.uri)]

    def documents(self, documents: Sequence[DPEDocumentSummary]) -> Sequence[DPEDocumentSummary]:
        """The documents that the agent may know of. Of one that a person must allow first, only the address shows."""
        if self._verdicts is None:
            return documents
        shown: list[DPEDocumentSummary] = []
        of = self._verdicts.of
        for document in documents:
            server, uri = document["server"], document["uri"]
            # There may be thousands. Most are decided by this line.
            if (verdict := of(ReadKind.DOCUMENT, server, uri, listed=True)) is None or verdict.effect == "allow":
                shown.append(document)
            elif verdict.effect == "ask" and (effect := self.effect(ReadKind.DOCUMENT, server, uri)) != "deny":
                if effect == "allow":
                    shown.append(document)
                    continue
                hidden: Any = {"title": document.get("doc_ref", ""), "summary": "", "keywords": [], "file_uri": ""}
                shown.append({**document, **hidden})
        return shown

    async def items(self, shared: Mapping[SERVER_NAME, SharedItems]) -> dict[SERVER_NAME, SharedItems]:
        """What each server shares and the agent may know of."""
        if self._verdicts is None:
            return dict(shared)
        return {server: await self._items_of(server, items) for server, items in shared.items()}

    async def _items_of(self, server: SERVER_NAME, items: SharedItems) -> SharedItems:
        assert self._verdicts is not None
        kept, version = self._guard.lists.get((self.asker, server)), self._guard.version
        if kept is not None and kept[0] is items and kept[1] is self._verdicts and kept[2] == version:
            return kept[3]
        found = replace(
            items,
            resources=await self._shown(server, items.resources, "uri"),
            templates=await self._shown(server, items.templates, "uriTemplate"),
            prompts=items.prompts if self.shows(ReadKind.PROMPT, server) else (),
        )
        self._guard.lists.put((self.asker, server), (items, self._verdicts, version, found))
        return found

    async def _shown(self, server: SERVER_NAME, items: Sequence[bytes], field: str) -> tuple[bytes, ...]:
        shown: list[bytes] = []
        async for some in slices(items):
            for item in some:
                uri = str(codec.loads(item).get(field, ""))
                if self._shows_listed(kind_of(uri), server, uri):
                    shown.append(item)
        return tuple(shown)

    # --- reading

    @asynccontextmanager
    async def reading(self, kind: ReadKind, server: SERVER_NAME, name: str = "") -> AsyncIterator[None]:
        """Read inside of this. Raises `ForbiddenError` with the rule's reason, or `RequestTimeoutError` if a person is
        asked who does not answer. The record hears how it ended.
        """
        how = await self.check(kind, server, name)
        async with self._recorded(self._key(kind, server, name), how):
            yield

    async def check(self, kind: ReadKind, server: SERVER_NAME, name: str = "") -> HowDecided:
        """How it is decided that the agent may read this. Raises as `reading` does; the record hears of that."""
        how, refusal, outcome = await self._decide(kind, server, name)
        if refusal is None:
            return how
        if (recorder := self._guard.recorder) is not None:
            recorder.read(ReadDone(*self._key(kind, server, name), outcome, refusal.code), how)
        raise refusal

    async def require_record(self) -> None:
        """Raise `InternalError` if the record is required and cannot be written."""
        if (recorder := self._guard.recorder) is not None and recorder.is_required:
            await recorder.written()

    @asynccontextmanager
    async def listing(self, what: str) -> AsyncIterator[None]:
        """Make a list inside of this: the record hears of it."""
        async with self._recorded((self.asker, what, "", ""), HowDecided()):
            yield

    @asynccontextmanager
    async def _recorded(self, key: _RecordKey, how: HowDecided) -> AsyncIterator[None]:
        if (recorder := self._guard.recorder) is None:
            yield
            return
        if recorder.is_required:
            await recorder.read_begins(ReadDone(*key, "succeeded"), how)
        try:
            yield
        except Exception as error:
            code = error.code if isinstance(error, SMCPError) else InternalError.default_code
            recorder.read(ReadDone(*key, "failed", code), how)
            raise
        recorder.read(ReadDone(*key, "succeeded"), how)

    async def _decide(self, kind: ReadKind, server: SERVER_NAME, name: str) -> tuple[HowDecided, SMCPError | None, str]:
        """How it was decided, the error if it is refused, and the outcome for the record."""
        verdict = self._verdict(kind, server, name)
        if verdict is None or verdict.effect == "allow":
            return (HowDecided() if verdict is None else HowDecided("rule", rule=verdict.rule.id)), None, ""
        if verdict.effect == "deny":
            return HowDecided("rule", rule=verdict.rule.id), _denied(verdict), "refused"
        if not server and "://" in name:
            return HowDecided("rule", rule=verdict.rule.id), None, ""  # nobody is asked about what does not exist
        key = self._key(kind, server, name)
        if (answer := self._guard.answer(key)) is None:
            try:
                answer = await self._guard.ask(key, verdict)
            except SMCPError as error:
                return HowDecided("nobody", rule=verdict.rule.id), error, error.details.get("outcome", "refused")
            # Meanwhile a rule may have come that denies it.
            self._verdicts = self._guard.verdicts(self.asker)
            now = self._verdict(kind, server, name)
            if now is not None and now.effect == "deny":
                return HowDecided("rule", rule=now.rule.id), _denied(now), "refused"
            if now is not None and now.effect == "ask" and answer.by is RULE:
                changed = _refused("the rules changed while a person was asked; try again", "rule", now.rule.reason)
                return HowDecided("rule", rule=now.rule.id), changed, "refused"
        how = decided_at(answer.by)
        if answer.outcome is Outcome.ACCEPTED:
            return how, None, ""
        if answer.by is None:
            message = "a person at the computer must allow this read, and nobody answered in time"
            return how, RequestTimeoutError(message, {"outcome": "unanswered"}), "unanswered"
        return how, _refused("the person at the computer refused this read", "refused", answer.reason), "refused"


def _denied(verdict: RuleVerdict) -> ForbiddenError:
    return _refused("a rule of this computer denies this read", "rule", verdict.rule.reason)
