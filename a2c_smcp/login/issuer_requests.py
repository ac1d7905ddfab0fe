"""The requests of a sign-in to a server and its issuer. Every answer has a limit of size and a deadline.

The issuer's addresses come from the server: they are used only if they are no nearer to this machine than the server.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from a2c_smcp.errors import BadRequestError, ConnectionLostError, UnauthorizedError
from a2c_smcp.link.server_urls import normal_url
from a2c_smcp.login.confirming import USUAL_SCOPES, Combination, GivenSignIn, check_resource, combined
from a2c_smcp.oidc.addresses import UnsafeAddressError
from a2c_smcp.oidc.guarded_requests import GuardedRequests
from a2c_smcp.oidc.metadata import (
    IssuerFetchError,
    checked_url,
    fetch_metadata,
    json_object,
    new_http_client,
    read_json,
)
from a2c_smcp.oidc.sign_in import SIGN_IN_PATH
from a2c_smcp.oidc.sign_in_errors import SignInError
from a2c_smcp.utils.text import printable

__all__ = [
    "DEVICE_GRANT",
    "IssuerRefusalError",
    "IssuerRequests",
    "SignInPlace",
    "check_resource",
    "find_place",
    "register",
]

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_CLIENT_NAME: Final = "a2c"
_NOTHING: Final = GivenSignIn()


class IssuerRefusalError(UnauthorizedError):
    """The issuer refuses a request; `error` is its code for the reason (RFC 6749, 5.2)."""

    def __init__(self, error: str, description: str = "") -> None:
        said = printable(f"{error}: {description}" if description else error)[:300]
        super().__init__(f"the issuer refuses: {said}")
        self.error = error


class IssuerRequests:
    """Requests to the issuer of the server at `server_url`. They raise `ConnectionLostError` if nobody answers, and
    `BadRequestError` for an address that is not used.
    """

    def __init__(self, server_url: str) -> None:
        # What the system or `SSL_CERT_FILE` trusts.
        self._guarded = GuardedRequests(server_url, verify=ssl.create_default_context())

    async def check(self, url: str, what: str) -> str:
        """The URL, if a person may open it. `what` is its name in the error."""
        checked_url(url, what)
        try:
            await self._guarded.check(url)
        except UnsafeAddressError as error:
            raise BadRequestError(str(error)) from None
        return url

    async def get(self, url: str) -> dict[str, Any]:
        """The JSON object at a URL. Raises `IssuerFetchError` besides."""
        status, value = await self._read("GET", url, headers={"Accept": "application/json"})
        if status != 200:
            raise IssuerFetchError(f"{url} answers with status {status}")
        return value

    async def post(self, url: str, **body: Any) -> tuple[int, dict[str, Any]]:
        """The status and the JSON object of the answer. `body` is an argument of the HTTP client, such as `json`."""
        try:
            return await self._read("POST", url, **body)
        except IssuerFetchError as error:
            raise ConnectionLostError(f"the issuer does not answer: {error}") from None

    async def ask(self, url: str, form: Mapping[str, str]) -> dict[str, Any]:
        """Send a form. Raises `IssuerRefusalError` besides."""
        status, said = await self.post(url, data=dict(form))
        if status >= 500:
            raise ConnectionLostError(f"the issuer answers with status {status}")
        if status >= 400 or "error" in said:
            raise _refusal(status, said)
        return said

    async def renewed(self, token_endpoint: str, client_id: str, refresh_token: str, resource: str) -> dict[str, Any]:
        """New tokens for a refresh token. Raises what `ask` raises."""
        form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token}
        if _is_resource(resource):
            form["resource"] = resource
        return await self.ask(checked_url(token_endpoint, "token_endpoint"), form)

    async def _read(self, method: str, address: str, **more: Any) -> tuple[int, dict[str, Any]]:
        try:
            request = httpx2.Request(method, address, **more)
            answer = await self._guarded.send(request)
        except UnsafeAddressError as error:
            raise BadRequestError(str(error)) from None
        except (SignInError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise IssuerFetchError(str(error) or type(error).__name__) from None
        url = request.url
        shown = f"{url.scheme}://{url.netloc.decode('ascii', 'replace').rpartition('@')[2]}{url.path}"
        return answer.status_code, json_object(answer.content, answer.status_code, shown)


@dataclass(frozen=True, slots=True)
class SignInPlace:
    """Where somebody signs in for one server, and with what. Ask for a token only if a person agrees to `wanted`."""

    wanted: Combination
    metadata: Mapping[str, Any]
    requests: IssuerRequests = field(repr=False)

    def endpoint(self, name: str) -> str | None:
        """An address of the issuer's, if it has one. Raises `BadRequestError` if it is not safe to use."""
        found = self.metadata.get(name)
        return checked_url(found, name) if isinstance(found, str) else None

    def required(self, name: str) -> str:
        if (found := self.endpoint(name)) is None:
            raise BadRequestError(
                f"the issuer {self.wanted.issuer} has no {name}: this way to sign in does not work there"
            )
        return found

    @property
    def asked(self) -> dict[str, str]:
        """The fields of every request for tokens that say which server they are for, and what is wanted."""
        scope, resource = {"scope": " ".join(self.wanted.scopes)} if self.wanted.scopes else {}, self.wanted.audience
        # Auth0 calls a resource an audience.
        return {**scope, **({"resource": resource, "audience": resource} if _is_resource(resource) else {})}


