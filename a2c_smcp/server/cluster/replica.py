"""The members of all processes, as one process knows them from the bucket. Pure: a fold of the bucket's entries.

A claim makes its session a member while its process has a lease. The newest claim of a session counts, and older ones
are void. So a move is one change, although the bucket has two keys for it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.cluster.keys import (
    Entry,
    ProcessInfo,
    claim_key,
    encode_claim,
    encode_lease,
    lease_key,
    leased_process,
    read_claim,
    read_lease,
)
from a2c_smcp.server.directory import Directory
from a2c_smcp.server.offices import Member, MemberChange
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["Replica"]


@dataclass(frozen=True, slots=True)
class _Claim:
    member: Member
    revision: int


class Replica:
    """Takes the bucket's entries in the order of their revisions, and says what changed."""

    def __init__(self) -> None:
        self.directory = Directory()
        self.revision = 0
        self._leases: dict[str, int] = {}
        self.about: dict[str, ProcessInfo | None] = {}
        """What each lease says about its process; `None` if it says nothing that we understand."""
        self._claims: dict[str, _Claim] = {}
        self._graves: BoundedDict[str, int] = BoundedDict(tuning.BOUNDS.graves)
        self._keys_of: dict[str, set[str]] = {}
        self._places: dict[str, str] = {}
        self._left: set[str] = set()
        """Keys of claims whose session has, or had, a newer claim."""
        self._visible: dict[str, Member] = {}
        self._doubted: dict[str, int] = {}

    @property
    def processes(self) -> Collection[str]:
        """The processes that have a lease."""
        return self._leases.keys()

    def revision_of(self, key: str) -> int:
        """The newest known revision of a key. It is compared when the key is written."""
        claim = self._claims.get(key)
        return claim.revision if claim else self._graves.get(key) or 0

    def claimed(self, key: str) -> Member | None:
        """The member of the claim at a key, also if the claim is void."""
        claim = self._claims.get(key)
        return claim.member if claim else None

    def member(self, sid: str) -> Member | None:
        """Where a session is."""
        return self._visible.get(sid)

    def abandoned(self) -> list[Member]:
        """The members whose claims belong to processes that have gone."""
        gone = [keys for process, keys in self._keys_of.items() if process not in self._leases]
        return [self._claims[key].member for keys in gone for key in keys]

    def left_behind(self, process: str) -> list[Member]:
        """The members of the void claims of a process: its sessions have moved, and left these claims behind."""
        left = [self._claims[key].member for key in self._left]
        return [member for member in left if member.process == process]

    def apply(self, entry: Entry) -> list[MemberChange]:
        """Take the next entry. An entry that is known already changes nothing; a restart of NATS repeats some."""
        if entry.revision <= self.revision:
            return []
        return self._settle(self._store(entry))

    def resync(self, entries: Iterable[Entry]) -> list[MemberChange]:
        """Take everything that a look at the bucket has shown, and return the differences.

        A key that is written during the look may be missing in it, and follow later. So a known key that is missing is
        not removed at once, but kept as `doubted`.
        """
        others = Replica()
        entries = sorted(entries, key=lambda entry: entry.revision)
        seen = {entry.key for entry in entries}
        kept = [entry for entry in self._entries() if entry.key not in seen]
        for entry in sorted((*kept, *entries), key=lambda entry: entry.revision):
            others._store(entry)
        for sid, key in list(others._places.items()):
            # The session had left this place for another one, whose claim was deleted before this look at the bucket.
            if self._claims.get(key) == others._claims[key] and self._places.get(sid) != key:
                del others._places[sid]
                others._left.add(key)
        known = dict.fromkeys((*self._visible, *others._places))
        self._doubted = {entry.key: entry.revision for entry in kept}
        self.revision = max(self.revision, others.revision)
        self._leases, self._claims, self._graves = others._leases, others._claims, others._graves
        self.about = others.about
        self._keys_of, self._places, self._left = others._keys_of, others._places, others._left
        changes = self._changes_of(known)
        self._visible = {sid: member for sid in self._places if (member := self._now(sid)) is not None}
        self.directory = Directory()
        for member in self._visible.values():
            self.directory.add(member)
        return changes

    def doubted(self) -> list[str]:
        """The keys that the last look did not show, and that have not changed since. Read them one by one."""
        return [key for key, revision in self._doubted.items() if self._revision_at(key) == revision]

    def drop(self, key: str) -> list[MemberChange]:
        """A doubted key does not exist."""
        if self._doubted.pop(key, 0) != self._revision_at(key):
            return []
        return self._settle(self._store(Entry(key, self.revision, None)))

    def _entries(self) -> Iterable[Entry]:
        """What is known, as entries of the bucket."""
        for process, revision in self._leases.items():
            info = self.about[process]
            yield Entry(lease_key(process), revision, encode_lease(info) if info else b"")
        for key, claim in self._claims.items():
            yield Entry(key, claim.revision, encode_claim(claim.member))

    def _revision_at(self, key: str) -> int | None:
        process = leased_process(key)
        if process is not None:
            return self._leases.get(process)
        return self._claims[key].revision if key in self._claims else None

    def _store(self, entry: Entry) -> Iterable[str]:
        """Keep an entry. Returns the sessions that it may have moved; those that it ends come first."""
        self.revision = entry.revision
        process = leased_process(entry.key)
        if process is None:
            return self._store_claim(entry)
        known = process in self._leases
        if entry.value is None:
            self._leases.pop(process, None)
            self.about.pop(process, None)
        else:
            self._leases[process] = entry.revision
            self.about[process] = read_lease(entry)
        if known == (process in self._leases):
            return ()
        # A session that is moving has two claims.
        return dict.fromkeys(self._claims[key].member.sid for key in self._keys_of.get(process, ()))

    def _store_claim(self, entry: Entry) -> Iterable[str]:
        sids = []
        if (old := self._claims.pop(entry.key, None)) is not None:
            sids.append(old.member.sid)
            if self._places.get(old.member.sid) == entry.key:
                del self._places[old.member.sid]
            keys = self._keys_of[old.member.process]
            keys.discard(entry.key)
            if not keys:
                del self._keys_of[old.member.process]
        self._left.discard(entry.key)
        self._graves.pop(entry.key)
        if (member := read_claim(entry)) is None:
            self._graves.put(entry.key, entry.revision)
        else:
            self._claims[entry.key] = _Claim(member, entry.revision)
            self._keys_of.setdefault(member.process, set()).add(entry.key)
            if (before := self._places.get(member.sid)) is not None:
                self._left.add(before)
            self._places[member.sid] = entry.key
            sids.append(member.sid)
        return dict.fromkeys(sids)

    def _settle(self, sids: Iterable[str]) -> list[MemberChange]:
        """Make visible what the claims and leases say about these sessions."""
        changes = self._changes_of(sids)
        for change in changes:
            if change.before is not None:
                self.directory.remove(change.before)
                del self._visible[change.before.sid]
        for change in changes:
            if change.after is not None:
                self.directory.add(change.after)
                self._visible[change.after.sid] = change.after
        return changes

    def _changes_of(self, sids: Iterable[str]) -> list[MemberChange]:
        """The changes of these sessions: first those that go, then those that come or move."""
        changes = (MemberChange(self._visible.get(sid), self._now(sid)) for sid in sids)
        changed = _paired([change for change in changes if change.before != change.after])
        return sorted(changed, key=self._order)

    def _now(self, sid: str) -> Member | None:
        key = self._places.get(sid)
        member = self._claims[key].member if key is not None else None
        return member if member is not None and member.process in self._leases else None

    def _order(self, change: MemberChange) -> int:
        return self._claims[self._places[change.after.sid]].revision if change.after is not None else 0


def _paired(changes: list[MemberChange]) -> list[MemberChange]:
    """Make one change of two, where a session goes and a newer session of the same client has its place."""
    gone = {claim_key(each.before): each for each in changes if each.before and each.before.resume and not each.after}
    if not gone:
        return changes
    paired = []
    for change in changes:
        if change.after is not None and change.before is None:
            before = gone.get(claim_key(change.after))
            if before is not None and before.before is not None and before.before.yields_to(change.after):
                del gone[claim_key(change.after)]
                change = MemberChange(before.before, change.after)
        paired.append(change)
    taken = {change.before for change in paired if change.before and change.after}
    return [change for change in paired if change.after or change.before not in taken]
