"""The token of a person who has signed in, renewed when needed: the `api_key` of a link."""

import asyncio
import time
from typing import TYPE_CHECKING, Final

from a2c_smcp.errors import UnauthorizedError
from a2c_smcp.login.login_files import LoginFile, login_file

if TYPE_CHECKING:
    from a2c_smcp.login.kept_login import KeptLogin

__all__ = ["LoginToken", "login_for"]

#: How many seconds a renewal gets to end when nobody waits for it any more.
_CLOSING: Final = 10.0


class LoginToken:
    """Gives the token for one server: `LinkOptions(url, api_key=LoginToken(file))`."""

    def __init__(self, file: LoginFile) -> None:
        self._file = file
        self._renewing: asyncio.Task[str] | None = None

    @property
    def url(self) -> str:
        """The server that it is for. No other server gets it."""
        return self._file.url

    async def __call__(self) -> str:
        """The token for a new connection. Raises `UnauthorizedError` if the person has to sign in again."""
        kept = self._kept()
        if kept.is_fresh(time.time()):
            return kept.token
        if kept.refresh_token is None:
            if kept.expires_at > time.time():
                return kept.token
            raise self._ended("the token has expired")
        if self._renewing is None or self._renewing.done():
            self._renewing = asyncio.create_task(self._renewed())
        renewing = self._renewing
        try:
            return await asyncio.shield(renewing)
        except asyncio.CancelledError:
            # The issuer may have replaced the refresh token already. Without the new one the sign-in would be lost.
            await asyncio.wait({renewing}, timeout=_CLOSING)
            raise

    async def _renewed(self) -> str:
        from a2c_smcp.login.issuer_requests import IssuerRefusalError, IssuerRequests  # httpx2 takes 0.1 s to import

        async with self._file.locked():
            kept = self._kept()  # another process may have renewed it meanwhile
            if kept.is_fresh(time.time()) or kept.refresh_token is None:
                return kept.token
            try:
                requests = IssuerRequests(kept.url)
                answer = await requests.renewed(kept.token_endpoint, kept.client_id, kept.refresh_token, kept.resource)
            except IssuerRefusalError as error:
                raise self._ended(error.message) from None
            if (new := kept.with_answer(answer, time.time())) is None:
                raise self._ended(f"the issuer gave no new token for {kept.resource}")
            self._file.save(new)
            return new.token

    def _kept(self) -> "KeptLogin":
        if (kept := self._file.load()) is None:
            raise self._ended("nobody is signed in")
        if (problem := kept.problem) is not None:
            raise self._ended(problem)
        return kept

    def _ended(self, why: str) -> UnauthorizedError:
        return UnauthorizedError(f"{why}; sign in again: a2c login --url {self.url}")


def login_for(url: str) -> LoginToken | None:
    """The token of this user for a server; `None` if they have not signed in there. It reads nothing yet: it only looks
    whether there is a file.
    """
    file = login_file(url)
    return LoginToken(file) if file is not None and file.exists else None
