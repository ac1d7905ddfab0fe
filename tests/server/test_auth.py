"""Keys: the ring, the file, and the check over real connections."""

import hashlib
import logging
from pathlib import Path
from typing import Any

import pytest
import socketio
import uvicorn

from a2c_smcp.errors import SMCPError, UnauthorizedError
from a2c_smcp.server import (
    APIKeyAuthentication,
    Credentials,
    Grant,
    SMCPNamespace,
    SyncAPIKeyAuthentication,
    load_keys,
)
from a2c_smcp.server.auth import Key, KeyFileError, credentials_of
from a2c_smcp.server.mounted import newcomer_of
from a2c_smcp.server.port import Newcomer
from tests.server.conftest import MakePeer
from tests.server.harness import Running, async_server, serving, sync_server

KEYS = """
[[keys]]
name = "everything"
key = "plain-secret"

[[keys]]
name = "lab computers"
sha256 = "{digest}"
roles = ["computer"]
offices = ["lab-*"]
""".format(digest=hashlib.sha256(b"hashed-secret").hexdigest())


@pytest.fixture
def keys_file(tmp_path: Path) -> Path:
    path = tmp_path / "keys.toml"
    path.write_text(KEYS)
    return path


def show(header: str | None = None, token: str | None = None) -> Credentials:
    return Credentials({"x-api-key": header} if header else {}, token, "127.0.0.1")


# --- the ring


def test_a_key_in_the_header_or_in_the_token() -> None:
    auth = SyncAPIKeyAuthentication(["one", "two"])
    assert auth.authenticate(show(header="one")) == Grant("api-key")
    assert auth.authenticate(show(token="two")) == Grant("api-key")
    assert auth.authenticate(show(header="wrong", token="two"))


@pytest.mark.parametrize("credentials", [show(), show(header="thre"), show(token="threee"), show(header="", token="")])
def test_anything_else_is_401(credentials: Credentials) -> None:
    with pytest.raises(UnauthorizedError) as caught:
        SyncAPIKeyAuthentication(["three"]).authenticate(credentials)
    assert caught.value.code == 401
    assert "thre" not in caught.value.message.replace("threshold", "")


def test_the_header_is_configurable() -> None:
    auth = SyncAPIKeyAuthentication(["one"], header="Authorization-Key")
    assert auth.authenticate(Credentials({"authorization-key": "one"}, None, "a"))


def test_a_check_without_keys_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least one key"):
        SyncAPIKeyAuthentication([])


def test_credentials_are_read_from_the_environment_and_never_shown() -> None:
    environ = {"HTTP_X_API_KEY": "hunter2", "REQUEST_METHOD": "GET", "REMOTE_ADDR": "a"}
    made = credentials_of(newcomer_of(environ), {"token": "hunter3"})
    assert made.headers == {"x-api-key": "hunter2"}
    assert made.token == "hunter3"
    assert "hunter" not in repr(made)
    assert credentials_of(Newcomer("a", {}), {"token": 5}).token is None
    assert credentials_of(Newcomer("a", {}), "nonsense").token is None
    assert "hunter2" not in repr(Key(name="n", key="hunter2"))


# --- the file


def test_a_keys_file_says_what_each_key_allows(keys_file: Path) -> None:
    auth = SyncAPIKeyAuthentication(load_keys(keys_file))
    assert auth.authenticate(show("plain-secret")) == Grant("everything")
    assert auth.authenticate(show("hashed-secret")) == Grant("lab computers", frozenset({"computer"}), ("lab-*",))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "keys"),
        ("[[keys]]\nname = 'x'\n", "either key or sha256"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nsha256 = '" + "0" * 64 + "'\n", "either key or sha256"),
        ("[[keys]]\nkey = 'hunter2'\n", "name"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nroles = ['boss']\n", "roles"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nofices = ['x']\n", "ofices"),
        ("[[keys]]\nname = 'x'\nsha256 = 'abc'\n", "sha256"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nnames = []\n", "keys.0.names"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nnames = ['a', '']\n", "keys.0.names.1"),
        ("[[keys]]\nname = 'x'\nkey = 'hunter2'\nnames = 'planner'\n", "keys.0.names"),
        ("[[keys]\n", "line 1"),
    ],
)
def test_a_bad_keys_file_names_the_file_and_the_field_and_no_secret(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    with pytest.raises(KeyFileError) as caught:
        load_keys(path)
    assert str(path) in str(caught.value)
    assert problem in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_missing_keys_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="No such file"):
        load_keys(tmp_path / "nowhere.toml")


