"""The remembered browsers: they come in without a link until they are revoked, or not used for long. Pure.

The time is handed in. It is calendar time in seconds, because it outlives a run.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace

from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.errors import TooManyRequestsError

__all__ = ["Device", "DeviceBook"]


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
        return self.used + CONSOLE_LIMITS.device_seconds


class DeviceBook:
    """Every remembered browser. After a change the caller writes `all` to the file."""

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
        """Remember a browser, or a new key for the one with the id `known_as`.

        Raises `TooManyRequestsError` if there are too many.
        """
        self.forget_unused(now)
        if known_as in self._devices:
            device = replace(self._devices[known_as], public_key=public_key, used=now)
        elif len(self._devices) >= CONSOLE_LIMITS.devices:
            raise TooManyRequestsError(f"{CONSOLE_LIMITS.devices} browsers are remembered already; revoke one first")
        else:
            device = Device(secrets.token_hex(16), name, public_key, now, now)
        self._devices[device.id] = device
        return device

    def use(self, device_id: str, now: float) -> bool:
        """Note that a browser is used. Returns whether that is worth writing to the file."""
        device = self.find(device_id, now)
        # The last use is kept with the accuracy of an hour.
        if device is None or abs(now - device.used) < 3600.0:
            return False
        self._devices[device_id] = replace(device, used=now)
        return True

    def revoke(self, device_id: str) -> bool:
        """Forget a browser. Returns whether it was known."""
        return self._devices.pop(device_id, None) is not None
