"""A person signs in and out at the prompt of `a2c computer run`, with a real issuer."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.computer.cli.console import Console, Line, console
from tests.computer.sign_in.protected import config, protected_server
from tests.oidc.issuer import Issuer, needs_issuer
from tests.oidc.issuer import running_issuer as running_issuer

pytestmark = needs_issuer


@pytest.fixture(scope="module")
def url(running_issuer: Issuer) -> Iterator[str]:
    with protected_server(running_issuer.url) as url:
        yield url


def is_in(state: str) -> Callable[[Line], bool]:
    return lambda line: [each["state"] for each in line["servers"]] == [state]


def kept(folder: Path) -> list[Path]:
    return list((folder / "a2c-smcp" / "sign-in").glob("*.json"))


def test_a_person_pastes_the_address_at_the_prompt_and_signs_out_again(
    url: str, running_issuer: Issuer, tmp_path: Path
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"servers": [config(url)]}))
    with console(
        tmp_path, "--config", str(file), wide=True, PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring"
    ) as it:
        asked = it.line("sign_in_request")
        assert asked["server"] == "guarded" and not asked["step_up"]
        it.says("paste the address")
        it.keys("http://127.0.0.1/callback?code=wrong&state=wrong\r")
        it.says("belongs to another sign-in")
        it.keys("\x04")  # not now
        it.line("server_status", lambda line: "the person said no" in (line["servers"][0]["reason"] or ""))
        signed_in(it, running_issuer)
        assert it.text("echo", "text=hello") == "hello" and len(kept(tmp_path)) == 1
        it.enter("servers logout guarded", "server_status", lambda line: line["all"])
        assert not kept(tmp_path)
        it.keys("servers start guarded\r")
        answer(it, running_issuer)
        assert len(kept(tmp_path)) == 1
        it.enter("servers remove guarded --logout yes", "server_status", lambda line: line["servers"] == [])
        it.keys("quit\r")
        assert it.ended() == 0
        assert not kept(tmp_path)


def signed_in(it: Console, issuer: Issuer) -> None:
    it.keys("servers login guarded\r")
    answer(it, issuer)


def answer(it: Console, issuer: Issuer) -> None:
    asked = it.line("sign_in_request")
    it.says("paste the address")
    it.keys(issuer.sign_in(asked["url"]) + "\r")
    it.line("server_status", is_in("running"))
