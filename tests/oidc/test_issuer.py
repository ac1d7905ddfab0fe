"""The issuer of the tests does what the tests of others take for granted."""

import base64
import hashlib
import json
import secrets
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2

from tests.oidc.issuer import Issuer, needs_issuer, running_issuer

__all__ = ["running_issuer"]

_RESOURCE = "https://office.example.com"
_REDIRECT = "http://127.0.0.1:1/callback"

pytestmark = needs_issuer


def _claims(token: str) -> dict[str, object]:
    part = token.split(".")[1]
    claims: dict[str, object] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return claims


def _register(issuer: Issuer, *grants: str) -> str:
    wanted = {
        "application_type": "native",
        "token_endpoint_auth_method": "none",
        "redirect_uris": [_REDIRECT],
        "grant_types": [*grants, "refresh_token"],
        "response_types": ["code"] if "authorization_code" in grants else [],
    }
    answer = httpx2.post(f"{issuer.url}/reg", json=wanted)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["client_id"])


def _token(issuer: Issuer, **form: str) -> "httpx2.Response":
    return httpx2.post(f"{issuer.url}/token", data=form)


def test_a_person_signs_in_and_a_refresh_token_counts_once(running_issuer: Issuer) -> None:
    client, verifier = _register(running_issuer, "authorization_code"), secrets.token_urlsafe(32)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
    asked = {
        "client_id": client,
        "response_type": "code",
        "redirect_uri": _REDIRECT,
        "scope": "openid office",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": "s",
        "resource": _RESOURCE,
    }
    address = f"{running_issuer.url}/auth?{urlencode(asked)}"
    back = parse_qs(urlsplit(running_issuer.sign_in(address)).query)
    assert (back["state"], back["iss"]) == (["s"], [running_issuer.url])
    code = {"grant_type": "authorization_code", "code": back["code"][0], "redirect_uri": _REDIRECT}
    first = _token(running_issuer, client_id=client, code_verifier=verifier, **code).json()
    claims = _claims(first["access_token"])
    assert (claims["aud"], claims["sub"], claims["groups"]) == (_RESOURCE, "ada", ["staff", "admins"])
    refresh = {"grant_type": "refresh_token", "client_id": client}
    second = _token(running_issuer, **refresh, refresh_token=first["refresh_token"]).json()
    assert second["refresh_token"] != first["refresh_token"]
    assert _token(running_issuer, **refresh, refresh_token=first["refresh_token"]).status_code == 400
    running_issuer.change(auto=False)
    assert parse_qs(urlsplit(running_issuer.sign_in(address, refuse=True)).query)["error"] == ["access_denied"]
    running_issuer.change(auto=True)


def test_a_device_is_allowed_by_a_person_elsewhere(running_issuer: Issuer) -> None:
    client = _register(running_issuer, "urn:ietf:params:oauth:grant-type:device_code")
    running_issuer.change(accessSeconds=77)
    asked = {"client_id": client, "scope": "openid office", "resource": _RESOURCE}
    device = httpx2.post(f"{running_issuer.url}/device/auth", data=asked).json()
    ask = {"grant_type": "urn:ietf:params:oauth:grant-type:device_code", "device_code": device["device_code"]}
    assert _token(running_issuer, client_id=client, **ask).json()["error"] == "authorization_pending"
    running_issuer.sign_in(device["verification_uri_complete"])
    answer = _token(running_issuer, client_id=client, **ask).json()
    assert answer["expires_in"] == 77
    assert _claims(answer["access_token"])["email"] == "ada@example.com"
    running_issuer.revoke("ada")
    refresh = {"grant_type": "refresh_token", "client_id": client, "refresh_token": answer["refresh_token"]}
    assert _token(running_issuer, **refresh).status_code == 400


def test_keys_rotate_and_the_issuer_goes_and_comes(running_issuer: Issuer) -> None:
    running_issuer.add_machine()
    assert _claims(running_issuer.token(_RESOURCE))["aud"] == _RESOURCE
    before = running_issuer.signing_key()["kid"]
    running_issuer.rotate()
    kids = [key["kid"] for key in httpx2.get(f"{running_issuer.url}/jwks").json()["keys"]]
    assert kids == [running_issuer.signing_key()["kid"], before]
    running_issuer.go_down()
    try:
        httpx2.get(f"{running_issuer.url}/jwks")
    except httpx2.ConnectError:
        running_issuer.come_up()
    assert httpx2.get(f"{running_issuer.url}/jwks").status_code == 200
