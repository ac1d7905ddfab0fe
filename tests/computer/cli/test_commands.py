"""The table of commands: what is found, suggested, completed and kept. What they do is tested at a real terminal."""

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest

from a2c_smcp.computer.cli import commands
from a2c_smcp.computer.cli.command_table import number
from a2c_smcp.computer.cli.commands import COMMANDS, completions, find, is_kept
from a2c_smcp.errors import BadRequestError


class Listed:
    """Stands for a session with one of everything: completion looks at nothing else of it."""

    windows = ("window://w",)
    documents = ("dpe://d",)

    class computer:  # noqa: N801
        class inputs:  # noqa: N801
            definitions = ("key",)

        statuses = (type("Status", (), {"server": "files"}), type("Status", (), {"server": "my server"}))

        tool_servers: ClassVar = {"read": "files", "remove": "files"}

        @staticmethod
        def get_available_tools() -> list[dict[str, Any]]:
            schema = {"properties": {"path": {"type": "string"}, "head": {"type": "integer"}}}
            return [{"name": "read", "params_schema": schema}, {"name": "remove", "params_schema": {}}]


def test_the_longest_name_wins_and_the_rest_are_its_words() -> None:
    command, rest = find(["inputs", "value", "set", "key", "list"])
    assert command.name == "inputs value set"
    assert rest == ["key", "list"]


@pytest.mark.parametrize(
    ("line", "suggested"),
    [
        ("servrs list", "'servers list'"),
        ("servers lst", "'servers list'"),
        ("tool call x", "'tools call'"),
        ("inputs vlaue set x y", "'inputs value set'"),
        ("stauts", "'status'"),
        ("servers", "list, start, stop, restart, remove, login, logout, add, logs"),
        ("xyzzy", "`help`"),
    ],
)
def test_a_typo_suggests_the_nearest_command(line: str, suggested: str) -> None:
    with pytest.raises(BadRequestError) as raised:
        find(line.split())
    assert suggested in raised.value.message


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {"connect", "servers", "quit"}),
        ("ser", {"servers"}),
        ("servers st", {"start", "stop"}),
        ("servers start ", {"files", "'my server'"}),
        ("servers start my", {"'my server'"}),
        ("servers start 'my", {"'my server'"}),
        ("servers start 'my server' ", set()),
        ("servers start 'my ser", set()),
        ("help servers st", {"start", "stop"}),
        ("help des", {"desktop"}),
        ("inputs va", {"value"}),
        ("inputs value set k", {"key"}),
        ("tools call re", {"read", "remove"}),
        ("tools call read ", {"path=", "head="}),
        ("tools call read pa", {"path="}),
        ("tools call read path=x ", {"head="}),
        ("tools call --timeout 5 ", {"read", "remove"}),
        ("tools call --save=x --timeout 5 read ", {"path=", "head="}),
        ("tools call remove ", set()),
        ("tools call nobody ", set()),
        ("servers start files ", set()),
        ("desktop show ", {"window://w"}),
        ("finder show dpe", {"dpe://d"}),
        ("nonsense ", set()),
    ],
)
def test_what_may_come_next_is_completed(line: str, found: set[str]) -> None:
    listed: Any = Listed
    assert found <= set(completions(listed, line)[0])
    if line:
        assert set(completions(listed, line)[0]) == found


def test_lines_that_may_hold_a_secret_are_not_kept() -> None:
    kept = ["servers list", "tools call echo text=hi", "connect --url http://x --office o", "tools call x {"]
    lost = [
        "inputs value set key hunter2",
        "input value set key hunter2",  # a typo
        "inputs vlaue set key hunter2",
        'servers add {"env": {"KEY": "hunter2"}}',
        "inputs add id=x default=hunter2",
        "connect --api-key hunter2",
        "connect --api-key=hunter2",
        'connect "--api-key" hunter2',
        "connect '--api-key=hunter2'",
        "connect --api-k\\ey hunter2",
        "connect '--api-key=hunter2",
        "inputs 'value' set key hunter2",
        "hunter2",
        "",
    ]
    assert [line for line in kept + lost if is_kept(line)] == kept


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-3", "1e999", "many"])
def test_an_option_takes_a_number_from_0_up(text: str) -> None:
    assert (number("0", "lines"), number("2.5", "timeout")) == (0, 2.5)
    with pytest.raises(BadRequestError, match="--lines needs a number"):
        number(text, "lines")


def test_every_command_explains_itself() -> None:
    assert all(command.help.endswith(".") for command in COMMANDS.values())


def test_the_documentation_has_every_command_and_every_type() -> None:
    text = (Path(__file__).parents[3] / "docs" / "cli.md").read_text()
    folder = Path(commands.__file__).parent
    sources = "".join(file.read_text() for file in folder.glob("*.py"))
    types = set(re.findall(r'output\.event\(\s*"(\w+)"', sources))
    assert len(types) > 20
    assert [kind for kind in types if f"| `{kind}` |" not in text] == []
    assert [name for name in COMMANDS if f"`{name}" not in text] == []
