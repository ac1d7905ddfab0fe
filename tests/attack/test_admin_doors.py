"""Another user of the machine at the operators' local socket, and people whom a load balancer sends to a server that
cannot check their tokens.
"""

import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from tests.attack.harness import honest_pair, target
from tests.attack.processes import DEADLINE
from tests.oidc.issuer import Issuer, needs_issuer, running_issuer

__all__ = ["running_issuer"]

_NOBODY = 65534
_ASKS = """
import contextlib, os, socket, sys
os.setgroups([])
os.setgid(int(sys.argv[2]))
os.setuid(int(sys.argv[2]))
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(30)
connection.connect(sys.argv[1])
with contextlib.suppress(BrokenPipeError):  # it may be answered, and closed, before it asks
    connection.sendall(b"GET /admin/api/top HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n")
got = b""
while True:
    with contextlib.suppress(ConnectionResetError):  # said once; what was answered can be read after it
        if not (piece := connection.recv(65536)):
            break
        got += piece
head, _, body = got.partition(b"\\r\\n\\r\\n")
print(head.split()[1].decode(), len(body))
"""


def _asked_by(user: int, path: Path) -> str:
    command = [sys.executable, "-I", "-S", "-c", _ASKS, str(path), str(user)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE, cwd="/")
    return done.stdout.strip() or done.stderr


@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() != 0, reason="only root can be another user")
def test_another_user_gets_nothing_from_an_admin_socket_that_was_opened_to_all(tmp_path: Path) -> None:
    """Somebody has opened the socket and its folder to all, for instance for a monitor."""
    place = tempfile.TemporaryDirectory()  # all folders above it may be entered
    path = Path(place.name) / "admin.sock"
    with (
        place,
        target(tmp_path, "async", "--admin-socket", str(path), api_key="k") as server,
        honest_pair(server) as pair,
    ):
        path.chmod(0o666)
        path.parent.chmod(0o755)

        def attack() -> None:
            assert _asked_by(_NOBODY, path) == "403 0"

        assert not pair.watch(attack, pause=0.05).failures
        assert _asked_by(0, path).startswith("200 ")
        assert f"refused user {_NOBODY} at the admin socket" in server.log


def _eventually(true: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE
    while not true():
        assert time.monotonic() < until
        time.sleep(0.05)


@needs_issuer
def test_a_server_is_not_ready_before_it_can_check_a_token(running_issuer: Issuer, tmp_path: Path) -> None:
    """The issuer is down when the server starts. A load balancer that sent people there would have them refused."""
    running_issuer.add_machine()
    token = running_issuer.token("https://office.example.com")

    def ready() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"{server.url}/readyz", timeout=DEADLINE) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def opens() -> bool:
        # What a client sends first; a server that lets it in says so in the answer to the second request.
        with httpx2.Client(base_url=server.url, params={"EIO": "4", "transport": "polling"}, timeout=DEADLINE) as http:
            sid = http.get("/socket.io/").text.partition('"sid":"')[2].partition('"')[0]
            http.post("/socket.io/", params={"sid": sid}, content=f'40/smcp,{{"token":"{token}"}}')
            return http.get("/socket.io/", params={"sid": sid}).text.startswith("40/smcp,")

    running_issuer.go_down()
    try:
        oidc = ["--oidc", running_issuer.url, "--oidc-audience", "https://office.example.com"]
        with target(tmp_path, "async", *oidc, api_key="k") as server, honest_pair(server) as pair:
            status, said = ready()
            assert (status, said) == (503, f"the keys of {running_issuer.url} were not read yet\n")
            assert not pair.watch(lambda: None, at_least=1).failures  # keys count all the time
            running_issuer.come_up()
            # It asks by itself: nobody comes with a token while it is not ready.
            _eventually(lambda: ready()[0] == 200)
            assert opens()
            # An outage later on does not matter: known keys count.
            running_issuer.go_down()
            assert ready()[0] == 200 and opens()
    finally:
        running_issuer.come_up()
