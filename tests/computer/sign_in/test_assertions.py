"""Sign-ins with an assertion: what goes to the identity provider, what to the issuer, and what to nobody."""

from typing import Any

import jwt
import pytest

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.mcp_clients.server_state import ServerState
from a2c_smcp.computer.sign_in.assertions import check_audience, check_issuer
from a2c_smcp.oidc.sign_in_errors import SignInError
from tests.computer.sign_in.fake_service import Answer, FakeService, fake_service

pytestmark = pytest.mark.anyio

_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
_ID_TOKEN = "id-token-0123456789"


def assertion(audience: Any) -> str:
    return jwt.encode({"aud": audience, "sub": "ada"}, "k" * 32, algorithm="HS256")


def exchanging(service: FakeService) -> dict[str, Any]:
    """The service becomes an identity provider. Returns the config that names it."""

    def answer(form: dict[str, str]) -> Answer:
        given = {"access_token": assertion(form["audience"]), "issued_token_type": _ID_JAG, "token_type": "N_A"}
        return Answer(200, given)

    service.token_answer = answer
    return {
        "client_id": "c",
        "grant": "jwt_bearer",
        "id_token": _ID_TOKEN,
        "token_exchange_url": f"{service.url}/token",
    }


def shown(computer: Computer) -> str:
    return repr(computer.get_config()) + repr(computer.snapshot()) + repr(computer.statuses)


async def test_the_id_token_goes_to_the_identity_provider_and_its_assertion_to_the_issuer() -> None:
    async with fake_service() as service, fake_service() as provider:
        service.accepts = lambda token: token == "access-1"
        oauth = {**exchanging(provider), "exchange_client_id": "at-the-provider", "scopes": ["read"]}
        async with Computer("pc", mcp_servers=[service.config(oauth=oauth)]) as computer:
            assert computer.statuses[0].state is ServerState.RUNNING, computer.statuses
            said = shown(computer)
        [asked], [granted] = provider.forms, service.forms
        assert asked["subject_token"] == _ID_TOKEN
        assert asked["requested_token_type"] == _ID_JAG
        assert asked["audience"].removesuffix("/") == service.url
        assert (asked["resource"], asked["client_id"], asked["scope"]) == (
            f"{service.url}/mcp",
            "at-the-provider",
            "read",
        )
        assert granted["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
        assert granted["assertion"] == assertion(asked["audience"])
        assert (granted["client_id"], granted["resource"], granted["scope"]) == ("c", f"{service.url}/mcp", "read")
        assert _ID_TOKEN not in repr(service.forms) + said
        assert granted["assertion"] not in said


@pytest.mark.parametrize("how", ["assertion", "exchange"])
async def test_a_server_that_names_another_issuer_than_the_config_gets_no_assertion(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_service() as hostile, fake_service() as issuer, fake_service() as provider:
        hostile.accepts = lambda token: False
        ready = {"client_id": "c", "grant": "jwt_bearer", "assertion": assertion(issuer.url)}
        oauth = {**(ready if how == "assertion" else exchanging(provider)), "issuer": issuer.url}
        async with Computer("pc", mcp_servers=[hostile.config(oauth=oauth)]) as computer:
            assert computer.statuses[0].state is not ServerState.RUNNING
        assert (hostile.forms, issuer.forms, provider.forms) == ([], [], [])
        assert "issuer mismatch" in caplog.text


async def test_without_an_issuer_in_the_config_an_assertion_for_another_one_stays_here(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with fake_service() as hostile:
        hostile.accepts = lambda token: False
        mine = assertion("https://login.example.com")
        oauth = {"client_id": "c", "client_secret": "s" * 20, "grant": "jwt_bearer", "assertion": mine}
        async with Computer("pc", mcp_servers=[hostile.config(oauth=oauth)]) as computer:
            assert computer.statuses[0].state is not ServerState.RUNNING
            assert mine not in shown(computer)
        assert hostile.forms == []
        assert "does not name an `issuer`" in caplog.text
        assert mine not in caplog.text


@pytest.mark.parametrize(
    "answer",
    [
        Answer(400, {"error": "invalid_grant", "error_description": _ID_TOKEN}),
        Answer(200, {"access_token": "x", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}),
        Answer(200, {"access_token": 7, "issued_token_type": _ID_JAG}),
        Answer(503, b"later"),
        Answer(307, None, "location: http://127.0.0.1:9/token\r\n"),
    ],
    ids=["refused", "other token", "no text", "outage", "redirect"],
)
async def test_what_is_no_assertion_of_the_identity_provider_goes_nowhere(
    answer: Answer, caplog: pytest.LogCaptureFixture
) -> None:
    async with fake_service() as service, fake_service() as provider:
        service.accepts = lambda token: False
        oauth = exchanging(provider)
        provider.token_answer = lambda form: answer
        async with Computer("pc", mcp_servers=[service.config(oauth=oauth)]) as computer:
            assert computer.statuses[0].state is not ServerState.RUNNING
        assert provider.forms
        assert service.forms == []
        assert "127.0.0.1" in caplog.text
        assert _ID_TOKEN not in caplog.text


@pytest.mark.parametrize("audience", ["https://a.example", "https://a.example/", ["https://a.example"]])
def test_an_assertion_for_one_issuer(audience: Any) -> None:
    check_audience(assertion(audience), "https://a.example/")


@pytest.mark.parametrize(
    "audience", [None, [], "https://b.example", ["https://a.example", "https://b.example"], "https://a.example/x", 7]
)
def test_an_assertion_for_others_too_is_not_for_one_issuer(audience: Any) -> None:
    with pytest.raises(SignInError, match="alone"):
        check_audience(assertion(audience), "https://a.example")


def test_an_issuer_has_tls_unless_it_is_on_this_computer() -> None:
    for issuer in ("https://a.example", "http://127.0.0.1:8000", "http://localhost/x"):
        check_issuer(issuer)
    with pytest.raises(SignInError, match=r"a\.example has no TLS"):
        check_issuer("http://a.example")


def test_a_text_that_is_no_jwt_is_no_assertion() -> None:
    with pytest.raises(SignInError, match="not a JWT"):
        check_audience("x.y", "https://a.example")
