"""A real issuer of tokens on loopback: npm's `oidc-provider`, which `make test` installs where there is npm.

It registers clients by itself (RFC 7591), knows PKCE, resource indicators, the device flow, rotating refresh tokens and
`client_credentials`. Tests change it while it runs: keys, lifetimes, who signs in, an outage. `sign_in` is the person
with a browser: it follows an address through the issuer's pages.
"""

import json
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2
import pytest

__all__ = ["Issuer", "needs_issuer", "running_issuer"]

_ROOT: Final = Path(__file__).parent.parent.parent
_MODULES: Final = _ROOT / ".node-oidc" / "node_modules"
_SCRIPT: Final = Path(__file__).with_name("issuer.mjs")
_DEADLINE: Final = 60.0

needs_issuer = pytest.mark.skipif(shutil.which("npm") is None, reason="the issuer of the tests needs npm")


class Issuer:
    """The issuer at `url`, inside `with`. Every method returns when the change counts."""

    def __init__(self) -> None:
        self.url = ""
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        node = _MODULES / "node" / "bin" / "node"
        if not (_MODULES.parent / ".ready").exists():
            pytest.fail(".node-oidc is missing: run `make test`, which sets it up")
        command = [str(node), str(_SCRIPT), str(_MODULES / "oidc-provider")]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.url = self._read()["issuer"]
        return self

    def __exit__(self, *_: object) -> None:
        process = self._process
        assert process is not None
        process.kill()
        process.communicate(timeout=_DEADLINE)

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        watch = threading.Timer(_DEADLINE, self._process.kill)
        watch.start()
        try:
            line = self._process.stdout.readline()
        finally:
            watch.cancel()
        assert line, "the issuer has ended"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _ask(self, command: str, **rest: Any) -> dict[str, Any]:
        with self._lock:
            assert self._process is not None
            assert self._process.stdin is not None
            print(json.dumps({"command": command, **rest}), file=self._process.stdin, flush=True)
            return self._read()

    # --- what a test changes

    def change(self, **settings: Any) -> None:
        """Change `settings` of the script, which says what each one means."""
        self._ask("set", **settings)

    def add_account(self, name: str, **claims: Any) -> None:
        """A person, and the claims that are in the tokens."""
        self._ask("account", name=name, claims=claims)

    def add_client(self, client_id: str, **metadata: Any) -> None:
        """A client that an operator has registered, with the metadata of RFC 7591."""
        self._ask("client", client_id=client_id, **metadata)

    def add_machine(self, client_id: str = "machine", secret: str = "machine-secret-0123456789") -> None:
        """A client for `token`."""
        grants = {"grant_types": ["client_credentials"], "redirect_uris": [], "response_types": []}
        self.add_client(client_id, client_secret=secret, token_endpoint_auth_method="client_secret_post", **grants)

    def rotate(self, *, keep: bool = True) -> None:
        """Sign with a new key from now on. Without `keep` the tokens of the old keys cannot be checked any more."""
        self._ask("rotate", keep=keep)

    def signing_key(self) -> dict[str, Any]:
        """The key that signs: `kid`, the public part as `pem`, and both parts as `jwk`."""
        return self._ask("key")

    def hits(self, path: str) -> int:
        """How many requests have come for this path."""
        return int(self._ask("hits").get(path, 0))

    def delay(self, seconds: float) -> None:
        """Answer later from now on."""
        self._ask("delay", seconds=seconds)

    def go_down(self) -> None:
        """Refuse connections until `come_up`."""
        self._ask("down")

    def come_up(self) -> None:
        """Serve again, at the same address."""
        self._ask("up")

    def revoke(self, account: str) -> None:
        """Withdraw what this person has allowed: no refresh token of theirs counts any more."""
        self._ask("revoke", account=account)

    # --- what clients and people do

    def token(self, audience: str, client_id: str = "machine", secret: str = "machine-secret-0123456789") -> str:
        """An access token for a machine of `add_machine`."""
        form = {"grant_type": "client_credentials", "resource": audience, "scope": "office"}
        who = {"client_id": client_id, "client_secret": secret}
        answer = httpx2.post(f"{self.url}/token", data={**form, **who}, timeout=_DEADLINE)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["access_token"])

    def sign_in(self, url: str, *, account: str | None = None, refuse: bool = False) -> str:
        """Follow an address through the issuer's pages, as a person in a browser does.

        Returns the address of the client that the browser ends at, without opening it; or the text of the issuer's last
        page, for the device flow.
        """
        with httpx2.Client(timeout=_DEADLINE) as browser:
            answer = browser.get(url)
            for _ in range(20):
                if answer.is_redirect:
                    target = urljoin(str(answer.url), answer.headers["location"])
                    if not target.startswith(self.url):
                        return target
                    answer = browser.get(target)
                elif (form := _form_of(answer.text, str(answer.url))) is not None:
                    extra = {"account": account} if account else {}
                    answer = browser.post(form[0], data={**form[1], **extra, "answer": "no" if refuse else "yes"})
                else:
                    return answer.text
        raise AssertionError(f"the issuer's pages have no end: {answer.url}")


def _form_of(page: str, url: str) -> tuple[str, dict[str, str]] | None:
    """Where the form of a page goes, and its fields."""
    found = re.search(r"<form[^>]*>", page)
    if found is None:
        return None
    action = re.search(r'action="([^"]*)"', found[0])
    inputs = re.findall(r"<input[^>]*>", page)
    fields = {
        name[1]: value for each in inputs if (name := re.search(r'name="([^"]*)"', each)) for value in [_value(each)]
    }
    if not fields.get("user_code", "-"):
        if (given := parse_qs(urlsplit(url).query).get("user_code")) is None:
            return None  # the device flow has ended, and the page is ready for another code
        fields["user_code"] = given[0]
    return urljoin(url, unescape(action[1]) if action else ""), fields


def _value(field: str) -> str:
    found = re.search(r'value="([^"]*)"', field)
    return unescape(found[1]) if found else ""


@pytest.fixture(scope="module")
def running_issuer() -> Iterator[Issuer]:
    """One issuer for a file of tests, which imports this fixture. Skipped where there is no npm."""
    if shutil.which("npm") is None:
        pytest.skip("the issuer of the tests needs npm")
    with Issuer() as issuer:
        yield issuer
