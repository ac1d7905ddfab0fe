"""Where a seat is found, and by whom."""

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from a2c_smcp.agent import LinkOptions
from a2c_smcp.agent.seat.place import NotSharedError, is_held, peer_pid, place_of, try_lock

LINK = LinkOptions("http://127.0.0.1:7000", api_key="secret-key")


def test_the_place_is_in_a_directory_that_only_this_user_may_enter(runtime: Path) -> None:
    place = place_of(LINK, "lab")
    assert place.socket.parent == runtime / "a2c"
    assert (runtime / "a2c").stat().st_mode & 0o777 == 0o700
    assert "secret" not in str(place)


def test_one_url_office_and_key_have_one_place_however_the_url_is_spelled(runtime: Path) -> None:
    assert place_of(replace(LINK, url="HTTP://127.0.0.1:7000/"), "lab") == place_of(LINK, "lab")
    plain = replace(LINK, url="http://Hub.example")
    assert place_of(replace(LINK, url="http://hub.example:80/"), "lab") == place_of(plain, "lab")
    assert place_of(replace(LINK, transport="polling", proxy=""), "lab") == place_of(LINK, "lab")


def test_another_key_office_url_or_header_has_another_place(runtime: Path) -> None:
    others = [
        place_of(replace(LINK, api_key="other"), "lab"),
        place_of(replace(LINK, api_key=None), "lab"),
        place_of(replace(LINK, headers={"authorization": "Bearer x"}), "lab"),
        place_of(replace(LINK, url="https://127.0.0.1:7000"), "lab"),
        place_of(replace(LINK, url="http://127.0.0.1:7000/hub"), "lab"),
        place_of(LINK, "lab2"),
    ]
    assert len({place_of(LINK, "lab"), *others}) == 7


@pytest.mark.parametrize("odd", ["open to others", "a link", "a file"])
def test_a_directory_that_a_stranger_may_have_made_is_not_used(runtime: Path, odd: str) -> None:
    folder = runtime / "a2c"
    if odd == "open to others":
        folder.mkdir()
        folder.chmod(0o755)
    elif odd == "a link":
        (runtime / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(runtime / "elsewhere")
    else:
        folder.write_text("")
    with pytest.raises(NotSharedError, match="a2c"):
        place_of(LINK, "lab")


def test_a_runtime_directory_with_a_long_path_gives_way_to_the_temporary_one(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = runtime / ("x" * 100)
    long.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    monkeypatch.setattr("a2c_smcp.utils.run_folder._TEMPORARY", runtime)
    found = place_of(LINK, "lab").socket.parent
    assert found == runtime / f"a2c-{os.geteuid()}" or str(found).startswith("/run/user/")


def test_a_runtime_directory_that_is_not_absolute_is_ignored(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The holder starts in another directory: it would bind its socket elsewhere."""
    monkeypatch.chdir(runtime.parent)
    monkeypatch.setenv("XDG_RUNTIME_DIR", runtime.name)
    monkeypatch.setattr("a2c_smcp.utils.run_folder._TEMPORARY", runtime)
    assert place_of(LINK, "lab").socket.is_absolute()


def test_one_has_the_lock_until_it_is_closed(runtime: Path) -> None:
    place = place_of(LINK, "lab")
    assert not is_held(place)
    assert not place.lock.exists()
    lock = try_lock(place)
    assert lock is not None
    assert is_held(place) and try_lock(place) is None
    os.close(lock)
    assert not is_held(place)
    again = try_lock(place)
    assert again is not None
    os.close(again)


def test_a_lock_file_that_is_a_link_is_not_followed(runtime: Path) -> None:
    place = place_of(LINK, "lab")
    target = runtime / "precious"
    place.lock.symlink_to(target)
    with pytest.raises(OSError):
        try_lock(place)
    assert not target.exists()


def test_the_other_end_of_a_socket_is_known_and_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = socket.socketpair()
    with one, other:
        assert peer_pid(one) == os.getpid()
        stranger = os.geteuid() + 1
        monkeypatch.setattr("os.geteuid", lambda: stranger)
        with pytest.raises(PermissionError):
            peer_pid(one)
