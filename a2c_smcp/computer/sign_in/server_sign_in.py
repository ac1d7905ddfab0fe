"""The sign-in at one MCP server: its token for every request, and how it gets a new one.

A request takes the token without waiting. Only a token that has expired, or that the server refuses, is waited for.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.shared.auth import AuthorizationCodeResult

from a2c_smcp.computer.mcp_clients.model import OAuthParameters
from a2c_smcp.computer.sign_in.asking import SignInAsker, SignInPrompt
from a2c_smcp.computer.sign_in.challenges import Challenge, challenge_in
from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.computer.sign_in.mcp_flow import SigningPerson, has_metadata, refresh, revoke, sign_in
from a2c_smcp.computer.sign_in.token_store import SignInStore, key_of
from a2c_smcp.computer.sign_in.watched_requests import WATCHED_REQUEST
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.oidc.guarded_requests import GuardedRequests
from a2c_smcp.oidc.redirects import RedirectError, RedirectListener
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError, SignInError

__all__ = ["Bearer", "BearerAuth", "ServerSignIn"]

logger = logging.getLogger(__name__)

#: After this many seconds a background renewal that failed is tried again.
_RETRY: Final = 10.0
#: How many seconds a renewal gets to end when the program ends, and an issuer to withdraw tokens.
_CLOSING: Final = 10.0

_T = TypeVar("_T")


class _ScopeRefusedError(SignInError):
    """The issuer does not give this client the scope. A client that is registered anew may get it."""


@dataclass(frozen=True, slots=True)
class Bearer:
    """What a request shows: a token, and the time of the sign-in that it comes from."""

    token: str | None = field(default=None, repr=False)
    signed_in_at: float | None = None


class ServerSignIn:
    """One server's sign-in. `learn` is told every secret, so that none is shown. `has_headers` says that the config has
    headers, in which a key may be.
    """

    def __init__(
        self,
        server: str,
        url: str,
        oauth: OAuthParameters,
        store: SignInStore,
        asker: SignInAsker,
        learn: Callable[[str], None] = ignore,
        *,
        has_headers: bool = False,
    ) -> None:
        self.server = server
        self.url = url
        self.oauth = oauth
        self.key = key_of(server, url, self.oauth.client_id)
        self._store = store
        self._asker = asker
        self._learn = learn
        self.has_headers = has_headers
        self._requests = GuardedRequests(url)
        self._kept: KeptSignIn | None = None
        self._renewing: asyncio.Task[Bearer | None] | None = None
        self._retry_at = 0.0
        self._stepping_up: asyncio.Task[None] | None = None
        self._given: dict[str | None, float | None] = {}
        """The rights that a person has given for calls, and the sign-in that has them. If the server still wants them,
        nobody is asked again.
        """
        self.challenge: Challenge | None = None
        """Why a person has to sign in; `None` if nobody has to."""
        self.problem: SignInError | None = None
        """Why the last try to get a token without a person failed, if it did."""

    @property
    def is_machine(self) -> bool:
        """Whether the machine signs in by itself."""
        return self.oauth.grant != "authorization_code"

    # --- for requests

    async def bearer(self) -> Bearer:
        """What a request shows. Waits only for a token that has expired. Raises `IssuerSilentError`."""
        kept = await self._load()
        match kept.use(time.time()):
            case "renew" if kept.has_refresh_token:
                return await self._renewed(kept.access_token) or Bearer()
            case "renew":
                return Bearer()
            case "use and renew" if time.monotonic() >= self._retry_at:
                self._renewal(kept.access_token)
        return _bearer(kept)

    async def is_kept(self) -> bool:
        """Whether a token is kept, or can be had without a person."""
        kept = await self._load()
        return kept.has_refresh_token or kept.use(time.time()) != "renew"

    async def after_refusal(self, used: Bearer, challenge: Challenge, *, may_ask: bool) -> Bearer | None:
        """What to show after the server refused `used`; `None` if a person has to sign in, or said no.

        With `may_ask` it asks a person for more rights, and waits. Raises `IssuerSilentError`.
        """
        if not challenge.is_step_up or self.is_machine:
            return await self._renewed(used.token, challenge)
        return await self.more_rights(used.signed_in_at, challenge) if may_ask else None

    async def wants_person(self, challenge: Challenge) -> bool:
        """Whether a person can help. If a config has headers, and its server says nowhere how to sign in, then the key
        in one of the headers is wrong.
        """
        if not self.has_headers or self.oauth != OAuthParameters() or challenge.resource_metadata is not None:
            return True
        return (await self._load()).client is not None or await has_metadata(self.url, challenge, self._requests.send)

    async def _load(self, *, again: bool = False) -> KeptSignIn:
        if self._kept is None or again:
            found = await self._store.load(self.key)
            # Tokens go to the server that they were made for.
            self._kept = found if found is not None and found.url == self.url else KeptSignIn(self.url)
            self._learn_secrets(self._kept)
        return self._kept

    async def _save(self, kept: KeptSignIn) -> None:
        self._learn_secrets(kept)
        try:
            await self._store.save(self.key, kept)
        finally:
            self._kept = kept

    def _learn_secrets(self, kept: KeptSignIn) -> None:
        for secret in kept.secrets:
            self._learn(secret)

    # --- without a person

    async def _renewed(self, used: str | None, challenge: Challenge | None = None) -> Bearer | None:
        """Another token than `used`; `None` if only a person can get one. Raises `IssuerSilentError`."""
        if self._kept is not None and (found := _other(self._kept, used)) is not None:
            return found
        return await asyncio.shield(self._renewal(used, challenge))

    def _renewal(self, used: str | None, challenge: Challenge | None = None) -> "asyncio.Task[Bearer | None]":
        """The renewal that runs. All who need a token wait for the same one.

        It goes on when they do not wait any more: the issuer may have replaced the refresh token already.
        """
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew(used, challenge), name=f"token {self.server}")
            self._renewing.add_done_callback(self._renewal_ended)
        return self._renewing

    def _renewal_ended(self, task: "asyncio.Task[Bearer | None]") -> None:
        self._renewing = None
        if task.cancelled():
            return
        error = task.exception()
        if error is not None or task.result() is None:
            self._retry_at = time.monotonic() + _RETRY
        if isinstance(error, IssuerSilentError):
            self.problem = error
            logger.warning("MCP server %s: its sign-in is not renewed: %s", self.server, error)

    async def _renew(self, used: str | None, challenge: Challenge | None) -> Bearer | None:
        async with self._store.locked(self.key):
            kept = await self._load(again=True)
            if (found := _other(kept, used)) is not None:  # of another process
                return found
            try:
                new = await self._new_tokens(kept, challenge)
            except IssuerSilentError:
                raise
            except SignInError as error:
                # The refresh token is kept: a later try may succeed.
                self.problem = error
                logger.warning("MCP server %s: its sign-in is not renewed: %s", self.server, error)
                return None
            self.problem = None
            if new is not None or kept.has_refresh_token:
                await self._save(kept.without_tokens() if new is None else new)
            return None if new is None else _bearer(new)

    async def _new_tokens(self, kept: KeptSignIn, challenge: Challenge | None) -> KeptSignIn | None:
        new = None
        if kept.has_refresh_token and (challenge is None or not challenge.is_step_up):
            new = await refresh(kept, self.oauth, self._requests.send)
        if new is None and self.is_machine and challenge is not None:
            new = await sign_in(kept.without_tokens(), self.oauth, challenge, self._requests.send, None)
        return new

    # --- with a person

    async def more_rights(self, signed_in_at: float | None, challenge: Challenge) -> Bearer | None:
        """Ask a person for more rights than those of this sign-in; `None` if there are none. All calls that need them
        wait for the same answer.
        """
        kept = await self._load()
        if kept.signed_in_at != signed_in_at:  # somebody has given them meanwhile, or signed in again
            return await self.bearer()
        is_useless = challenge.scope in self._given and self._given[challenge.scope] == signed_in_at
        if is_useless or not self._asker.can_ask():
            return None
        if self._stepping_up is None:
            self._stepping_up = asyncio.create_task(self.sign_in(challenge), name=f"more rights at {self.server}")
            self._stepping_up.add_done_callback(self._stepped_up)
        task = self._stepping_up
        await asyncio.wait({task})
        return None if task.cancelled() or task.exception() is not None else _bearer(await self._load())

    def _stepped_up(self, task: asyncio.Task[None]) -> None:
        self._stepping_up = None
        if not task.cancelled() and (error := task.exception()) is not None:
            said = str(error) if isinstance(error, SignInError) else "internal error"
            logger.warning("MCP server %s: no more rights: %s", self.server, said)

    def give_up(self) -> None:
        """Do not ask for more rights any more."""
        if self._stepping_up is not None:
            self._stepping_up.cancel()

    async def sign_in(self, challenge: Challenge | None = None) -> None:
        """Let a person sign in. Raises `SignInError` that says why there is no token."""
        challenge = challenge or self.challenge or Challenge(401)
        kept = await self._load(again=True)
        try:
            await self._sign_in(kept, challenge)
        except _ScopeRefusedError:
            if self.oauth.client_id is not None or kept.client is None:
                raise
            # A client may be registered for the scopes that it asked for first.
            await self._sign_in(replace(kept, client=None), challenge)
        if challenge.is_step_up:
            self._given = dict.fromkeys([*self._given, challenge.scope], (await self._load()).signed_in_at)
        self.challenge = self.problem = None

    async def _sign_in(self, kept: KeptSignIn, challenge: Challenge) -> None:
        fixed = self.oauth.redirect_port
        try:
            async with RedirectListener(fixed or _last_port(kept), is_fixed=fixed is not None) as listener:

                async def authorize(url: str) -> AuthorizationCodeResult:
                    return await self._authorize(url, listener, is_step_up=challenge.is_step_up)

                # At a refusal with 401 the old token is of no use. For more rights it says which rights there are.
                before = kept if challenge.is_step_up else kept.without_tokens()
                person = SigningPerson(listener.uri, authorize)
                new = await sign_in(before, self.oauth, challenge, self._requests.send, person)
        except RedirectError as error:
            raise SignInError(str(error)) from None
        async with self._store.locked(self.key):  # a renewal of the old sign-in must not be saved over the new one
            await self._save(new)

    async def _authorize(self, url: str, listener: RedirectListener, *, is_step_up: bool) -> AuthorizationCodeResult:
        await self._requests.check(url)
        query = parse_qs(urlsplit(url).query)
        state = query.get("state", [""])[0]
        scopes = tuple(query.get("scope", [""])[0].split())
        prompt = SignInPrompt(self.server, url, state, scopes, is_step_up)
        came = await self._asker.ask(prompt, listener.arrival(state))
        if came.error == "invalid_scope":
            raise _ScopeRefusedError("the issuer does not give these rights (invalid_scope)")
        if came.error is not None or came.code is None:
            raise SignInError(f"the issuer refused the sign-in ({(came.error or 'no code')[:80]!a})")
        self._learn(came.code)
        return AuthorizationCodeResult(code=came.code, state=came.state, iss=came.issuer)

    async def has_appeared(self) -> bool:
        """Whether another process has signed in. A token that another process has only renewed does not count: the
        server would refuse it, too.
        """
        found, known = await self._store.load(self.key), self._kept or KeptSignIn(self.url)
        if found is None or found.url != self.url or found.access_token is None:
            return False
        if found.signed_in_at == known.signed_in_at and known.access_token is not None:
            return False
        self._kept, self.challenge = None, None
        return True

    # --- ending

    async def forget(self) -> bool:
        """Delete what is kept, and have the issuer withdraw it. Returns whether there was something."""
        await self.aclose()
        kept = await self._load(again=True)
        self._kept = None
        found = await self._store.delete(self.key)
        try:
            async with asyncio.timeout(_CLOSING):
                await revoke(kept, self.oauth, self._requests.send)
        except (SignInError, TimeoutError) as error:
            said = str(error) or "it does not answer"
            logger.warning("MCP server %s: its issuer does not withdraw the tokens: %s", self.server, said)
        return found

    async def aclose(self) -> None:
        """Give up what waits for a person, and let a renewal end: its refresh token would be lost otherwise."""
        self.give_up()
        tasks = [task for task in (self._renewing, self._stepping_up) if task is not None]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_CLOSING)
            for task in late:
                task.cancel()


def _bearer(kept: KeptSignIn) -> Bearer:
    return Bearer(kept.access_token, kept.signed_in_at)


def _other(kept: KeptSignIn, used: str | None) -> Bearer | None:
    """The kept token, if it is another one than `used`, and has not expired."""
    return _bearer(kept) if kept.access_token != used and kept.use(time.time()) != "renew" else None


def _last_port(kept: KeptSignIn) -> int | None:
    """The port that the client is registered with."""
    for uri in (kept.client or {}).get("redirect_uris") or []:
        parts = urlsplit(str(uri))
        if parts.hostname == "127.0.0.1" and parts.port:
            return parts.port
    return None


class BearerAuth(httpx2.Auth):
    """Sets the token of each request. A refused request, which was not executed, is sent once more with another one.

    `may_wait` says whether a request may wait until a person has given more rights. `on_needed` is told why a person
    is needed, and returns whether the session ends for it.
    """

    def __init__(
        self, sign_in: ServerSignIn, may_wait: Callable[[], bool], on_needed: Callable[[Challenge], bool]
    ) -> None:
        self._sign_in = sign_in
        self._may_wait = may_wait
        self._on_needed = on_needed

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        used = await _unless_silent(self._sign_in.bearer())
        response = yield _with(request, used.token)
        if (challenge := challenge_in(response)) is None or request.method == "DELETE":  # the session ends anyway
            return
        another = await _unless_silent(self._sign_in.after_refusal(used, challenge, may_ask=self._may_wait()))
        if another is not None:
            used = another
            response = yield _with(request, used.token)
            if (challenge := challenge_in(response)) is None:
                return
        if self._sign_in.is_machine or (challenge.is_step_up and self._may_wait()):
            return
        if challenge.is_step_up or await _unless_silent(self._sign_in.wants_person(challenge)):
            # Also a token that was made a moment ago is of no use: only a person can help.
            if (watched := WATCHED_REQUEST.get()) is not None:
                watched.refused(challenge, used.signed_in_at)
            if not self._on_needed(challenge):
                # mcp's SSE client sends nothing more after a POST that failed. The request itself was told.
                response.status_code = 202


async def _unless_silent(work: Awaitable[_T]) -> _T:
    """While the issuer is silent, the server counts as one that cannot be reached: it is started again later."""
    try:
        return await work
    except IssuerSilentError as error:
        raise httpx2.ConnectError(str(error)) from None


def _with(request: httpx2.Request, token: str | None) -> httpx2.Request:
    if token is not None:
        request.headers["Authorization"] = f"Bearer {token}"
    return request
