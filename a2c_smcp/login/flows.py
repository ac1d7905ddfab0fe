"""The two ways to sign in: a code that is typed elsewhere (RFC 8628), and a browser on this machine (RFC 8252)."""

import asyncio
import base64
import hashlib
import secrets
import webbrowser
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlencode

from a2c_smcp.errors import UnauthorizedError
from a2c_smcp.login.issuer_requests import DEVICE_GRANT, IssuerRefusalError, SignInPlace, register
from a2c_smcp.oidc.redirects import CALLBACK_PATH, CameBack, RedirectListener
from a2c_smcp.utils.text import printable

__all__ = ["by_browser", "by_device"]

#: Seconds that a person has to sign in.
_LONGEST_SIGN_IN: Final = 600.0
#: Seconds between two questions whether the person has typed the code: the default of RFC 8628, 3.2, which is also how
#: much longer they become when the issuer says `slow_down` (3.5); and the bounds of what an issuer may wish.
_PAUSE: Final = 5.0
_SHORTEST_PAUSE: Final = 1.0
_LONGEST_PAUSE: Final = 60.0


async def by_device(place: SignInPlace, tell: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """Show a code that the person types in a browser anywhere, and wait. Returns the id of the client, and the issuer's
    answer with the tokens. Raises `SMCPError`, or `TimeoutError`.
    """
    url = place.required("device_authorization_endpoint")
    client_id = await register(place, f"http://127.0.0.1{CALLBACK_PATH}")
    said = await place.requests.ask(url, {"client_id": client_id, **place.asked})
    address = await place.requests.check(str(said.get("verification_uri", "")), "verification_uri")
    tell(f"open {printable(address)} and type the code {printable(str(said.get('user_code', '')))}")
    if isinstance(whole := said.get("verification_uri_complete"), str):
        tell(f"or open {printable(await place.requests.check(whole, 'verification_uri_complete'))}")
    form = {"grant_type": DEVICE_GRANT, "client_id": client_id, "device_code": str(said.get("device_code", ""))}
    pause = max(_SHORTEST_PAUSE, min(_seconds(said, "interval", _PAUSE), _LONGEST_PAUSE))
    async with asyncio.timeout(min(_seconds(said, "expires_in", _LONGEST_SIGN_IN), _LONGEST_SIGN_IN)):
        while True:
            await asyncio.sleep(pause)
            try:
                return client_id, await place.requests.ask(place.required("token_endpoint"), form)
            except IssuerRefusalError as error:
                if error.error == "slow_down":
                    pause += _PAUSE
                elif error.error != "authorization_pending":
                    raise


async def by_browser(place: SignInPlace, tell: Callable[[str], None]) -> tuple[str, dict[str, Any]]:
    """Open a browser on this machine, and wait until the issuer sends it to a port here. Returns and raises what
    `by_device` does.
    """
    state, verifier = secrets.token_urlsafe(24), secrets.token_urlsafe(48)
    async with RedirectListener() as listener:
        client_id = await register(place, listener.uri)
        digest = hashlib.sha256(verifier.encode()).digest()
        asked = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": listener.uri,
            "state": state,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            **place.asked,
        }
        address = await place.requests.check(place.required("authorization_endpoint"), "authorization_endpoint")
        address = f"{address}{'&' if '?' in address else '?'}{urlencode(asked)}"
        arriving = asyncio.ensure_future(listener.arrival(state))
        tell(f"open {printable(address)}")
        with suppress(webbrowser.Error):
            await asyncio.to_thread(webbrowser.open, address)
        async with asyncio.timeout(_LONGEST_SIGN_IN):
            back = await arriving
    code = _code(place, back)
    form = {"grant_type": "authorization_code", "client_id": client_id, "code": code}
    more = {"redirect_uri": listener.uri, "code_verifier": verifier, **place.asked}
    more.pop("scope", None)
    return client_id, await place.requests.ask(place.required("token_endpoint"), {**form, **more})


def _code(place: SignInPlace, back: CameBack) -> str:
    """The code that the browser brings. Raises `UnauthorizedError` if it comes from another issuer (RFC 9207)."""
    says_it = place.metadata.get("authorization_response_iss_parameter_supported") or back.issuer is not None
    if says_it and back.issuer != place.metadata.get("issuer"):
        raise UnauthorizedError("the browser came back from another issuer; sign in again")
    if back.code is None:
        raise IssuerRefusalError(back.error or "no code", back.error_description or "")
    return back.code


def _seconds(said: Mapping[str, Any], name: str, default: float) -> float:
    value = said.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else default
