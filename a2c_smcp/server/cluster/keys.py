"""The keys and values of the bucket that several server processes share. Pure.

`n.<process>` is the lease of a process. `m.<office>.agent` and `m.<office>.c.<name>` are claims. Each claim makes one
session a member, and needs only one key. The key has the skeleton of a name, so names that look alike have one key.
Offices and names may have any character, but keys may not. So the key has their hashes, and the value has the texts.
"""

import base64
import hashlib
from dataclasses import dataclass
from typing import Final

import msgspec

from a2c_smcp.server.lookalikes import skeleton
from a2c_smcp.server.offices import Member

__all__ = [
    "Entry",
    "ProcessInfo",
    "claim_key",
    "claim_keys",
    "disagreement",
    "encode_claim",
    "encode_lease",
    "lease_key",
    "leased_process",
    "read_claim",
    "read_lease",
]

_LEASE: Final = "n."
_CLAIM: Final = "m."
_READER: Final = msgspec.json.Decoder(Member)


@dataclass(frozen=True, slots=True)
class Entry:
    """A key at a revision. Without a value, the key was deleted or has expired."""

    key: str
    revision: int
    value: bytes | None


class ProcessInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a lease says about its process. Older processes say less."""

    host: str
    pid: int
    version: str = ""
    protocol: int = 1
    """The version of what processes say to each other."""
    keys: tuple[str, ...] = ()
    """Fingerprints of the keys that it accepts. It signs with the first one."""
    accepts_unsigned: bool = False
    draining: bool = False
    """Whether it is about to end, and takes no clients."""


_LEASE_READER: Final = msgspec.json.Decoder(ProcessInfo)


def encode_lease(info: ProcessInfo) -> bytes:
    return msgspec.json.encode(info)


def read_lease(entry: Entry) -> ProcessInfo | None:
    """What a lease says; `None` if no server of ours can have written it."""
    try:
        return _LEASE_READER.decode(entry.value or b"")
    except msgspec.DecodeError:
        return None


def disagreement(ours: ProcessInfo, theirs: ProcessInfo | None, prefix: str) -> str | None:
    """Why two processes cannot work together; `None` if they can. `theirs` is `None` for a lease that nobody of ours
    has written.
    """
    if theirs is None:
        return f"another program writes to the bucket {prefix}-members in NATS; choose another --nats-prefix"
    where = f"the server process {theirs.pid} on {theirs.host}"
    if theirs.protocol != ours.protocol:
        return f"{where} has version {theirs.version}, which cannot work with {ours.version}; update all of them"
    if not theirs.version:
        return None  # it is too old to say which keys it has
    if not _hears(ours, theirs) or not _hears(theirs, ours):
        return f"{where} has another cluster key, or none; give all servers the same --cluster-key-file"
    return None


def _hears(listener: ProcessInfo, speaker: ProcessInfo) -> bool:
    """Whether one process accepts what the other one signs."""
    if not listener.keys or (not speaker.keys and listener.accepts_unsigned):
        return True  # without a key it accepts everything
    return bool(speaker.keys) and speaker.keys[0] in listener.keys


def lease_key(process: str) -> str:
    return _LEASE + process


def leased_process(key: str) -> str | None:
    """The process whose lease this key is; `None` if it is not a lease."""
    return key[len(_LEASE) :] if key.startswith(_LEASE) else None


def claim_key(member: Member) -> str:
    """The key of a member's claim: the seat of the office, or the skeleton of the computer's name."""
    office = _CLAIM + _hashed(member.office_id)
    return f"{office}.agent" if member.role == "agent" else f"{office}.c.{_hashed(skeleton(member.name))}"


def claim_keys(member: Member) -> tuple[str, ...]:
    """The keys that a member's claim may have.

    Processes of older versions make the key from the name itself. If the name differs from its skeleton, the two keys
    differ, and these processes do not see a claim at the new key.
    """
    key = claim_key(member)
    if member.role == "agent" or skeleton(member.name) == member.name:
        return (key,)
    return key, f"{_CLAIM}{_hashed(member.office_id)}.c.{_hashed(member.name)}"


def encode_claim(member: Member) -> bytes:
    return msgspec.json.encode(member)


def read_claim(entry: Entry) -> Member | None:
    """The member that a claim makes; `None` if the entry is not a claim, or does not belong to this key."""
    if entry.value is None or not entry.key.startswith(_CLAIM):
        return None
    try:
        member = _READER.decode(entry.value)
    except msgspec.DecodeError:
        return None
    return member if entry.key in claim_keys(member) else None


def _hashed(text: str) -> str:
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=18).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii")
