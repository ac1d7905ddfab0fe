"""How often an issuer is asked for its keys. Apart from the keys: those need libraries that many servers do not use."""

from dataclasses import dataclass
from typing import Final

__all__ = ["KEY_PACING", "KeyPacing"]


@dataclass(frozen=True, slots=True)
class KeyPacing:
    """How often an issuer is asked for its keys. All in seconds."""

    fresh: float = 300.0
    """How long keys are used before the issuer is asked again."""
    pause: float = 5.0
    """Between two requests for a key that is not known. Anybody can name such a key."""
    retry: float = 30.0
    """Between two requests while the issuer does not answer, and known keys are still used."""
    kept: float = 24 * 3600.0
    """How long keys are used through an outage of their issuer."""


KEY_PACING: Final = KeyPacing()
