"""The requests of a sign-in to a server and its issuer. Every answer has a limit of size and a deadline."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from a2c_smcp.errors import BadRequestError, ConnectionLostError, UnauthorizedError
from a2c_smcp.oidc.metadata import IssuerFetchError, checked_url, fetch_metadata, new_http_client, read_json
from a2c_smcp.oidc.sign_in import SIGN_IN_PATH
from a2c_smcp.utils.text import printable

__all__ = [
    "DEVICE_GRANT",
    "IssuerRefusalError",
    "SignInPlace",
    "ask_issuer",
    "check_resource",
    "find_place",
    "register",
    "renewed",
]

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
_CLIENT_NAME: Final = "a2c"


class IssuerRefusalError(UnauthorizedError):
    """The issuer refuses a request; `error` is its code for the reason (RFC 6749, 5.2)."""

    def __init__(self, error: str, description: str = "") -> None:
        said = printable(f"{error}: {description}" if description else error)[:300]
        super().__init__(f"the issuer refuses: {said}")
        self.error = error


@dataclass(frozen=True, slots=True)
class SignInPlace:
    """Where somebody signs in for one server."""

    issuer: str
    resource: str
    metadata: Mapping[str, Any]
    client_id: str | None
    scopes: tuple[str, ...]

    def endpoint(self, name: str) -> str | None:
        """An address of the issuer's, if it has one. Raises `BadRequestError` if it is not safe to use."""
        found = self.metadata.get(name)
        return checked_url(found, name) if isinstance(found, str) else None

    def required(self, name: str) -> str:
        if (found := self.endpoint(name)) is None:
            raise BadRequestError(f"the issuer {self.issuer} has no {name}: this way to sign in does not work there")
        return found

    @property
    def asked(self) -> dict[str, str]:
        """The fields of every request for tokens that say which server they are for, and what is wanted."""
        scope = {"scope": " ".join(self.scopes)} if self.scopes else {}
        # RFC 8707 wants a URI. Auth0 calls it an audience.
        is_uri = bool(urlsplit(self.resource).scheme)
        return {**scope, **({"resource": self.resource, "audience": self.resource} if is_uri else {})}


async def find_place(url: str, tls: ssl.SSLContext | None = None, audience: str | None = None) -> SignInPlace:
    """Ask a server whose tokens it takes, and that issuer for its addresses. Raises `SMCPError`.

    `audience` is the name that the tokens are for, if the person gave one.
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
    check_resource(said["resource"], about, audience)
    try:
        async with new_http_client() as client:
            metadata = await fetch_metadata(client, issuer)
    except IssuerFetchError as error:
        raise ConnectionLostError(f"the issuer does not answer: {error}") from None
    client_id = said.get("a2c_client_id")
    return SignInPlace(
        issuer, said["resource"], metadata, client_id if isinstance(client_id, str) else None, _scopes(said, metadata)
    )


def check_resource(resource: str, url: str, audience: str | None) -> None:
    """Raise `BadRequestError` if a server at `url` wants tokens for another server (RFC 9728, 3.3): it could use them
    there. If a person names the `audience`, the tokens must be for that one.
    """
    if audience is not None:
        if resource != audience:
            raise BadRequestError(f"this server wants tokens for {printable(resource)[:300]}, not for {audience}")
    elif (place := _origin(resource))[0] in ("http", "https") and place != _origin(url):
        raise BadRequestError(
            f"this server wants tokens for another server, {printable(resource)[:300]}, and could use them there; if"
            " you trust it with such tokens, give that name with --audience"
        )


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        raise BadRequestError("the server names a resource that is not a URL") from None


def _scopes(said: Mapping[str, Any], metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """What to ask for: what the server names, and what is needed to know the person and to renew the token."""
    named, known = said.get("scopes_supported"), metadata.get("scopes_supported")
    usual = ("openid", "profile", "email", "offline_access")
    wanted = [each for each in usual if not isinstance(known, list) or each in known]
    more = [each for each in named if isinstance(each, str)] if isinstance(named, list) else []
    return tuple(dict.fromkeys([*wanted, *more]))


async def ask_issuer(url: str, form: Mapping[str, str]) -> dict[str, Any]:
    """Send a form to the issuer. Raises `IssuerRefusalError`, or `ConnectionLostError`."""
    status, said = await _post(url, data=dict(form))
    if status >= 500:
        raise ConnectionLostError(f"the issuer answers with status {status}")
    if status >= 400 or "error" in said:
        raise _refusal(status, said)
    return said


async def _post(url: str, **body: Any) -> tuple[int, dict[str, Any]]:
    """The status and the JSON object of the issuer's answer. `body` is an argument of the HTTP client, such as `json`.
    Raises `ConnectionLostError`.
    """
    try:
        async with new_http_client() as client:
            return await read_json(client, client.build_request("POST", url, **body))
    except IssuerFetchError as error:
        raise ConnectionLostError(f"the issuer does not answer: {error}") from None


def _refusal(status: int, said: Mapping[str, Any]) -> IssuerRefusalError:
    return IssuerRefusalError(str(said.get("error", status)), str(said.get("error_description", "")))


async def register(place: SignInPlace, redirect_uri: str) -> str:
    """The id of a client that may ask this issuer: the one that the server names, or a new one (RFC 7591)."""
    if place.client_id is not None:
        return place.client_id
    if (url := place.endpoint("registration_endpoint")) is None:
        raise BadRequestError(
            f"{place.issuer} registers no clients by itself: register one there, and give its id with --client-id, or "
            "start the server with --oidc-client-id"
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
    status, said = await _post(url, json=wanted)
    if status not in (200, 201) or not isinstance(said.get("client_id"), str):
        raise _refusal(status, said)
    return str(said["client_id"])


async def renewed(token_endpoint: str, client_id: str, refresh_token: str, resource: str) -> dict[str, Any]:
    """Ask the issuer for new tokens with a refresh token, and return its answer. Raises what `ask_issuer` raises."""
    form = {"grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token}
    if urlsplit(resource).scheme:
        form["resource"] = resource
    return await ask_issuer(checked_url(token_endpoint, "token_endpoint"), form)