def _is_resource(audience: str) -> bool:
    """Whether issuers take it as a resource indicator (RFC 8707, 2): an absolute URI without a fragment."""
    return bool(urlsplit(audience).scheme) and "#" not in audience


async def find_place(url: str, tls: ssl.SSLContext | None = None, given: GivenSignIn = _NOTHING) -> SignInPlace:
    """Ask a server whose tokens it takes, and that issuer for its addresses. Raises `SMCPError`, also if that does not
    fit what a person has given.
    """
    parts = urlsplit(url.replace("ws", "http", 1) if url.startswith("ws") else url)
    about = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path.rstrip('/')}{SIGN_IN_PATH}"
    checked_url(about, "the server's URL")
    try:
        async with new_http_client(verify=tls) as client:
            status, said = await read_json(client, client.build_request("GET", about))
    except IssuerFetchError as error:
        if error.status is None:
            raise ConnectionLostError(str(error)) from None
        status, said = error.status, {}
    servers = said.get("authorization_servers")
    issuer = servers[0] if isinstance(servers, list) and servers else None
    if status != 200 or not isinstance(issuer, str) or not isinstance(said.get("resource"), str):
        raise BadRequestError("nobody can sign in at this server: it takes keys only")
    checked_url(issuer, "the issuer of this server")
    if given.audience is not None:
        check_resource(said["resource"], about, given.audience)
    requests = IssuerRequests(about)
    try:
        metadata = await fetch_metadata(requests.get, issuer)
    except IssuerFetchError as error:
        raise ConnectionLostError(f"the issuer does not answer: {error}") from None
    client_id = said.get("a2c_client_id")
    client_id = client_id if isinstance(client_id, str) and client_id else None
    wanted = combined(normal_url(url), issuer, said["resource"], client_id, _scopes(said, metadata), given)
    return SignInPlace(wanted, metadata, requests)


def _scopes(said: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What to ask for: what the server names, and what is needed to know the person and to renew the token."""
    named, known = said.get("scopes_supported"), metadata.get("scopes_supported")
    wanted = [each for each in USUAL_SCOPES if not isinstance(known, list) or each in known]
    more = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    return tuple(dict.fromkeys([*wanted, *(part for each in more for part in each.split())]))


def _refusal(status: int, said: Mapping[str, Any]) -> IssuerRefusalError:
    return IssuerRefusalError(str(said.get("error", status)), str(said.get("error_description", "")))


async def register(place: SignInPlace, redirect_uri: str) -> str:
    """The id of a client that may ask this issuer: the one that was agreed to, or a new one (RFC 7591)."""
    if place.wanted.client_id is not None:
        return place.wanted.client_id
    if (url := place.endpoint("registration_endpoint")) is None:
        raise BadRequestError(
            f"{place.wanted.issuer} registers no clients by itself: register one there, and give its id with "
            "--client-id, or start the server with --oidc-client-id"
        )
    wanted = {
        "client_name": _CLIENT_NAME,
        "application_type": "native",
        "token_endpoint_auth_method": "none",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token", DEVICE_GRANT],
        "response_types": ["code"],
    }
    if place.endpoint("device_authorization_endpoint") is None:
        wanted["grant_types"] = ["authorization_code", "refresh_token"]
    status, said = await place.requests.post(url, json=wanted)
    if status not in (200, 201) or not isinstance(said.get("client_id"), str):
        raise _refusal(status, said)
    return str(said["client_id"])
