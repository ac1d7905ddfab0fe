"""The browsers that a person has let in until they are revoked, or not used for long. Pure: the time is handed in.

Times are those of the calendar, in seconds: they outlive a run.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from a2c_smcp.errors import TooManyRequestsError

__all__ = ["MAX_DEVICES", "UNUSED_SECONDS", "Device", "DeviceBook"]

MAX_DEVICES: Final = 32
#: A browser that was not used for so long is forgotten.
UNUSED_SECONDS: Final = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class Device:
    """A browser that comes in without a link."""

    id: str
    name: str
    public_key: bytes
    """A point of P-256, uncompressed."""
    granted: float
    used: float

    @property
    def expires(self) -> float:
        return self.used + UNUSED_SECONDS


class DeviceBook:
    """Every browser that is remembered. After a change the caller keeps `all` in the file."""

    def __init__(self, devices: Iterable[Device] = ()) -> None:
        self._devices = {device.id: device for device in devices}

    @property
    def all(self) -> tuple[Device, ...]:
        return tuple(self._devices.values())

    def find(self, device_id: str, now: float) -> Device | None:
        """The device with this id, unless it was not used for too long."""
        device = self._devices.get(device_id)
        return device if device is not None and now <= device.expires else None

    def forget_unused(self, now: float) -> None:
        """Forget the devices that were not used for too long."""
        self._devices = {device.id: device for device in self.all if now <= device.expires}

    def grant(self, name: str, public_key: bytes, now: float, known_as: str | None = None) -> Device:
        """Remember a browser, or the new key of one that is `known_as` this id already.

        Raises `TooManyRequestsError` if there are too many.
        """
        self.forget_unused(now)
        if known_as in self._devices:
            device = replace(self._devices[known_as], public_key=public_key, used=now)
        elif len(self._devices) >= MAX_DEVICES:
            raise TooManyRequestsError(f"{MAX_DEVICES} browsers are remembered already; revoke one first")
        else:
            device = Device(secrets.token_hex(16), name, public_key, now, now)
        self._devices[device.id] = device
        return device

    def use(self, device_id: str, now: float) -> bool:
        """Note that a browser is used; returns whether the note is new enough to be written to the file."""
        device = self.find(device_id, now)
        # When a browser was used last is kept as exactly as this.
        if device is None or abs(now - device.used) < 3600.0:
            return False
        self._devices[device_id] = replace(device, used=now)
        return True

    def revoke(self, device_id: str) -> bool:
        """Forget a browser; false if it was not known."""
        return self._devices.pop(device_id, None) is not None
