"""mcp's OAuth client, run beside the requests of a session: discovery, registration, authorization and refreshing.

mcp's `OAuthClientProvider` is an `httpx2.Auth` that holds a lock from a request until its response. Here its flow gets
the refusal of a request that was sent before, and its own requests go through `GuardedRequests`.
"""

import logging
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import parse_qsl, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import (
    JWT_BEARER_GRANT_TYPE,
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, ValidationError

from a2c_smcp.computer.mcp_clients.model import OAuthParameters
from a2c_smcp.computer.sign_in.assertions import assertion_in, check_audience, check_issuer, exchange_request
from a2c_smcp.computer.sign_in.challenges import Challenge
from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.oidc.guarded_requests import GuardedRequests
from a2c_smcp.oidc.sign_in_errors import IssuerSilentError, SignInError
from a2c_smcp.utils.distribution import DISTRIBUTION

__all__ = ["SigningPerson", "has_metadata", "refresh", "revoke", "sign_in"]

#: mcp logs failed flows with their tracebacks, in which codes and tokens may stand. The error itself says why.
logging.getLogger("mcp.client.auth.oauth2").setLevel(logging.CRITICAL + 1)

Send = Callable[[httpx2.Request], Awaitable[httpx2.Response]]
_VERSION_HEADER: Final = "mcp-protocol-version"
#: Where no person takes part, nobody is sent anywhere.
_NO_REDIRECT: Final = "http://127.0.0.1/callback"
#: The words of an issuer that may give tokens later.
_PASSING: Final = frozenset({"temporarily_unavailable", "server_error", "slow_down"})


@dataclass(frozen=True, slots=True)
class SigningPerson:
    """How a person takes part in a sign-in."""

    redirect_uri: str
    authorize: Callable[[str], Awaitable[AuthorizationCodeResult]]
    """Called with the address at the issuer. Returns what came back from there."""


class _Kept:
    """mcp's `TokenStorage` for one flow: what is kept goes in, and the context of the flow says what came out."""

    def __init__(self, tokens: OAuthToken | None, client: OAuthClientInformationFull | None) -> None:
        self._tokens = tokens
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None: ...

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None: ...


async def refresh(kept: KeptSignIn, oauth: OAuthParameters, send: Send) -> KeptSignIn | None:
    """New tokens for the refresh token; `None` if the issuer refuses it. Raises `IssuerSilentError` for every other
    answer: a proxy or a firewall may have sent it, and the refresh token may still be good.

    The refresh token goes to the issuer that made it, whatever the MCP server says now.
    """
    provider = _provider(kept, oauth, None)
    provider.context.token_expiry_time = 1.0  # expired: then the flow begins with a refresh

    async def checked(request: httpx2.Request) -> httpx2.Response:
        return await _decision(request, send)

    request = httpx2.Request("POST", kept.url, headers={_VERSION_HEADER: "2025-11-25"})
    await _drive(provider, request, None, checked)
    return _outcome(kept, provider) if provider.context.current_tokens is not None else None


async def _decision(request: httpx2.Request, send: Send) -> httpx2.Response:
    response = await send(request)
    if not _is_decision(response):
        raise IssuerSilentError(f"{request.url.host} gives no token now (HTTP {response.status_code})")
    return response


def _is_decision(response: httpx2.Response) -> bool:
    """Whether the issuer itself gives tokens, or refuses them (RFC 6749, 5.2). Some issuers refuse with status 200."""
    if response.status_code not in (200, 400, 401):
        return False
    try:
        said = response.json()
    except (ValueError, RecursionError):
        return False
    if not isinstance(said, dict):
        return False
    error = said.get("error")
    return isinstance(error, str) and error not in _PASSING if "error" in said else "access_token" in said


async def sign_in(
    kept: KeptSignIn, oauth: OAuthParameters, challenge: Challenge, send: Send, person: SigningPerson | None
) -> KeptSignIn:
    """Sign in after a server refused a request. Without a `person`, the machine signs in by itself.

    Raises `SignInError` that says why it failed.
    """
    provider = _provider(kept, oauth, person)
    context = provider.context

    async def checked(request: httpx2.Request) -> httpx2.Response:
        if oauth.client_id is not None and request.method == "POST" and context.client_info is None:
            raise SignInError(
                "the server's issuer is not the one that client_id is registered at; if that is right, correct `issuer`"
                " in its config, or log out first"
            )
        return await send(request)

    request = httpx2.Request("POST", kept.url, headers=challenge.request_headers)
    await _drive(provider, request, challenge.response(request, oauth.scopes), checked)
    if context.current_tokens is None:
        raise SignInError("the issuer gave no token")
    return replace(_outcome(kept, provider), signed_in_at=time.time())


async def revoke(kept: KeptSignIn, oauth: OAuthParameters, send: Send) -> None:
    """Have the issuer withdraw the tokens (RFC 7009), if it can. Raises `SignInError`."""
    endpoint, tokens = (kept.issuer_metadata or {}).get("revocation_endpoint"), kept.tokens or {}
    shown = tokens.get("refresh_token") or tokens.get("access_token")
    if not endpoint or not shown or kept.client is None:
        return
    provider = _personal(kept, oauth, None, None)
    client = provider.context.client_info = _client(kept, oauth, AnyUrl(_NO_REDIRECT), is_signing_in=False)
    assert client is not None
    headers = {"content-type": "application/x-www-form-urlencoded"}
    form, headers = provider.context.prepare_token_auth({"token": shown, "client_id": client.client_id}, headers)
    response = await send(httpx2.Request("POST", str(endpoint), data=form, headers=headers))
    if response.status_code != 200:
        raise SignInError(f"{urlsplit(str(endpoint)).hostname} answers with HTTP {response.status_code}")


async def has_metadata(url: str, challenge: Challenge, send: Send) -> bool:
    """Whether this server says anywhere how to sign in. Raises `IssuerSilentError`."""
    found = False

    async def look(request: httpx2.Request) -> httpx2.Response:
        nonlocal found
        if request.method != "GET":
            raise SignInError("that is enough: the flow has read all metadata that there is")
        response = await send(request)
        with suppress(ValueError, RecursionError):
            found = found or (response.status_code == 200 and isinstance(response.json(), dict))
        return response

    request = httpx2.Request("POST", url, headers=challenge.request_headers)
    provider = _personal(KeptSignIn(url), OAuthParameters(), None, None)
    try:
        await _drive(provider, request, challenge.response(request), look)
    except IssuerSilentError:
        raise
    except SignInError:
        pass
    return found


async def _drive(
    provider: OAuthClientProvider, request: httpx2.Request, refusal: httpx2.Response | None, send: Send
) -> None:
    """Run mcp's flow. `refusal` is the answer to `request`; when the flow sends that request again, it is done."""
    flow = provider.async_auth_flow(request)
    try:
        outgoing = await anext(flow)
        while True:
            if outgoing is not request:
                response = await send(outgoing)
            elif refusal is not None:
                response, refusal = refusal, None
            else:
                return
            outgoing = await flow.asend(response)
    except StopAsyncIteration:
        return
    except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
        raise SignInError(_in_words(error)) from None
    except (ValidationError, ValueError) as error:
        raise SignInError(f"the issuer's answer is not valid ({type(error).__name__})") from None
    finally:
        await flow.aclose()


def _in_words(error: Exception) -> str:
    """mcp's error without the body of an answer: it may quote what was sent."""
    text = str(error)
    if isinstance(error, OAuthTokenError | OAuthRegistrationError):
        text = text.partition(":")[0]
    return "the answer's state does not fit" if "State parameter" in text else text[:300]


def _provider(kept: KeptSignIn, oauth: OAuthParameters, person: SigningPerson | None) -> OAuthClientProvider:
    """mcp's client with all that is kept: its own storage would lose the expiry and the metadata."""
    tokens = None if kept.tokens is None else OAuthToken.model_validate(kept.tokens)
    provider = _machine(kept, oauth, tokens) or _personal(kept, oauth, tokens, person)
    context = provider.context
    if kept.issuer_metadata is not None:
        context.oauth_metadata = OAuthMetadata.model_validate(kept.issuer_metadata)
        context.auth_server_url = kept.issuer or None
    if kept.resource_metadata is not None:
        context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(kept.resource_metadata)
    return provider


def _machine(kept: KeptSignIn, oauth: OAuthParameters, tokens: OAuthToken | None) -> OAuthClientProvider | None:
    if oauth.grant == "authorization_code" or oauth.client_id is None:
        return None
    storage, scope = _Kept(tokens, None), " ".join(oauth.scopes) if oauth.scopes else None
    # Without an issuer in the config, the issuer of the first sign-in is the one that gets the secret.
    issuer = oauth.issuer or kept.issuer or None
    if oauth.private_key is not None:
        signing = SignedJWTParameters(
            issuer=oauth.client_id,
            subject=oauth.client_id,
            signing_key=oauth.private_key,
            signing_algorithm=oauth.key_algorithm,
        )
        with _without_advice():
            return PrivateKeyJWTOAuthProvider(
                kept.url, storage, oauth.client_id, signing.create_assertion_provider(), scope, issuer
            )
    with _without_advice():
        if oauth.grant == "jwt_bearer":
            return _AssertionProvider(oauth, kept.url, storage, scope, issuer)
        return ClientCredentialsOAuthProvider(
            kept.url, storage, oauth.client_id, oauth.client_secret or "", "client_secret_basic", scope, issuer
        )


class _AssertionProvider(ClientCredentialsOAuthProvider):
    """Asks the issuer for a token as a machine does, with an assertion as the grant (RFC 7523, section 2.1).

    mcp's own provider for this grant wants a client secret, which a workload does not have.
    """

    def __init__(self, oauth: OAuthParameters, url: str, storage: _Kept, scope: str | None, issuer: str | None) -> None:
        assert oauth.client_id is not None
        super().__init__(url, storage, oauth.client_id, oauth.client_secret or "", scope=scope, issuer=issuer)
        self._oauth = oauth

    async def _perform_authorization(self) -> httpx2.Request:
        oauth = self._oauth
        _choose_method(self, oauth)
        request = await super()._perform_authorization()  # raises if the issuer is another one than it must be
        metadata, form = self.context.oauth_metadata, dict(parse_qsl(request.content.decode()))
        if metadata is None:
            raise SignInError("the server names no issuer that the assertion could be for")
        issuer, assertion = oauth.issuer or str(metadata.issuer), oauth.assertion
        check_issuer(issuer)
        if assertion is None:
            asked = exchange_request(oauth, issuer, self.context.get_resource_url(), form.get("scope"))
            # The config names the identity provider, so it may be nearer to this computer than the MCP server is.
            assertion = assertion_in(await _decision(asked, GuardedRequests(str(asked.url)).send))
        if oauth.issuer is None:
            check_audience(assertion, issuer)
        form |= {"grant_type": JWT_BEARER_GRANT_TYPE, "assertion": assertion}
        if oauth.client_id is not None and oauth.client_secret is None:
            form["client_id"] = oauth.client_id
        authorization = request.headers.get("authorization")
        headers = None if authorization is None else {"authorization": authorization}
        return httpx2.Request("POST", request.url, data=form, headers=headers)


@contextmanager
def _without_advice() -> Iterator[None]:
    """mcp advises to name an issuer. Our config advises the same, and works without."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def _personal(
    kept: KeptSignIn, oauth: OAuthParameters, tokens: OAuthToken | None, person: SigningPerson | None
) -> OAuthClientProvider:
    uri = AnyUrl(person.redirect_uri if person is not None else _NO_REDIRECT)
    came: list[AuthorizationCodeResult] = []

    async def redirect(url: str) -> None:
        if person is None:
            raise SignInError("a person has to sign in")
        _choose_method(provider, oauth)
        came.append(await person.authorize(url))

    async def callback() -> AuthorizationCodeResult:
        return came[0]

    metadata = OAuthClientMetadata(
        redirect_uris=[uri],
        client_name=DISTRIBUTION,
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
    )
    provider = OAuthClientProvider(
        kept.url,
        metadata,
        _Kept(tokens, _client(kept, oauth, uri, is_signing_in=person is not None)),
        redirect,
        callback,
        client_metadata_url=oauth.client_metadata_url,
    )
    return provider


def _client(
    kept: KeptSignIn, oauth: OAuthParameters, uri: AnyUrl, *, is_signing_in: bool
) -> OAuthClientInformationFull | None:
    """The client to sign in as; `None` if it has to be registered."""
    known = None if kept.client is None else OAuthClientInformationFull.model_validate(kept.client)
    if oauth.client_id is not None:
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=oauth.client_secret,
            redirect_uris=[uri],
            token_endpoint_auth_method=known.token_endpoint_auth_method if known else None,
            issuer=oauth.issuer or kept.issuer or None,
        )
    if known is None or known.client_id == oauth.client_metadata_url or not is_signing_in:
        return known
    # Some issuers compare the port of the redirect, too.
    return known if uri in (known.redirect_uris or []) else None


def _choose_method(provider: OAuthClientProvider, oauth: OAuthParameters) -> None:
    """How a client from the config authenticates itself: in a way that the issuer knows."""
    context = provider.context
    if oauth.client_id is None or context.client_info is None:
        return
    metadata = context.oauth_metadata
    known = (metadata.token_endpoint_auth_methods_supported if metadata else None) or ["client_secret_basic"]
    if oauth.client_secret is None:
        context.client_info.token_endpoint_auth_method = "none"
    else:
        is_basic = "client_secret_basic" in known or "client_secret_post" not in known
        context.client_info.token_endpoint_auth_method = "client_secret_basic" if is_basic else "client_secret_post"


def _outcome(kept: KeptSignIn, provider: OAuthClientProvider) -> KeptSignIn:
    """What is to be kept of a flow that gave a token."""
    context = provider.context
    tokens, metadata, resource = (
        context.current_tokens,
        context.oauth_metadata,
        context.protected_resource_metadata,
    )
    assert tokens is not None
    lifetime = None if tokens.expires_in is None else float(tokens.expires_in)
    return KeptSignIn(
        kept.url,
        str(metadata.issuer) if metadata is not None else kept.issuer,
        tokens.model_dump(mode="json", exclude_none=True),
        None if lifetime is None else time.time() + lifetime,
        lifetime,
        None if context.client_info is None else context.client_info.model_dump(mode="json", exclude_none=True),
        None if metadata is None else metadata.model_dump(mode="json", exclude_none=True),
        None if resource is None else resource.model_dump(mode="json", exclude_none=True),
        kept.signed_in_at,
    )
