"""People sign in at a server with a real issuer: by a code, by a browser, and then every command has their token."""

import asyncio
import contextlib
import dataclasses
import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pexpect
import pytest

from a2c_smcp.computer.cli.session import link_to
from a2c_smcp.errors import BadRequestError, UnauthorizedError
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.login.fresh_tokens import LoginToken, login_for
from a2c_smcp.login.issuer_requests import check_resource
from a2c_smcp.login.kept_login import KeptLogin
from a2c_smcp.login.login_files import LoginFile
from a2c_smcp.oidc.token_rules import TokenRules
from a2c_smcp.server import Limits
from a2c_smcp.server.token_auth import OidcAuthentication
from tests.forked import A2C, shared
from tests.oidc.forging import AUDIENCE
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer
from tests.server.harness import Running, async_server

__all__ = ["running_issuer"]

pytestmark = [needs_issuer, pytest.mark.anyio]


@pytest.fixture(scope="module")
def server(running_issuer: Issuer) -> Iterator[Running]:
    rules = TokenRules.model_validate({"leeway": 0, "allow": [{"when": {"groups": "staff"}}]})
    auth = OidcAuthentication(running_issuer.url, AUDIENCE, rules=rules, scopes=["office"])
    with async_server(auth, Limits(wrong_keys=None)) as running:
        yield running


