"""The signatures of frames between server processes, and which frames have come before; and the signatures of members
in the bucket. Pure: the clock is handed in.

A signed frame is a mark, a number, an instant, a signature, and the frame. The signature is an HMAC of all the
other parts and of the names of sender and receiver, by a key that the processes share. A process has a new name
whenever it begins, so a frame of the past has no receiver any more. The number shows that a frame comes twice.

The instant, by the sender's clock, shows that a frame was held back. The clocks of the machines need not agree: the
instant is compared with the instant of another frame, the fastest one since the last pong. The clocks need not run at
the same speed either, because pongs come now and then.
"""

import hmac
import itertools
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from a2c_smcp.server.cluster import tuning
from a2c_smcp.server.offices import Member

__all__ = ["Arrivals", "DropReason", "DroppedFrameError", "FrameSeal", "MemberSeal", "OpenedFrame"]

DropReason: TypeAlias = Literal["unsigned", "forged", "replayed", "late", "unknown", "malformed"]

_WORDS: Final[dict[DropReason, str]] = {
    "unsigned": "it has no signature",
    "forged": "its signature does not fit any key of this process",
    "replayed": "it came before",
    "late": "it was held back for too long",
    "unknown": "its sender is not a known server process",
    "malformed": "it is not a message of a server process",
}
#: A frame without a signature begins with the length of its head, and never with this byte.
_MARK: Final = 0xFF
_HEAD: Final = struct.Struct(">BQd")
_MAC_BYTES: Final = 16
_START: Final = _HEAD.size + _MAC_BYTES
#: How many numbers of a sender are remembered. Frames change order only when their sender moves to another NATS server.
_REMEMBERED: Final = 1024
_ALL: Final = (1 << _REMEMBERED) - 1


class DroppedFrameError(ValueError):
    """A message that is not acted on."""

    def __init__(self, reason: DropReason) -> None:
        super().__init__(_WORDS[reason])
        self.reason = reason


class OpenedFrame(NamedTuple):
    """A frame whose signature is right. The number is 0 if signatures are not checked."""

    frame: bytes
    number: int = 0
    instant: float = 0.0


class FrameSeal:
    """Signs with the first key, and accepts signatures by any of the keys. Without a key it signs nothing, and accepts
    everything.
    """

    def __init__(self, keys: Sequence[bytes] = (), *, accept_unsigned: bool = False, longest_way: float = 30.0) -> None:
        # Copying an HMAC that has its key is twice as fast as making a new one.
        self._keys = [hmac.new(key, b"", "sha256") for key in keys]
        self._accept_unsigned = accept_unsigned or not keys
        self._longest_way = longest_way
        self._numbers = itertools.count(1)

    def sign(self, sender: str, receiver: str, frame: bytes, now: float) -> bytes:
        """The frame with its signature; `now` is the sender's clock."""
        if not self._keys:
            return frame
        head = _HEAD.pack(_MARK, next(self._numbers), now)
        return b"".join((head, _mac(self._keys[0], sender, receiver, head, frame), frame))

    def open(self, sender: str, receiver: str, data: bytes) -> OpenedFrame:
        """The frame without its signature. Raises `DroppedFrameError` if the signature is missing or wrong."""
        if not data or data[0] != _MARK:
            if not self._accept_unsigned:
                raise DroppedFrameError("unsigned")
            return OpenedFrame(data)
        if len(data) < _START:
            raise DroppedFrameError("malformed")
        head, mac, frame = data[: _HEAD.size], data[_HEAD.size : _START], data[_START:]
        if not self._keys:
            return OpenedFrame(frame)
        for key in self._keys:
            if hmac.compare_digest(mac, _mac(key, sender, receiver, head, frame)):
                _, number, instant = _HEAD.unpack(head)
                return OpenedFrame(frame, number, instant)
        raise DroppedFrameError("forged")

    def arrivals(self) -> "Arrivals":
        """Make the record of one sender's frames."""
        return Arrivals(self._longest_way)


class MemberSeal:
    """Signs what a claim says of a member's key, and believes only what is signed. Without a key it signs nothing, and
    believes everything.

    Who can write to the bucket can forge a claim. Then its member has a name that anybody may have.
    """

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = [hmac.new(key, b"a2c member\0", "sha256") for key in keys]

    def signed(self, member: Member) -> Member:
        """The member with its proof, by the first key."""
        return replace(member, proof=_proof(self._keys[0], member)) if self._keys else member

    def believed(self, member: Member) -> Member:
        """The member as far as its proof, by any of the keys, goes."""
        if not self._keys or not (member.key or member.bound):
            return member
        # The proof is whatever somebody has written; two texts could not be compared if one is not ASCII.
        proof = member.proof.encode("utf-8", "surrogatepass")
        if any(hmac.compare_digest(proof, _proof(key, member).encode()) for key in self._keys):
            return member
        return replace(member, key="", bound=False)


def _proof(key: hmac.HMAC, member: Member) -> str:
    mac = key.copy()
    said = (member.sid, member.process, member.office_id, member.role, member.name, member.key, member.bound)
    mac.update(msgspec.json.encode(said))
    return mac.hexdigest()


def _mac(key: hmac.HMAC, sender: str, receiver: str, head: bytes, frame: bytes) -> bytes:
    mac = key.copy()
    # A name has no dot: it is a token of a subject.
    mac.update(f"{sender}.{receiver}.".encode() + head)
    mac.update(frame)
    return mac.digest()[:_MAC_BYTES]


class Arrivals:
    """The record of one sender's frames. Each frame is taken once, unless it was on its way for too long."""

    def __init__(self, longest_way: float) -> None:
        self._longest_way = longest_way
        self._highest = 0
        self._seen = 0
        """Bit n stands for the number that is n less than the highest."""
        self._least: float | None = None
        """Our clock minus the sender's instant, for a frame that was not held back."""
        self._learnt_at = 0.0

    @property
    def are_signed(self) -> bool:
        """Whether signed frames have come."""
        return self._highest > 0

    def want_pong(self, now: float) -> bool:
        """Whether to ask for a fresh frame, because the clocks may have moved apart since the last one."""
        return self.are_signed and now - self._learnt_at > tuning.TIMES.fresh_pong

    def take(self, opened: OpenedFrame, now: float, *, is_fresh: bool = False) -> None:
        """Note a frame that came now, or raise `DroppedFrameError`. `is_fresh` says that it was certainly not held
        back.
        """
        if not opened.number:
            if self.are_signed:
                raise DroppedFrameError("unsigned")  # a process signs all that it sends, or nothing
            return
        self._note(opened.number)
        way = now - opened.instant
        if self._least is None or is_fresh:
            self._least, self._learnt_at = way, now
        elif way > self._least + self._longest_way:
            raise DroppedFrameError("late")
        self._least = min(self._least, way)

    def _note(self, number: int) -> None:
        ahead = number - self._highest
        if ahead > 0:
            self._highest = number
            self._seen = (self._seen << ahead | 1) & _ALL if ahead < _REMEMBERED else 1
        elif -ahead >= _REMEMBERED or self._seen >> -ahead & 1:
            raise DroppedFrameError("replayed")
        else:
            self._seen |= 1 << -ahead
