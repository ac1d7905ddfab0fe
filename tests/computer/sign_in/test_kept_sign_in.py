"""What is kept of a sign-in, when its token is renewed, and what a server's refusal says."""

import httpx2
import pytest

from a2c_smcp.computer.sign_in.challenges import Challenge, challenge_in
from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.oidc.redirects import RedirectError, came_back

URL = "https://mcp.example/mcp"
CLIENT = {"client_id": "c", "client_secret": "client-secret-1"}


def kept(expires_at: float | None, lifetime: float | None = 3600, refresh: str | None = "refresh-1") -> KeptSignIn:
    tokens = {"access_token": "access-1", "token_type": "Bearer", **({"refresh_token": refresh} if refresh else {})}
    return KeptSignIn(URL, "https://issuer.example", tokens, expires_at, lifetime, CLIENT)


def test_a_token_is_renewed_ahead_of_its_expiry_and_at_its_expiry() -> None:
    assert kept(1000).use(900) == "use"
    assert kept(1000).use(941) == "use and renew"
    assert kept(1000).use(1000) == "renew"
    assert kept(1000, lifetime=10).use(997) == "use"
    assert kept(1000, lifetime=10).use(998.5) == "use and renew"
    assert kept(None).use(10**10) == "use"
    assert kept(1000, refresh=None).use(999) == "use"
    assert KeptSignIn(URL).use(0) == "renew"


def test_what_is_kept_is_read_again_and_shows_no_secret() -> None:
    one = kept(1000.5)
    assert KeptSignIn.read(one.written()) == one
    assert not [secret for secret in one.secrets if secret in repr(one)]
    assert sorted(one.secrets) == ["access-1", "client-secret-1", "refresh-1"]
    assert one.without_tokens().client == CLIENT and one.without_tokens().access_token is None
    for content in (b"", b"[]", b"{}", b'{"url": 5}', b'{"url": "x", "version": 2}'):
        with pytest.raises(ValueError):
            KeptSignIn.read(content)


def refusal(status: int, header: str | None) -> httpx2.Response:
    request = httpx2.Request("POST", URL, headers={"mcp-protocol-version": "2025-11-25"})
    headers = {} if header is None else {"www-authenticate": header}
    return httpx2.Response(status, headers=headers, request=request)


def test_a_refusal_says_what_is_wanted() -> None:
    said = challenge_in(refusal(401, 'Bearer resource_metadata="https://mcp.example/meta", scope="a b"'))
    assert said == Challenge(401, "a b", "https://mcp.example/meta", {"mcp-protocol-version": "2025-11-25"})
    assert challenge_in(refusal(401, None)) == Challenge(401, request_headers={"mcp-protocol-version": "2025-11-25"})
    more = challenge_in(refusal(403, 'Bearer error="insufficient_scope", scope="c"'))
    assert more is not None and more.is_step_up and more.scope == "c"
    assert challenge_in(refusal(403, "Bearer error=forbidden")) is None
    assert challenge_in(refusal(200, 'Bearer scope="a"')) is None


def test_scopes_of_the_config_replace_those_of_the_server_and_a_step_up_adds_to_them() -> None:
    request = httpx2.Request("POST", URL)
    first = Challenge(401, "server").response(request, ["mine", "too"])
    assert first.headers["www-authenticate"] == 'Bearer scope="mine too"'
    more = Challenge(403, "server mine").response(request, ["mine", "too"])
    assert more.headers["www-authenticate"] == 'Bearer error="insufficient_scope", scope="mine too server"'
    assert "www-authenticate" not in Challenge(401).response(request).headers


def test_the_address_that_a_browser_ended_up_at() -> None:
    found = came_back(" http://127.0.0.1:1/callback?code=abc&state=s1&iss=https%3A%2F%2Fissuer.example ", "s1")
    assert (found.code, found.issuer, found.error) == ("abc", "https://issuer.example", None)
    assert "abc" not in repr(found)
    assert came_back("?error=access_denied&state=s1", "s1").error == "access_denied"
    with pytest.raises(RedirectError, match="another sign-in"):
        came_back("http://127.0.0.1:1/callback?code=abc&state=other", "s1")
    for address in ("", "http://127.0.0.1:1/", "https://issuer.example/login", "http://[", "x" * 100_000):
        with pytest.raises(RedirectError, match="not the address"):
            came_back(address, "s1")
    with pytest.raises(RedirectError):
        came_back("?code=a&state=s1&state=s2", "s1")