@dataclasses.dataclass
class Person:
    """Somebody with a home, who types commands."""

    home: Path
    url: str
    issuer: str = ""

    @property
    def agreed(self) -> tuple[str, ...]:
        """The options for all that the server names."""
        return ("--issuer", self.issuer, "--audience", AUDIENCE, "--scope", "office")

    @property
    def env(self) -> dict[str, str]:
        clean = {key: value for key, value in os.environ.items() if not key.startswith("A2C_") and key != "DISPLAY"}
        place = {"XDG_STATE_HOME": str(self.home), "XDG_RUNTIME_DIR": str(self.home / "run")}
        return {**clean, **place, "A2C_URL": self.url, "BROWSER": "true", "COLUMNS": "300"}

    @property
    def file(self) -> LoginFile:
        return LoginFile(self.home / "a2c-smcp" / "logins", self.url)

    def types(self, *words: str) -> "subprocess.CompletedProcess[str]":
        return shared().run_text(*words, env=self.env)

    @contextlib.contextmanager
    def begins(self, *words: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
        """A command that asks the person to open an address."""
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([A2C, *words], text=True, env=self.env, **pipes)  # type: ignore[call-overload]
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r"open (\S+(?:user_code|response_type)=\S+)", line):
                    yield process, found[1]
                    return
            raise AssertionError("it asks nothing")
        finally:
            process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def ada(server: Running, running_issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Person:
    """Has signed in with a code."""
    person = Person(tmp_path_factory.mktemp("ada"), server.url, running_issuer.url)
    with person.begins("login", *person.agreed, "--way", "device") as (process, address):
        running_issuer.sign_in(address)
        said, problems = process.communicate(timeout=60)
    assert (process.returncode, problems) == (0, "")
    assert "as ada@example.com" in said
    return person


def test_every_command_has_the_token(ada: Person) -> None:
    told = json.loads(ada.types("whoami", "--json").stdout)
    assert (told["signed_in"], told["name"], told["renews"]) == (True, "ada@example.com", True)
    room = ada.types("agent", "room", "--office", "lab", "--name", "ada")
    assert (room.returncode, room.stderr) == (0, "")
    assert "ada" in room.stdout
    assert stat.S_IMODE(ada.file.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(ada.file.path.parent.stat().st_mode) == 0o700


def test_a_sign_in_for_another_server_needs_its_name(server: Running, tmp_path: Path) -> None:
    refused = Person(tmp_path, server.url).types("login")
    assert refused.returncode == 1
    assert "--audience" in refused.stderr
    assert AUDIENCE in refused.stderr


def test_a_person_at_a_terminal_sees_all_of_it_and_is_asked_once(
    server: Running, running_issuer: Issuer, tmp_path: Path
) -> None:
    person = Person(tmp_path, server.url, running_issuer.url)

    def asked(answer: str) -> "pexpect.spawn[str]":
        it = pexpect.spawn(A2C, ["login", "--way", "device"], env=person.env, encoding="utf-8", timeout=60)
        it.expect(r"\[y/N\]")
        said = it.before or ""
        for each in (f"server    {person.url}", running_issuer.url, AUDIENCE, "a new one", "offline_access office"):
            assert each in said
        assert "another address than the server's" in said
        it.sendline(answer)
        return it

    refused = asked("")
    refused.expect("you did not agree")
    refused.expect(pexpect.EOF)
    assert refused.wait() == 1
    agreed = asked("yes")
    agreed.expect(r"or open (\S+)")
    assert agreed.match is not None and not isinstance(agreed.match, type)
    running_issuer.sign_in(agreed.match[1])
    agreed.expect("signed in at")
    agreed.expect(pexpect.EOF)
    assert agreed.wait() == 0
    # The same once more needs no yes, also where nobody could give one.
    with person.begins("login", "--way", "device") as (process, address):
        running_issuer.sign_in(address)
        assert process.wait(60) == 0


def test_what_is_given_must_be_what_the_server_names(server: Running, running_issuer: Issuer, tmp_path: Path) -> None:
    person = Person(tmp_path, server.url, running_issuer.url)
    for options, why in {
        ("--issuer", "https://login.example"): "takes tokens of",
        ("--audience", "https://bank.example"): "not for https://bank.example",
        ("--scope", "read"): "more scopes than you gave: office",
    }.items():
        said = person.types("login", *options)
        assert (said.returncode, why in said.stderr) == (1, True), said.stderr
    said = person.types("login", "--issuer", running_issuer.url)
    assert "with --audience and --scope" in said.stderr


def test_a_login_of_an_earlier_release_is_not_used_and_a_sentence_says_so(ada: Person, tmp_path: Path) -> None:
    person, kept = Person(tmp_path, ada.url), ada.file.load()
    assert kept is not None
    person.file.save(kept)
    old = json.loads(person.file.path.read_text())
    del old["scope"]
    person.file.path.write_text(json.dumps(old))
    for command in (["whoami"], ["agent", "room", "--office", "lab", "--name", "ada"]):
        said = person.types(*command)
        assert said.returncode == 3
        assert "from an earlier release" in said.stderr and f"a2c login --url {person.url}" in said.stderr


def test_a_stranger_is_told_to_sign_in(server: Running, tmp_path: Path) -> None:
    eve = Person(tmp_path, server.url)
    assert eve.types("whoami").returncode == 1
    refused = eve.types("agent", "room", "--office", "lab")
    assert refused.returncode == 3
    assert "a2c login" in refused.stderr
    assert eve.types("logout").returncode == 0


async def test_one_refresh_for_many_that_need_a_token(ada: Person, running_issuer: Issuer) -> None:
    kept = ada.file.load()
    assert kept is not None
    ada.file.save(dataclasses.replace(kept, expires_at=0.0))
    asked = running_issuer.hits("/token")
    # Each has a lock of its own, as processes have.
    tokens = await asyncio.gather(*(LoginToken(LoginFile(ada.file.path.parent, ada.url))() for _ in range(8)))
    script = "import asyncio; from a2c_smcp.login.fresh_tokens import login_for as f; print(asyncio.run(f('%s')()))"
    command: list[str] = [sys.executable, "-c", script % ada.url]
    other = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, env=ada.env, timeout=60)
    assert {*tokens, other.stdout.strip()} == {tokens[0]}
    assert running_issuer.hits("/token") == asked + 1
    assert tokens[0] != kept.token
    renewed = ada.file.load()
    assert renewed is not None
    assert renewed.refresh_token != kept.refresh_token


async def test_a_renewal_is_kept_though_nobody_waits_for_it(ada: Person, running_issuer: Issuer) -> None:
    kept = ada.file.load()
    assert kept is not None
    ada.file.save(dataclasses.replace(kept, expires_at=0.0))
    asked = running_issuer.hits("/token")
    async with ada.file.locked():
        waiting = asyncio.create_task(LoginToken(LoginFile(ada.file.path.parent, ada.url))())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert running_issuer.hits("/token") == asked + 1
    renewed = ada.file.load()
    assert renewed is not None
    assert renewed.refresh_token != kept.refresh_token


@pytest.mark.parametrize(
    ("resource", "audience", "counts"),
    [
        ("https://office.example:443/smcp", None, True),
        ("the office", None, True),
        ("https://bank.example", None, False),
        ("http://office.example", None, False),
        ("https://office.example:8443", None, False),
        ("https://bank.example", "https://bank.example", True),
        ("https://bank.example", "https://shop.example", False),
        ("https://[bank", None, False),
    ],
)
def test_a_server_gets_no_token_that_is_for_another_one(resource: str, audience: str | None, counts: bool) -> None:
    with contextlib.nullcontext() if counts else pytest.raises(BadRequestError):
        check_resource(resource, "https://office.example/a2c", audience)


async def test_a_browser_on_this_machine(server: Running, running_issuer: Issuer, tmp_path: Path) -> None:
    person = Person(tmp_path, server.url, running_issuer.url)
    with person.begins("login", *person.agreed, "--way", "browser") as (process, address):
        back = await asyncio.to_thread(running_issuer.sign_in, address)
        async with httpx2.AsyncClient() as browser:
            # Any page may send a request to that port.
            assert (await browser.get(re.sub(r"state=[^&]+", "state=guess", back))).status_code == 404
            assert "signed in" in (await browser.get(back)).text
        said, _ = await asyncio.to_thread(process.communicate, timeout=60)
    assert process.returncode == 0
    assert "as ada@example.com" in said
    kept = person.file.load()
    assert kept is not None
    out = await asyncio.to_thread(person.types, "logout")
    assert (out.returncode, out.stderr) == (0, "")
    assert not person.file.exists
    form = {"grant_type": "refresh_token", "client_id": kept.client_id, "refresh_token": kept.refresh_token}
    async with httpx2.AsyncClient() as client:
        assert (await client.post(kept.token_endpoint, data=form)).status_code == 400


def test_a_person_who_refuses_and_one_who_may_not(server: Running, running_issuer: Issuer, tmp_path: Path) -> None:
    person = Person(tmp_path, server.url, running_issuer.url)
    running_issuer.change(auto=False)
    try:
        with person.begins("login", *person.agreed, "--way", "device") as (process, address):
            running_issuer.sign_in(address, refuse=True)
            _, problems = process.communicate(timeout=60)
        assert (process.returncode, "access_denied" in problems) == (3, True)
        with person.begins("login", *person.agreed, "--way", "browser") as (process, address):
            httpx2.get(running_issuer.sign_in(address, account="eve"))
            _, problems = process.communicate(timeout=60)
        assert process.returncode == 1
        assert "no rule of this server lets eve@example.com in" in problems
        assert not person.file.exists  # a login that is refused replaces none
    finally:
        running_issuer.change(auto=True)


async def test_what_the_issuer_has_withdrawn_means_a_new_sign_in(ada: Person, tmp_path: Path) -> None:
    person, kept = Person(tmp_path, ada.url), ada.file.load()
    assert kept is not None
    person.file.save(dataclasses.replace(kept, expires_at=0.0, refresh_token="nothing-worth"))
    with pytest.raises(UnauthorizedError, match="a2c login --url"):
        await LoginToken(person.file)()
    said = await asyncio.to_thread(person.types, "whoami")
    assert (said.returncode, "sign in again" in said.stderr) == (3, True)
    assert "nothing-worth" not in said.stderr


def test_a_file_that_others_can_read_or_that_is_of_another_server_is_not_used(tmp_path: Path) -> None:
    file, other = LoginFile(tmp_path, "http://127.0.0.1:1"), LoginFile(tmp_path, "http://127.0.0.1:2/")
    made: dict[str, Any] = {"issuer": "i", "client_id": "c", "token_endpoint": "t", "resource": "r", "token": "a.b.c"}
    made["scope"] = "office"
    file.save(KeptLogin(url=file.url, expires_at=1.0, **made))
    loaded = file.load()
    assert loaded is not None
    assert "a.b.c" not in repr(loaded)
    other.path.write_bytes(file.path.read_bytes())
    other.path.chmod(0o600)
    assert other.load() is None
    file.path.chmod(0o644)
    assert file.load() is None
    other.path.write_text("{}")
    assert other.load() is None


def test_a_login_counts_at_a_server_that_is_named_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    here, there = "http://127.0.0.1:1", "http://127.0.0.1:2"
    file = LoginFile(tmp_path / "a2c-smcp" / "logins", there)
    made: dict[str, Any] = {"issuer": "i", "client_id": "c", "token_endpoint": "t", "resource": "r", "token": "a.b.c"}
    made["scope"] = "office"
    file.save(KeptLogin(url=file.url, expires_at=1.0, **made))
    known = LinkOptions(here, api_key="key")
    assert link_to(known, here, None).api_key == "key"
    assert isinstance(link_to(known, there, None).api_key, LoginToken)
    assert isinstance(link_to(LinkOptions(there), there, None).api_key, LoginToken)
    assert link_to(known, there, "other").api_key == "other"
    assert link_to(known, "http://127.0.0.1:3", None).api_key is None


def test_nobody_signs_in_where_only_keys_count(tmp_path: Path, open_keys_server: Running) -> None:
    person = Person(tmp_path, open_keys_server.url)
    said = person.types("login")
    assert (said.returncode, "keys only" in said.stderr) == (1, True)
    assert login_for(person.url) is None


@pytest.fixture(scope="module")
def open_keys_server() -> Iterator[Running]:
    from a2c_smcp.server import APIKeyAuthentication

    with async_server(APIKeyAuthentication(["k"])) as running:
        yield running
