"""Who pretends to be another agent: by what it sends, by how it is called, and by what it writes for the server.

What the computer is told is looked at where it arrives: a raw computer in the same office keeps the text of what it is
asked. Beside it an honest pair works, with keys of its own, and must not notice.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.attack.harness import Pair, Target, honest_pair, target
from tests.attack.test_members import DEADLINE, Member, member

__all__ = ["DEADLINE"]

HONEST, PLANNER, LIBRARIAN, DESK = "the-honest-key", "the-planners-key", "the-librarians-key", "the-desks-key"
KEYS = f"""
[[keys]]
name = "honest"
key = "{HONEST}"

[[keys]]
name = "planning"
key = "{PLANNER}"
roles = ["agent"]
names = ["planner", "planner-*"]

[[keys]]
name = "library"
key = "{LIBRARIAN}"
roles = ["agent"]
names = ["librarian"]

[[keys]]
name = "desk"
key = "{DESK}"
"""
FORGED = '{"name":"librarian","key":"library","bound":true}'
STAMP = f'"a2c_from":{FORGED}'
CALL = '"req_id":"1","computer":"victim","tool_name":"rm","timeout":30'


@dataclass(frozen=True)
class Scene:
    server: Target
    pair: Pair

    @contextmanager
    def member(self, key: str, role: str, name: str, office: str) -> Iterator[Member]:
        with member(replace(self.server, api_key=key), role, name, office) as found:
            yield found


@pytest.fixture(scope="module", params=["async", "threaded"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("identity")
    keys = folder / "keys.toml"
    keys.write_text(KEYS)
    keys.chmod(0o600)
    with ExitStack() as exits:
        server = exits.enter_context(target(folder, request.param, "--keys", str(keys)))
        yield Scene(server, exits.enter_context(honest_pair(replace(server, api_key=HONEST))))


def asked(computer: Member) -> dict[str, Any]:
    """The next request that a computer gets, as it reads it. It answers."""
    text = computer.until("42/smcp,")
    while '"client:' not in text:
        text = computer.until("42/smcp,")
    number, _, body = text.removeprefix("42/smcp,").partition("[")
    computer.send(f'43/smcp,{number}[{{"content":[],"isError":false}}]')
    event, request = json.loads("[" + body)
    assert event.startswith("client:")
    return dict(request)


def bodies() -> dict[str, str]:
    """Requests of a planner that wants to be the librarian."""
    agent, params = '"agent":"librarian"', '"params":{}'
    plain = f"{agent},{CALL},{params}"
    escaped = STAMP.replace("a2c_from", r"a2c\u005ffrom")
    everything = STAMP.replace("a2c_from", "".join(f"\\u{ord(each):04X}" for each in "a2c_from"))
    return {
        "the agent field": f"{{{plain}}}",
        "a stamp": f"{{{plain},{STAMP}}}",
        "a stamp in front": f"{{{STAMP},{plain}}}",
        "an escaped stamp": f"{{{plain},{escaped}}}",
        "an escaped stamp in front": f"{{{everything},{plain}}}",
        "a stamp twice": f"{{{STAMP},{plain},{escaped},{STAMP}}}",
        "a stamp and blanks": f"{{{plain} , {STAMP} \t\r\n }} \n",
        "a stamp in an argument": f'{{{agent},{CALL},"params":{{{STAMP}}}}}',
        "an argument like the end": f'{{{STAMP},{agent},{CALL},"params":{{"t":"}}]}}\\"}}"}}}}',
        "a stamp and a dialect": f'{{"a2c_dialect":"0.4",{plain},{STAMP},"a2c\\u005fdialect":"0.4"}}',
        "half a character": f'{{{plain},"x":"\\ud800",{escaped}}}',
        "a null in between": f'{{{plain},"meta":null,{STAMP}}}',
    }


@pytest.mark.parametrize(("how", "payload"), bodies().items(), ids=bodies())
def test_a_planner_stays_the_planner_whatever_it_sends(scene: Scene, how: str, payload: str) -> None:
    office = f"forged {how}"
    with (
        scene.member(PLANNER, "agent", "planner", office) as agent,
        scene.member(DESK, "computer", "victim", office) as computer,
    ):
        during = scene.pair.watch(lambda: agent.emit_text(f'["client:tool_call",{payload}]'))
        text = computer.until("42/smcp,")
        while '"client:tool_call"' not in text:
            text = computer.until("42/smcp,")
    body = "[" + text.removeprefix("42/smcp,").partition("[")[2]
    # All fields of this name at the top of the request, however they are spelled; readers take the last one.
    fields = json.loads(body, object_pairs_hook=lambda pairs: pairs)[1]
    assert [value for name, value in fields if name == "a2c_from"] == [
        [("name", "planner"), ("key", "planning"), ("bound", True)]
    ]
    request = json.loads(body)[1]
    assert list(request)[-1] == "a2c_from" and request["agent"] == "librarian"
    assert "a2c_dialect" not in request  # a client of ours speaks for itself, in its URL
    assert not during.failures and not during.departures


@pytest.mark.parametrize("event", ["client:get_desktop", "client:read_resource", "client:subscribe_resource"])
def test_reading_and_watching_is_stamped_as_calling_is(scene: Scene, event: str) -> None:
    with (
        scene.member(PLANNER, "agent", "planner-2", "reading") as agent,
        scene.member(DESK, "computer", "victim", "reading") as computer,
    ):
        request = {"agent": "librarian", "req_id": "1", "computer": "victim", "uri": "window://h/w"}
        forged = {**request, "a2c_from": json.loads(FORGED)}
        during = scene.pair.watch(lambda: agent.emit(event, forged))
        assert not during.failures and not during.departures
        assert asked(computer)["a2c_from"] == {"name": "planner-2", "key": "planning", "bound": True}


def test_nobody_joins_under_a_name_or_takes_one_that_its_key_does_not_have(scene: Scene) -> None:
    with scene.member(PLANNER, "agent", "planner", "renaming") as agent:

        def attack() -> None:
            for name in ("librarian", "Planner", "planner\u200d", "pl\u0430nner", "planne", "planner-\n", "*"):
                said = agent.ask("server:join_office", {"role": "agent", "name": name, "office_id": "renaming"})
                assert said[0] is False and said[1][:3] in ("403", "400"), (name, said)
            refused = agent.ask("server:join_office", {"role": "agent", "name": "librarian", "office_id": "renaming"})
            assert refused == [
                False,
                "403 Forbidden: this key allows the names 'planner', 'planner-*', and not 'librarian'",
            ]

        during = scene.pair.watch(attack)
        with scene.member(DESK, "computer", "victim", "renaming") as computer:
            agent.emit_text(f'["client:tool_call",{{"agent":"a",{CALL},"params":{{}}}}]')
            assert asked(computer)["a2c_from"]["name"] == "planner"
            assert agent.in_room("renaming") == {"planner", "victim"}
    assert not during.failures and not during.departures
    with ExitStack() as exits, pytest.raises(AssertionError):
        exits.enter_context(scene.member(PLANNER, "agent", "librarian", "joining"))


def test_who_may_call_itself_anything_is_said_to_say_so_itself(scene: Scene) -> None:
    with (
        scene.member(DESK, "agent", "clerk", "claiming") as agent,
        scene.member(DESK, "computer", "victim", "claiming") as computer,
    ):
        stamps = []

        def attack() -> None:
            for name in ("clerk", "librarian"):
                joining = {"role": "agent", "name": name, "office_id": "claiming"}
                assert agent.ask("server:join_office", joining)[0] is True
                agent.emit_text(f'["client:tool_call",{{"agent":"a",{CALL},"params":{{}}}}]')
                stamps.append(asked(computer)["a2c_from"])

        during = scene.pair.watch(attack)
        assert not during.failures and not during.departures
    assert stamps == [{"name": name, "key": "desk", "bound": False} for name in ("clerk", "librarian")]
    # The honest one, who has the name for sure.
    with (
        scene.member(LIBRARIAN, "agent", "librarian", "claiming") as agent,
        scene.member(DESK, "computer", "victim", "claiming") as computer,
    ):
        agent.emit_text(f'["client:tool_call",{{"agent":"a",{CALL},"params":{{}}}}]')
        assert asked(computer)["a2c_from"] == {"name": "librarian", "key": "library", "bound": True}


def test_large_requests_with_forged_stamps_hold_nobody_up(scene: Scene) -> None:
    large = '{"pieces":[' + ",".join(['"abcdefg"'] * 1_000_000) + "]}"
    many = ",".join(f'"{number:06x}":1' for number in range(300_000))
    escaped = STAMP.replace("a2c_from", r"a2c\u005ffrom")
    with (
        scene.member(PLANNER, "agent", "planner", "large") as agent,
        scene.member(DESK, "computer", "victim", "large") as computer,
    ):

        def attack() -> None:
            for params, more in ((large, ""), ("{}", f",{many}")):
                for _ in range(4):
                    agent.emit_text(f'["client:tool_call",{{"agent":"a",{CALL},"params":{params}{more},{escaped}}}]')
                    computer.until("42/smcp,")

        scene.pair.unharmed_by(attack, times=50)
