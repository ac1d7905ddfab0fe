"""A hostile server that people sign in at: no token of theirs opens another server, and their machine asks
nobody near it.
"""

import asyncio
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from a2c_smcp.errors import SMCPError
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.link.server_link import ServerLink
from tests.attack.harness import honest_pair, target
from tests.login.test_login import Person
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer

__all__ = ["running_issuer"]

pytestmark = needs_issuer
#: No URL: nobody sees from it which server it is for.
HONEST = "api://office"
_CLOUD = "http://169.254.169.254/latest"


class Hostile:
    """Says what `metadata` says, and writes down what is sent to it. Below `/issuer` it is an issuer of its own."""

    def __init__(self) -> None:
        self.metadata: dict[str, Any] = {}
        self.issuer_metadata: dict[str, Any] = {}
        self.heard: list[str] = []
        self.url = ""

    def answer(self, path: str, head: str) -> dict[str, Any] | None:
        self.heard.append(f"{path}\n{head}")
        if path.endswith("oauth-protected-resource"):
            return self.metadata
        if path == "/issuer/.well-known/openid-configuration":
            return {"issuer": f"{self.url}/issuer", **self.issuer_metadata}
        if path == "/issuer/reg":
            return {"client_id": "c"}
        if path == "/issuer/device/auth":
            page = f"{self.url}/issuer/device"
            return {"device_code": "d", "user_code": "u", "verification_uri": page, **self.issuer_metadata.get("d", {})}
        return None


