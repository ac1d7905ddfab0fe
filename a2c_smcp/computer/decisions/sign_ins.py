"""Brings sign-ins at remote servers to a person: into the Computer's decisions, and back what the browser came with."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from a2c_smcp.computer.decisions.book import Accepted, AlreadyDecidedError, MissingSignIn, Outcome, Resolution
from a2c_smcp.computer.decisions.store import DecisionStore
from a2c_smcp.computer.sign_in.asking import SignInPrompt
from a2c_smcp.errors import BadRequestError
from a2c_smcp.oidc.redirects import CameBack, RedirectError, came_back
from a2c_smcp.oidc.sign_in_errors import SignInError

__all__ = ["BROWSER_CAME_BACK", "SignInDesk"]

#: Who decides a sign-in, if the browser comes back by itself.
BROWSER_CAME_BACK = "the browser"


class SignInDesk:
    """The `SignInAsker` of a Computer."""

    def __init__(self, decisions: DecisionStore) -> None:
        self._decisions = decisions

    def can_ask(self) -> bool:
        return self._decisions.can_answer("sign_in")

    async def ask(self, prompt: SignInPrompt, arrival: Awaitable[CameBack]) -> CameBack:
        found: list[CameBack] = []

        def check(value: Any) -> None:
            """Take the address that a person ended up at."""
            if found:
                return
            if not isinstance(value, str):
                raise BadRequestError("the answer to a sign-in is the address that the browser ended up at, as a text")
            try:
                found.append(came_back(value, prompt.state))
            except RedirectError as error:
                raise BadRequestError(str(error)) from None

        async def follow() -> None:
            found.append(await arrival)
            for decision in self._decisions.pending:
                if isinstance(decision, MissingSignIn) and decision.url == prompt.url:
                    with suppress(AlreadyDecidedError):
                        self._decisions.answer(decision.id, Accepted(), by=BROWSER_CAME_BACK)

        following = asyncio.ensure_future(follow())
        try:
            resolution = await self._decisions.ask_sign_in(
                prompt.server, prompt.url, prompt.scopes, is_step_up=prompt.is_step_up, check=check
            )
        finally:
            following.cancel()
            await asyncio.wait({following})
        if resolution.outcome is Outcome.ACCEPTED and found:
            return found[0]
        raise SignInError(_why(resolution))


def _why(resolution: Resolution) -> str:
    match resolution.outcome:
        case Outcome.DECLINED | Outcome.DISMISSED:
            return "the person said no"
        case Outcome.FAILED:
            return "nobody could be asked"
    return "nobody has signed in"
