"""Who pretends to be another, and who tries keys: beside an honest pair that shares its address with them."""

import json
import threading
import time
from collections.abc import Iterator

import pytest
from websockets.sync.client import connect

from tests.attack.harness import Pair, Target, honest_pair, target
from tests.attack.test_members import member

KEY = "secret"
OFFICE = "honest"
DEADLINE = 60
#: What letters of the honest computer's name are replaced with.
DISGUISES = [
    {"o": "\u043e", "e": "\u0435"},  # Cyrillic
    {letter: chr(ord(letter) + 0xFEE0) for letter in "honest"},  # fullwidth
    {"h": "\u041d", "o": "\u039f", "n": "\u039d"},  # capitals whose small letters look like others
    {"h": "H", "t": "T"},
    {"n": "n\u200d"},  # with an invisible joiner
]


@pytest.fixture(scope="module", params=["async", "threaded"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Target, Pair]]:
    folder = tmp_path_factory.mktemp("names")
    with target(folder, request.param, api_key=KEY) as server, honest_pair(server, OFFICE) as pair:
        yield server, pair


def test_a_computer_that_looks_like_another_is_not_let_in(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    name = pair.computer.says(r"a2c computer (\S+) is in office")[1]
    with member(server, "computer", "stranger", "elsewhere") as stranger:

        def attack() -> None:
            for disguise in DISGUISES:
                alike = "".join(disguise.get(letter, letter) for letter in name)
                taken, reason = stranger.ask(
                    "server:join_office", {"role": "computer", "name": alike, "office_id": OFFICE}
                )
                assert alike != name and taken is False, ascii(alike)
                assert reason.startswith("4105 ") and repr(name) in reason

        during = pair.watch(attack)
        assert during.calls and not during.failures and not during.departures
        assert stranger.ask("server:update_config", {}) == [{}]  # it is where it was


def answer_to(server: Target, key: str) -> str:
    """What a client with this key is answered."""
    url = f"{server.url.replace('http', 'ws')}/socket.io/?EIO=4&transport=websocket"
    with connect(url, compression=None, open_timeout=DEADLINE, close_timeout=0.1) as ws:
        ws.send("40/smcp," + json.dumps({"token": key}))
        while not (text := str(ws.recv(timeout=DEADLINE))).startswith("4"):
            if text == "2":
                ws.send("3")  # to a ping
        return text


def test_who_tries_keys_is_slowed_and_a_right_key_from_the_same_address_is_not(scene: tuple[Target, Pair]) -> None:
    server, pair = scene
    before = len(server.log)

    def guess(number: int) -> None:
        assert '"code":401' in answer_to(server, f"guess-{number}")

    def attack() -> None:
        began = time.monotonic()
        for number in range(12):  # ten at once, and two in their seconds
            guess(number)
        assert time.monotonic() - began > 1
        crowd = [threading.Thread(target=guess, args=(number,), daemon=True) for number in range(12)]
        for each in crowd:
            each.start()
        assert answer_to(server, KEY).startswith("40/smcp")
        # It did not stand in their queue, whose end takes its five seconds.
        assert any(each.is_alive() for each in crowd)
        for each in crowd:
            each.join(DEADLINE)
            assert not each.is_alive()

    pair.unharmed_by(attack, times=50, is_long=True)
    assert "guess-" not in server.log[before:]
