"""What the Computer asks a person for when it signs in. Pure: who is asked, and how, is decided elsewhere."""

from collections.abc import Awaitable
from dataclasses import dataclass, field
from typing import Protocol

from a2c_smcp.oidc.redirects import CameBack

__all__ = ["SignInAsker", "SignInPrompt"]


@dataclass(frozen=True, slots=True)
class SignInPrompt:
    """A person is to open this address, and sign in there."""

    server: str
    url: str = field(repr=False)
    """The address at the issuer. It is shown and opened as it is."""
    state: str = field(repr=False)
    scopes: tuple[str, ...] = ()
    is_step_up: bool = False
    """Whether the Computer is signed in, and needs more rights for a call."""


class SignInAsker(Protocol):
    """Puts sign-ins to a person."""

    def can_ask(self) -> bool:
        """Whether there is anybody to ask."""

    async def ask(self, prompt: SignInPrompt, arrival: Awaitable[CameBack]) -> CameBack:
        """Wait until the browser comes back (`arrival`), or the person gives the address that they ended up at.

        Raises `SignInError` if the person says no, or nobody is there.
        """
