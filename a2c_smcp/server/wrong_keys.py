"""How fast one address may try keys. Plain counters; the clock is handed in.

Several clients may share an address, behind a NAT or a proxy. So an address that has shown a right key is only slowed:
wrong keys never keep a right key out there. Somebody who opens many connections there at once can try more keys, so
keys must be long.
"""

import ipaddress
import threading
from typing import Final

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["LONGEST_WAIT", "WrongKeys"]

#: The refusal of a wrong key is held back for this many seconds at most. Clients give up after twice as long.
LONGEST_WAIT: Final = 5.0
#: How many addresses are remembered. The oldest are forgotten.
_MOST: Final = 4096


class WrongKeys:
    """Counts the wrong keys of an address: the first `at_once` are refused at once, then one a second. Thread-safe."""

    def __init__(self, at_once: int | None) -> None:
        self._at_once = at_once
        self._lock = threading.Lock()
        self._paid_at: BoundedDict[str, float] = BoundedDict(_MOST)
        """The moment at which all wrong keys of an address are paid for: each one costs a second."""
        self._right: BoundedDict[str, None] = BoundedDict(_MOST)

    def change(self, at_once: int | None) -> None:
        """Refuse this many wrong keys at once from now on."""
        with self._lock:
            self._at_once = at_once

    def check(self, address: str, now: float) -> None:
        """Raise `TooManyRequestsError` if keys from this address are not checked now."""
        with self._lock:
            network = _network(address)
            if network not in self._right and self._wait(network, now) >= LONGEST_WAIT:
                raise TooManyRequestsError("too many wrong keys from this address; try again later")

    def right(self, address: str) -> None:
        """A right key was shown."""
        with self._lock:
            self._right.put(_network(address), None)

    def wrong(self, address: str, now: float) -> float:
        """A wrong key was shown. Returns for how many seconds to hold the refusal back."""
        with self._lock:
            network = _network(address)
            if self._wait(network, now) < LONGEST_WAIT:
                self._paid_at.put(network, max(self._paid_at.get(network) or now, now) + 1)
            return min(self._wait(network, now), LONGEST_WAIT)

    def _wait(self, network: str, now: float) -> float:
        return 0.0 if self._at_once is None else max(0.0, (self._paid_at.get(network) or now) - now - self._at_once)


def _network(address: str) -> str:
    """What counts as one address. In IPv6 one client has many, so its network counts."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]  # a proxy may send any text instead of an address
    if found.version == 4:
        return address
    # A provider gives each customer a network of 64 bits.
    return str(found.ipv4_mapped or ipaddress.ip_network((found, 64), strict=False))