@contextmanager
def hostile() -> Iterator[Hostile]:
    made = Hostile()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            said = made.answer(self.path.partition("?")[0], f"{self.path}\n{self.headers}")
            body = json.dumps(said or {}).encode()
            self.send_response(404 if said is None else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.do_GET()

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield made
        finally:
            server.shutdown()


def opens(url: str, token: str) -> bool:
    """Whether a token opens a server."""

    async def opened() -> bool:
        try:
            async with ServerLink(LinkOptions(url, api_key=token, reconnect=False), {}, lambda _: None):
                return True
        except SMCPError:
            return False

    return asyncio.run(opened())


def signs_in(person: Person, issuer: Issuer, *options: str) -> tuple[int | None, str, str]:
    """The person does whatever the command asks for. Returns its status and what it said."""
    try:
        with person.begins("login", "--way", "device", *options) as (process, address):
            issuer.sign_in(address)
            said, problems = process.communicate(timeout=60)
            return process.returncode, said, problems
    except AssertionError:  # it asks for nothing
        said_at_once = person.types("login", "--way", "device", *options)
        return said_at_once.returncode, said_at_once.stdout, said_at_once.stderr


def test_the_token_of_an_honest_server_goes_to_no_other(running_issuer: Issuer, tmp_path: Path) -> None:
    """A hostile server names the issuer and the audience of an honest one, then uses the token there."""
    os.environ.pop("A2C_API_KEY", None)
    oidc = ["--oidc", running_issuer.url, "--oidc-audience", HONEST]
    with target(tmp_path, "async", *oidc, api_key="k") as honest, honest_pair(honest) as pair, hostile() as evil:
        evil.metadata = {"resource": HONEST, "authorization_servers": [running_issuer.url]}
        agreed = ["--issuer", running_issuer.url, "--audience", HONEST]
        ada = Person(tmp_path / "ada", honest.url)

        def attack() -> None:
            asked = running_issuer.hits("/device/auth")
            status, _, problems = signs_in(Person(tmp_path / "victim", evil.url), running_issuer)
            stolen = [word for each in evil.heard for word in each.split() if word.count(".") == 2 and len(word) > 100]
            assert not any(opens(honest.url, each) for each in stolen)
            assert status == 1 and "--issuer and --audience" in problems and HONEST in problems
            assert running_issuer.hits("/device/auth") == asked
            # At the honest server the same options do what they say, and its token is for nobody else.
            assert signs_in(ada, running_issuer, *agreed)[0] == 0
            here = Person(tmp_path / "ada", evil.url)
            assert here.types("whoami").returncode == 1
            assert here.types("agent", "room", "--office", "lab", "--name", "ada").returncode != 0

        # Processes that start take a core each: what counts is that nobody is harmed.
        phase = pair.watch(attack, pause=0.05)
        assert not phase.failures and not phase.departures
        assert ada.types("agent", "room", "--office", "lab", "--name", "ada").returncode == 0
        kept = ada.file.load()
        assert kept is not None and not any(kept.token in each for each in evil.heard)


def test_a_token_for_another_audience_than_was_agreed_to_is_not_sent(running_issuer: Issuer, tmp_path: Path) -> None:
    """The person agrees to the hostile server's own audience. But the issuer knows one audience only."""
    running_issuer.change(audience=HONEST)
    try:
        with hostile() as evil:
            evil.metadata = {"resource": evil.url, "authorization_servers": [running_issuer.url]}
            victim = Person(tmp_path, evil.url)
            agreed = ["--issuer", running_issuer.url, "--audience", evil.url]
            status, _, problems = signs_in(victim, running_issuer, *agreed)
            assert (status, "the server gets none" in problems) == (1, True)
            assert not any("socket.io" in each for each in evil.heard)
            assert not victim.file.exists
    finally:
        running_issuer.change(audience=None)


def test_a_server_that_changes_what_it_wants_is_asked_about_again(running_issuer: Issuer, tmp_path: Path) -> None:
    oidc = ["--oidc", running_issuer.url, "--oidc-audience", HONEST]
    with target(tmp_path, "async", *oidc) as server:
        person = Person(tmp_path, server.url)
        agreed = ["--issuer", running_issuer.url, "--audience", HONEST]
        assert signs_in(person, running_issuer, *agreed)[0] == 0
        assert signs_in(person, running_issuer)[0] == 0  # the same is agreed to already
        kept = person.file.load()
        assert kept is not None
    for change in (["--oidc-audience", "api://bank"], ["--oidc-client-id", "bank"], ["--oidc-scope", "admin"]):
        # The last of several audiences does not count here, so it is named alone.
        options = ["--oidc", running_issuer.url, *change, *([] if "audience" in change[0] else oidc[2:])]
        with target(tmp_path, "async", *options, "--port", server.url.rpartition(":")[2]):
            said = person.types("login", "--way", "device")
        assert said.returncode == 1 and "Nobody has confirmed this" in said.stderr and change[1] in said.stderr


@pytest.mark.parametrize(
    "near",
    [
        *("issuer", "token_endpoint", "registration_endpoint", "device_authorization_endpoint", "page"),
        *("whole page", "authorization_endpoint"),
    ],
)
def test_a_server_sends_a_person_to_nothing_nearer_than_itself(
    near: str, running_issuer: Issuer, tmp_path: Path
) -> None:
    """The metadata service of a cloud is nearer than a server, also than one on this machine."""
    cloud = _CLOUD.replace("http:", "https:")
    with hostile() as evil:
        places = {
            "token_endpoint": f"{evil.url}/issuer/token",
            "registration_endpoint": f"{evil.url}/issuer/reg",
            "device_authorization_endpoint": f"{evil.url}/issuer/device/auth",
            "authorization_endpoint": f"{evil.url}/issuer/auth",
        }
        evil.issuer_metadata = {**places, **({near: cloud} if near in places else {})}
        if near == "page":
            evil.issuer_metadata["d"] = {"verification_uri": f"{cloud}/device", "interval": 1}
        if near == "whole page":
            evil.issuer_metadata["d"] = {"verification_uri_complete": f"{cloud}/device?user_code=u", "interval": 1}
        issuer = cloud if near == "issuer" else f"{evil.url}/issuer"
        evil.metadata = {"resource": evil.url, "authorization_servers": [issuer]}
        person = Person(tmp_path, evil.url)
        way = "browser" if near == "authorization_endpoint" else "device"
        agreed = ["--issuer", issuer, "--audience", evil.url, "--way", way]
        if near == "token_endpoint":
            # Otherwise it would be asked only after a while.
            evil.issuer_metadata["d"] = {"interval": 1, "expires_in": 20}
        said = person.types("login", *agreed)
        assert said.returncode == 1
        assert "169.254.169.254, which is nearer to this computer than the server itself" in said.stderr
        assert "open http" not in said.stderr or near in ("token_endpoint", "whole page")


def test_a_sign_in_is_not_led_to_the_local_network(tmp_path: Path) -> None:
    """What only a server on the internet shows: a server here may name everything here."""
    from a2c_smcp.errors import BadRequestError
    from a2c_smcp.login.issuer_requests import IssuerRequests

    async def asked(address: str) -> None:
        requests = IssuerRequests("https://93.184.216.34")
        with pytest.raises(BadRequestError, match="nearer"):
            await requests.check(address, "verification_uri")
        with pytest.raises(BadRequestError, match="nearer"):
            await requests.get(address)
        with pytest.raises(BadRequestError, match="nearer"):
            await requests.post(address, data={})

    for place in ("https://127.0.0.1:1", "https://10.0.0.1", "https://[::1]:1", "https://localhost:1"):
        asyncio.run(asked(place))


def test_the_issuer_of_these_tests_takes_what_is_no_url(running_issuer: Issuer) -> None:
    """Otherwise the first test would show nothing: the issuer must give tokens for such an audience."""
    running_issuer.add_machine()
    token = running_issuer.token(HONEST)
    assert httpx2.get(f"{running_issuer.url}/.well-known/openid-configuration").status_code == 200
    assert token.count(".") == 2
