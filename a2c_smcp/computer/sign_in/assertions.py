"""The assertion of a sign-in with `jwt_bearer`: what is asked of the identity provider, and whom it is for. Pure.

An assertion is a JWT that an issuer takes as a grant (RFC 7523, section 2.1). A workload has one. For a person, the
identity provider exchanges the ID token for one, an "ID-JAG" (RFC 8693, and SEP-990 of MCP).
"""

import base64
from typing import Final
from urllib.parse import quote, urlsplit

import httpx2
import jwt

from a2c_smcp.computer.mcp_clients.model import OAuthParameters
from a2c_smcp.oidc.sign_in_errors import SignInError
from a2c_smcp.web.hosts import is_loopback

__all__ = ["assertion_in", "check_audience", "check_issuer", "exchange_request"]

_ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"


def check_issuer(issuer: str) -> None:
    """Raise `SignInError` for an issuer without TLS: somebody on the way could name another token endpoint."""
    parts = urlsplit(issuer)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise SignInError(f"the issuer {parts.hostname} has no TLS; assertions are for https:// only")


def exchange_request(oauth: OAuthParameters, issuer: str, resource: str, scope: str | None) -> httpx2.Request:
    """The request for an assertion that is for this issuer and this MCP server."""
    assert oauth.token_exchange_url is not None  # the config was checked
    assert oauth.id_token is not None
    form = {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": _ID_JAG,
        "subject_token": oauth.id_token,
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "audience": issuer,
        "resource": resource,
    }
    headers = {}
    if scope:
        form["scope"] = scope
    if oauth.exchange_client_secret is not None:
        # Each part is encoded for URLs first (RFC 6749, section 2.3.1).
        pair = f"{quote(oauth.exchange_client_id or '', safe='')}:{quote(oauth.exchange_client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif oauth.exchange_client_id is not None:
        form["client_id"] = oauth.exchange_client_id
    return httpx2.Request("POST", oauth.token_exchange_url, data=form, headers=headers)


def assertion_in(response: httpx2.Response) -> str:
    """The assertion in an answer of the identity provider, which is a JSON object. Raises `SignInError`."""
    said, host = response.json(), response.request.url.host
    if response.status_code != 200 or "error" in said:
        raise SignInError(f"{host} does not exchange the ID token ({str(said.get('error', 'no reason'))[:80]!a})")
    assertion = said.get("access_token")
    if said.get("issued_token_type") != _ID_JAG or not isinstance(assertion, str) or not assertion:
        raise SignInError(f"{host} exchanges the ID token for something else than an ID-JAG")
    return assertion


def check_audience(assertion: str, issuer: str) -> None:
    """Raise `SignInError` unless the assertion is for this issuer alone: then it is of no use elsewhere."""
    try:
        audience = jwt.decode(assertion, options={"verify_signature": False}).get("aud")
    except (jwt.InvalidTokenError, RecursionError):
        raise SignInError("the assertion is not a JWT") from None
    named = audience if isinstance(audience, list) else [audience]
    if not named or any(_plain(str(name)) != _plain(issuer) for name in named):
        raise SignInError(
            f"the assertion is not for {urlsplit(issuer).hostname} alone, and the config does not name an `issuer`"
        )


def _plain(issuer: str) -> str:
    """An issuer without a path may have a slash at its end, or not."""
    return issuer.removesuffix("/") if urlsplit(issuer).path == "/" else issuer