# --- over the wire


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Key, ...]:
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.write_text(KEYS)
    return load_keys(path)


@pytest.fixture(scope="module", params=["async", "sync", "mounted"])
def locked_server(request: pytest.FixtureRequest, keys: tuple[Key, ...]) -> Any:
    if request.param == "async":
        with async_server(APIKeyAuthentication(keys)) as running:
            yield running
    elif request.param == "sync":
        with sync_server(SyncAPIKeyAuthentication(keys)) as running:
            yield running
    else:
        # A user's own python-socketio server, with nothing of ours but the namespace.
        namespace = SMCPNamespace(APIKeyAuthentication(keys))
        # It notices the end of a client that polls only after these times, and so does its end wait.
        sio = socketio.AsyncServer(async_mode="asgi", ping_interval=2, ping_timeout=4)
        sio.register_namespace(namespace)
        config = uvicorn.Config(socketio.ASGIApp(sio), log_config=None, lifespan="off", ws="websockets-sansio")
        with serving(config) as url:
            yield Running(url, namespace, sio)


def credentials(secret: str, way: str) -> dict[str, Any]:
    return {"headers": {"X-API-Key": secret}} if way == "header" else {"auth": {"token": secret}}


@pytest.mark.parametrize("transport", ["websocket", "polling"])
@pytest.mark.parametrize("way", ["header", "token"])
async def test_a_right_key_connects_and_a_wrong_one_does_not(
    locked_server: Running, transport: str, way: str, make_peer: MakePeer
) -> None:
    peer = await make_peer(locked_server, "async", transport, **credentials("plain-secret", way))
    assert peer.connected
    refusals: list[Any] = []
    with pytest.raises(socketio.exceptions.ConnectionError):
        await make_peer(
            locked_server,
            "async",
            transport,
            setup=lambda peer: peer.sio.on("connect_error", refusals.append, namespace="/smcp"),
            **credentials("wrong", way),
        )
    assert refusals[0]["message"].startswith("401 Unauthorized")
    assert "wrong" not in str(refusals)
    with pytest.raises(socketio.exceptions.ConnectionError):
        await make_peer(locked_server, "async", transport)


async def test_a_join_outside_what_the_key_allows_is_403(locked_server: Running, make_peer: MakePeer) -> None:
    peer = await make_peer(locked_server, **credentials("hashed-secret", "header"))

    async def join(role: str, office: str) -> Any:
        return await peer.call("server:join_office", {"role": role, "name": "n", "office_id": office})

    assert (await join("agent", "lab-1"))[1].startswith("403 ")
    assert (await join("computer", "office"))[1].startswith("403 ")
    assert tuple(await join("computer", "lab-1")) == (True, None)


async def test_a_provider_of_ones_own(make_peer: MakePeer) -> None:
    class Custom:
        async def authenticate(self, credentials: Credentials) -> Grant:
            if credentials.headers.get("x-user") != "ada":
                raise UnauthorizedError("who are you?")
            return Grant("ada", frozenset({"agent"}))

    with async_server(Custom()) as server:
        peer = await make_peer(server, headers={"X-User": "ada"})
        done, _ = await peer.call("server:join_office", {"role": "agent", "name": "n", "office_id": "o"})
        assert done is True
        with pytest.raises(socketio.exceptions.ConnectionError):
            await make_peer(server, headers={"X-User": "eve"})


async def test_a_provider_that_fails_lets_nobody_in(make_peer: MakePeer) -> None:
    class Broken:
        async def authenticate(self, credentials: Credentials) -> Grant:
            raise RuntimeError("the database is down")

    with async_server(Broken()) as server, pytest.raises(socketio.exceptions.ConnectionError):
        await make_peer(server)


@pytest.mark.parametrize("transport", ["websocket", "polling"])
async def test_a_key_is_in_no_log_line(
    locked_server: Running, transport: str, make_peer: MakePeer, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for way in ("header", "token"):
            await make_peer(locked_server, "async", transport, **credentials("plain-secret", way))
    server_lines = [record for record in caplog.records if record.name.startswith("a2c_smcp")]
    assert not [record for record in server_lines if "plain-secret" in record.getMessage()]


def test_an_error_is_an_smcp_error() -> None:
    assert issubclass(UnauthorizedError, SMCPError)
