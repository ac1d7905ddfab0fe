"""How fast one address may try keys. Plain counters; the clock is handed in.

Others may share an address, behind a NAT or a proxy. So an address that has shown a right key is only slowed, and a
right key from there is never refused for wrong ones. Who opens many connections there at once tries more: keys must be
long.
"""

import ipaddress
import threading
from typing import Final

from a2c_smcp.errors import TooManyRequestsError
from a2c_smcp.utils.bounded import BoundedDict

__all__ = ["LONGEST_WAIT", "WrongKeys"]

#: Seconds that the answer to a wrong key is held back at most; clients give up after twice as long.
LONGEST_WAIT: Final = 5.0
#: Addresses that are remembered; of more the oldest are forgotten.
_MOST: Final = 4096
#: Characters of what a proxy gives for an address and is none.
_LONGEST: Final = 64
#: Bits of an IPv6 address that one customer of a provider has in common.
_NETWORK_BITS: Final = 64


class WrongKeys:
    """The wrong keys of each address: so many are answered at once, then one a second. Threads may share it."""

    def __init__(self, at_once: int | None) -> None:
        self._at_once = at_once
        self._lock = threading.Lock()
        self._paid_at: BoundedDict[str, float] = BoundedDict(_MOST)
        """When all wrong keys of an address will have had their second."""
        self._right: BoundedDict[str, None] = BoundedDict(_MOST)

    def check(self, address: str, now: float) -> None:
        """Raise `TooManyRequestsError` if keys from there are not even looked at now."""
        with self._lock:
            network = _network(address)
            if network not in self._right and self._wait(network, now) >= LONGEST_WAIT:
                raise TooManyRequestsError("too many wrong keys from this address; try again later")

    def right(self, address: str) -> None:
        """A right key was shown."""
        with self._lock:
            self._right.put(_network(address), None)

    def wrong(self, address: str, now: float) -> float:
        """A wrong key was shown; returns the seconds after which to say so."""
        with self._lock:
            network = _network(address)
            if self._wait(network, now) < LONGEST_WAIT:
                self._paid_at.put(network, max(self._paid_at.get(network) or now, now) + 1)
            return min(self._wait(network, now), LONGEST_WAIT)

    def _wait(self, network: str, now: float) -> float:
        return 0.0 if self._at_once is None else max(0.0, (self._paid_at.get(network) or now) - now - self._at_once)


def _network(address: str) -> str:
    """What counts as one address: IPv6 has as many as one likes."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:_LONGEST]
    if found.version == 4:
        return address
    return str(found.ipv4_mapped or ipaddress.ip_network((found, _NETWORK_BITS), strict=False))
