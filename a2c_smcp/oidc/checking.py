"""Checks tokens with the keys of their issuer. The keys are fetched when they are needed, in a task or in a thread."""

import asyncio
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from a2c_smcp.errors import InternalError, SMCPError, UnauthorizedError
from a2c_smcp.oidc.key_pacing import KEY_PACING, KeyPacing
from a2c_smcp.oidc.metadata import IssuerFetchError, checked_url, fetch_json, fetch_metadata, new_http_client
from a2c_smcp.oidc.signing_keys import KeyBook, SigningKey, read_keys
from a2c_smcp.oidc.tokens import Expected, TokenHead, check_claims, read_claims, read_head

__all__ = ["CheckedToken", "SyncTokenChecker", "TokenChecker"]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CheckedToken:
    """The claims of a valid token."""

    claims: Mapping[str, Any]
    expires_at: float
    """Until when it is valid, in seconds since 1970."""


class _Checker:
    """What the checker for an event loop and the one for threads share: all that needs no waiting, and the request for
    the keys.
    """

    def __init__(
        self, issuer: str, audiences: Iterable[str], *, leeway: float = 30.0, pacing: KeyPacing = KEY_PACING
    ) -> None:
        self.issuer = checked_url(issuer, "the issuer")
        self.expected = Expected(issuer, frozenset(audiences), leeway)
        if not self.expected.audiences:
            raise ValueError("name the audience: otherwise tokens for other programs would be valid here")
        self._book = KeyBook(pacing)

    def change_leeway(self, seconds: float) -> None:
        """Let clocks differ by this much from now on."""
        self.expected = replace(self.expected, leeway=seconds)

    @property
    def problem(self) -> str | None:
        """Why no token can be checked yet; `None` as soon as the issuer's keys were read once."""
        return None if self._book.was_read else f"the keys of {self.issuer} were not read yet"

    def _found(self, head: TokenHead) -> SigningKey | None:
        return self._book.find(head.kid, head.algorithm, time.monotonic())

    def _missing(self) -> Exception:
        if self._book.problem is not None:
            return InternalError("the issuer of the tokens does not answer; try again later", {"passes": True})
        return UnauthorizedError("the token is signed with a key that its issuer does not list")

    def _checked(self, token: str, head: TokenHead, key: SigningKey) -> CheckedToken:
        claims = read_claims(token, head, key)
        return CheckedToken(claims, check_claims(claims, self.expected, time.time()))

    async def _fetch(self) -> None:
        """Ask the issuer for its keys. If it does not answer, the known keys stay."""
        self._book.asking(time.monotonic())
        try:
            async with new_http_client() as client:
                said = await fetch_metadata(partial(fetch_json, client), self.issuer)
                if said["issuer"] != self.issuer:
                    # Tokens have the issuer's own spelling in them; it differs in a slash at the end.
                    self.expected = replace(self.expected, issuer=said["issuer"])
                url = checked_url(str(said.get("jwks_uri", "")), "jwks_uri")
                keys = read_keys(await fetch_json(client, url))
            if not keys:
                raise IssuerFetchError(f"{url} has no key that could be used")
        except (IssuerFetchError, SMCPError, ValueError) as error:
            level = logging.DEBUG if str(error) == self._book.problem else logging.WARNING
            self._book.failed(str(error))
            logger.log(level, "the keys of %s cannot be read: %s", self.issuer, error)
        else:
            self._book.take(keys, time.monotonic())
            logger.debug("read %d keys of %s", len(keys), self.issuer)


class TokenChecker(_Checker):
    """For an event loop. `async with` fetches the keys before the first token comes, and asks again until the issuer
    answers once. Requests for keys that are still running end with the block.
    """

    _fetching: "asyncio.Task[None] | None" = None
    _starting: "asyncio.Task[None] | None" = None

    async def __aenter__(self) -> Self:
        self._starting = asyncio.create_task(self._start())
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in (self._starting, self._fetching):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    async def _start(self) -> None:
        # A load balancer sends nobody here before the keys were read, so no token would come that asks for them.
        while self.problem is not None:
            await asyncio.shield(self._ask(self._book.pause(time.monotonic())))

    async def check(self, token: str) -> CheckedToken:
        """Check a token. Raises `UnauthorizedError`, or `InternalError` while the issuer's keys cannot be read."""
        head = read_head(token)
        key = self._found(head)
        if key is None:
            await asyncio.shield(self._ask(self._book.pause(time.monotonic())))
            if (key := self._found(head)) is None:
                raise self._missing()
        elif self._book.wants_refresh(time.monotonic()):
            self._ask(0.0)
        return self._checked(token, head, key)

    def _ask(self, pause: float) -> "asyncio.Task[None]":
        """The request for the keys. There is one at a time, and all checks that need keys wait for it."""
        if self._fetching is None or self._fetching.done():
            self._fetching = asyncio.create_task(self._fetch_after(pause))
        return self._fetching

    async def _fetch_after(self, pause: float) -> None:
        await asyncio.sleep(pause)
        await self._fetch()


class SyncTokenChecker(_Checker):
    """For threads. A thread that needs keys fetches them; the others wait for it."""

    def __init__(self, issuer: str, audiences: Iterable[str], **options: Any) -> None:
        super().__init__(issuer, audiences, **options)
        self._lock = threading.Lock()

    def check(self, token: str) -> CheckedToken:
        """Check a token. Raises `UnauthorizedError`, or `InternalError` while the issuer's keys cannot be read."""
        head, came = read_head(token), time.monotonic()
        key = self._found(head)
        if key is None:
            with self._lock:
                key = self._found(head)
                if key is None and (self._book.asked_at is None or self._book.asked_at < came):
                    time.sleep(self._book.pause(time.monotonic()))
                    asyncio.run(self._fetch())
                    key = self._found(head)
            if key is None:
                raise self._missing()
        elif self._book.wants_refresh(time.monotonic()) and self._lock.acquire(blocking=False):
            try:
                asyncio.run(self._fetch())
            finally:
                self._lock.release()
        return self._checked(token, head, key)
