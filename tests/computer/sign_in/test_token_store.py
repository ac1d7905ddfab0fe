"""Where sign-ins are kept: a file that only its owner reads, or a keyring; and the lock between processes."""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import pytest
from keyring.backends.fail import Keyring as NoKeyring

from a2c_smcp.computer.sign_in import token_store
from a2c_smcp.computer.sign_in.kept_sign_in import KeptSignIn
from a2c_smcp.computer.sign_in.token_store import TokenStore, key_of

pytestmark = pytest.mark.anyio
KEPT = KeptSignIn("https://mcp.example/mcp", "https://issuer.example", {"access_token": "access-1"}, 1000.0, 60.0)
KEY = key_of("tracker", KEPT.url, None)


class DictKeyring(keyring.backend.KeyringBackend):
    """A keyring in memory."""

    priority = -1

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.is_broken = False
        self.may_delete = threading.Event()
        self.may_delete.set()

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.is_broken:
            raise keyring.errors.PasswordSetError("too long")
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self.may_delete.wait(60)
        if self.entries.pop((service, username), None) is None:
            raise keyring.errors.PasswordDeleteError("none")


@pytest.fixture(autouse=True)
def backend() -> Iterator[DictKeyring]:
    """A keyring that some tests use. The others have none."""
    before = keyring.get_keyring()
    keyring.set_keyring(NoKeyring())  # type: ignore[no-untyped-call]
    yield DictKeyring()
    keyring.set_keyring(before)


async def test_without_a_keyring_a_private_file_keeps_it_and_says_so_once(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    store = TokenStore(tmp_path / "state" / "sign-in", said.append)
    assert await store.load(KEY) is None and not await store.delete(KEY)
    await store.save(KEY, KEPT)
    await store.save(KEY, KEPT)
    assert len(said) == 1 and "sign-in" in said[0] and "access-1" not in said[0]
    assert await TokenStore(tmp_path / "state" / "sign-in").load(KEY) == KEPT
    file = tmp_path / "state" / "sign-in" / f"{KEY}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o644)
    assert await store.load(KEY) is None  # somebody else may have written it
    file.chmod(0o600)
    file.write_bytes(b"{broken")
    assert await store.load(KEY) is None
    await store.save(KEY, KEPT)
    assert await store.delete(KEY) and not file.exists()


async def test_a_keyring_keeps_it_and_no_file_does(backend: DictKeyring, tmp_path: Path) -> None:
    said: list[str] = []
    keyring.set_keyring(backend)
    store = TokenStore(tmp_path, said.append)
    await store.save(KEY, KEPT)
    assert await store.load(KEY) == KEPT and len(backend.entries) == 1
    assert (tmp_path / f"{KEY}.json").read_bytes() == b"in the keyring\n" and not said
    backend.is_broken = True  # some keyrings take short entries only
    await store.save(KEY, KEPT)
    assert KeptSignIn.read((tmp_path / f"{KEY}.json").read_bytes()) == KEPT and len(said) == 1
    assert "does not take it" in said[0]
    backend.is_broken = False
    await store.save(KEY, KEPT)
    assert await store.delete(KEY) and not backend.entries
    assert await store.load(KEY) is None


async def test_an_entry_that_the_keyring_does_not_take_leaves_the_others_alone(
    backend: DictKeyring, tmp_path: Path
) -> None:
    keyring.set_keyring(backend)
    store = TokenStore(tmp_path, lambda notice: None)
    await store.save(KEY, KEPT)
    backend.is_broken = True
    await store.save("large", KEPT)
    assert await store.load(KEY) == KEPT and await store.load("large") == KEPT


async def test_a_keyring_that_waits_for_somebody_holds_nobody_up(
    backend: DictKeyring, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(token_store, "_KEYRING_SECONDS", 0.1)
    keyring.set_keyring(backend)
    store = TokenStore(tmp_path)
    await store.save(KEY, KEPT)
    backend.may_delete.clear()
    try:
        assert await asyncio.wait_for(store.delete(KEY), 20)
        assert "the keyring does not delete a sign-in" in caplog.text
    finally:
        backend.may_delete.set()


async def test_what_a_full_disk_does_not_take_lasts_as_long_as_the_program(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "sign-in", lambda notice: None)
    await store.save(KEY, KEPT)
    (tmp_path / "sign-in").rename(tmp_path / "old")
    (tmp_path / "sign-in").write_text("")  # no folder any more: nothing can be written
    newer = replace(KEPT, tokens={"access_token": "access-2"})
    await store.save(KEY, newer)
    (tmp_path / "sign-in").unlink()
    (tmp_path / "old").rename(tmp_path / "sign-in")
    assert await store.load(KEY) == newer  # the old refresh token must not be used again
    await store.save(KEY, KEPT)
    assert await store.load(KEY) == KEPT and await store.delete(KEY) and await store.load(KEY) is None


async def test_two_names_with_one_url_are_two_sign_ins() -> None:
    assert len({key_of("work", "u", None), key_of("home", "u", None), key_of("work", "u", "c")}) == 3


async def test_another_process_waits_for_the_lock(tmp_path: Path) -> None:
    store = TokenStore(tmp_path)
    program = (
        "import asyncio, sys\nfrom pathlib import Path\n"
        "from a2c_smcp.computer.sign_in.token_store import TokenStore\n"
        "async def main():\n"
        "    async with TokenStore(Path(sys.argv[1])).locked(sys.argv[2]):\n"
        "        print('locked', flush=True); sys.stdin.readline(); print('ends', flush=True)\n"
        "asyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program, str(tmp_path), KEY),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"locked\n"
        order: list[str] = []

        async def mine() -> None:
            async with store.locked(KEY):
                order.append("mine")

        waiting = asyncio.create_task(mine())
        await asyncio.sleep(0.2)
        assert not order
        process.stdin.write(b"\n")
        assert await asyncio.wait_for(process.stdout.readline(), 60) == b"ends\n"
        await asyncio.wait_for(waiting, 60)
        assert order == ["mine"]
    finally:
        process.stdin.close()
        await asyncio.wait_for(process.wait(), 60)


async def test_a_folder_that_cannot_be_made_loses_nothing_but_the_next_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = TokenStore(tmp_path / "file" / "sign-in")
    async with store.locked(KEY):
        await store.save(KEY, KEPT)
    assert await store.load(KEY) == KEPT and await TokenStore(tmp_path / "file" / "sign-in").load(KEY) is None
    assert os.listdir(tmp_path) == ["file"]
