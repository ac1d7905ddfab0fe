"""`a2c login`, `a2c logout` and `a2c whoami`: what they do, and what they print."""

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Literal, TypeAlias

from a2c_smcp.errors import BadRequestError, ConnectionLostError, SMCPError, UnauthorizedError
from a2c_smcp.link.connecting import trusting
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.server_link import ServerLink
from a2c_smcp.login.confirming import Combination, GivenSignIn
from a2c_smcp.login.flows import by_browser, by_device
from a2c_smcp.login.fresh_tokens import LoginToken
from a2c_smcp.login.issuer_requests import IssuerRequests, SignInPlace, find_place
from a2c_smcp.login.kept_login import KeptLogin
from a2c_smcp.login.login_files import LoginFile, login_file
from a2c_smcp.terminal.exits import FAILED, INTERRUPTED, REFUSED
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.text import printable
from a2c_smcp.utils.token_times import token_claims

__all__ = ["SignInWay", "login", "logout", "whoami"]

SignInWay: TypeAlias = Literal["auto", "browser", "device"]


def login(link: LinkOptions, way: SignInWay, given: GivenSignIn) -> int:
    """Sign in at a server, and keep the tokens. Returns the exit status."""

    def signed_in() -> int:
        place = asyncio.run(find_place(link.url, trusting(link.ca), given))
        _confirm(place.wanted, _file(link))
        asyncio.run(_login(link, way, place))
        return 0

    return _run(signed_in)


def logout(link: LinkOptions) -> int:
    """Forget the sign-in at a server, and tell the issuer."""
    return _run(lambda: asyncio.run(_logout(link)))


def whoami(link: LinkOptions, as_json: bool) -> int:
    """Say who is signed in at a server, and whether the server accepts the token."""
    return _run(lambda: asyncio.run(_whoami(link, as_json)))


def _run(work: Callable[[], int]) -> int:
    try:
        return work()
    except (UnauthorizedError, ConnectionLostError) as error:
        say(f"a2c: {printable(error.message)}", err=True)
        return REFUSED
    except TimeoutError:
        say("a2c: the time to sign in is over; run a2c login again", err=True)
        return FAILED
    except NotConfirmedError as error:
        say(f"a2c: {error}", err=True)
        return FAILED
    except SMCPError as error:
        say(f"a2c: {printable(error.message)}", err=True)
        return FAILED
    except OSError as error:
        say(f"a2c: {error}", err=True)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


class NotConfirmedError(Exception):
    """Nobody has agreed to what a server wants of a sign-in. The text has lines, and says what to do."""


def _confirm(wanted: Combination, file: LoginFile) -> None:
    """Return if a person agrees to all that this sign-in is with, now or before. Raises `NotConfirmedError`."""
    if not wanted.open_options or wanted.is_kept(file.load()):
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise NotConfirmedError(wanted.refusal())
    say(wanted.shown(), err=True)
    say("Is this what the people who run the server told you? [y/N] ", err=True, end="")
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise NotConfirmedError("nothing is done: you did not agree")


async def _login(link: LinkOptions, way: SignInWay, place: SignInPlace) -> None:
    file, wanted = _file(link), place.wanted
    flow = by_device if _is_for_device(way, place) else by_browser
    client, answer = await flow(place, lambda text: say(text, err=True))
    blank = KeptLogin(
        url=file.url,
        issuer=wanted.issuer,
        client_id=client,
        token_endpoint=place.required("token_endpoint"),
        resource=wanted.audience,
        token="",
        expires_at=0.0,
        revocation_endpoint=place.endpoint("revocation_endpoint"),
        scope=" ".join(wanted.scopes),
    )
    if (kept := blank.with_answer(answer, time.time())) is None:
        raise BadRequestError(
            f"{wanted.issuer} gave no token for {wanted.audience} that a server could check, so the server gets none: "
            f"set the issuer up so that access tokens for {wanted.audience} are JSON Web Tokens"
        )
    # Before it is kept: a token that the server refuses must not replace one that it takes.
    await _check_accepted(link, kept.token)
    async with file.locked():
        file.save(kept)
    say(f"signed in at {file.url} as {_name(kept)}; kept in {file.path}")
    if kept.refresh_token is None:
        say(f"sign in again after {_time(kept)}: the issuer gave no token to renew this one with", err=True)


def _is_for_device(way: SignInWay, place: SignInPlace) -> bool:
    """Whether to show a code instead of opening a browser. A browser is better if a person sits in front of it."""
    if way != "auto":
        return way == "device"
    has_display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    has_screen = has_display or sys.platform in ("darwin", "win32")
    is_remote = "SSH_CONNECTION" in os.environ
    can_show_codes = place.endpoint("device_authorization_endpoint") is not None
    return can_show_codes and (is_remote or not has_screen)


async def _logout(link: LinkOptions) -> int:
    file = _file(link)
    async with file.locked():
        kept = file.load()
        file.delete()
    if kept is None:
        say(f"nobody is signed in at {file.url}")
        return 0
    if kept.revocation_endpoint is not None:
        shown = {"token": kept.refresh_token or kept.token, "client_id": kept.client_id}
        try:
            await IssuerRequests(kept.url).ask(kept.revocation_endpoint, shown)
        except SMCPError as error:
            say(f"warning: the issuer did not revoke the tokens: {printable(error.message)}", err=True)
    say(f"signed out at {file.url}")
    return 0


async def _whoami(link: LinkOptions, as_json: bool) -> int:
    file = _file(link)
    kept = file.load()
    if kept is None:
        if as_json:
            say(json.dumps({"url": file.url, "signed_in": False}))
        else:
            say(f"nobody is signed in at {file.url}; a2c login --url {file.url} does it")
        return FAILED
    if (problem := kept.problem) is not None:
        raise UnauthorizedError(f"{problem}; sign in again: a2c login --url {file.url}")
    await _check_accepted(link, LoginToken(file))
    kept = file.load() or kept
    if as_json:
        known = {"name": _name(kept), "issuer": kept.issuer, "expires_at": round(kept.expires_at)}
        say(json.dumps({"url": file.url, "signed_in": True, **known, "renews": kept.refresh_token is not None}))
    else:
        lasts = "renewed by itself" if kept.refresh_token else "then sign in again"
        lasts = f"until {_time(kept)}, {lasts}"
        say(f"{_name(kept)} at {file.url}: the server accepts the token of {kept.issuer}; it is valid {lasts}")
    return 0


async def _check_accepted(link: LinkOptions, token: str | LoginToken) -> None:
    """Raise unless the server lets this token in."""
    options = replace(link, api_key=token, reconnect=False)
    async with ServerLink(options, {}, lambda _: None):
        pass


def _file(link: LinkOptions) -> LoginFile:
    if (file := login_file(link.url)) is None:
        raise BadRequestError("there is no home folder to keep a sign-in in; set HOME or XDG_STATE_HOME")
    return file


def _name(kept: KeptLogin) -> str:
    claims = token_claims(kept.token)
    found = (claims.get(name) for name in ("email", "preferred_username", "name", "sub"))
    return printable(next((each for each in found if isinstance(each, str) and each), "somebody")[:100])


def _time(kept: KeptLogin) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(kept.expires_at))
