"""Where values come from, in which order, and that each question is asked once."""

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs import (
    BaseInputResolver,
    CompositeResolver,
    EnvInputResolver,
    InputFailedError,
    InputResolver,
    InputStore,
)
from a2c_smcp.computer.inputs.env import variable_of
from a2c_smcp.computer.mcp_clients.model import MCPServerInput, StdioServerConfig, parse_input
from a2c_smcp.errors import BadRequestError, InputNotFoundError


class Gui(BaseInputResolver):
    """A front end: answers when its person has typed, and keeps note of what it was asked."""

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.asked: list[str] = []
        self.withdrawn: list[str] = []
        self.opened = anyio.Event()
        self.typed = anyio.Event()

    async def resolve(self, definition: MCPServerInput) -> Any:
        self.asked.append(definition.id)
        self.opened.set()
        try:
            await self.typed.wait()
        except BaseException:
            self.withdrawn.append(definition.id)
            raise
        if definition.id not in self._answers:
            raise InputNotFoundError(definition.id)
        return self._answers[definition.id]


def quick(answers: Mapping[str, Any]) -> Gui:
    gui = Gui(answers)
    gui.typed.set()
    return gui


def prompt(input_id: str, **extra: Any) -> MCPServerInput:
    return parse_input({"id": input_id, "type": "promptString", **extra})


def server(name: str = "files", /, *args: str, **extra: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "stdio",
        "server_parameters": {"command": "run", "args": list(args)},
        **extra,
    }


def args_of(config: object) -> list[str]:
    assert isinstance(config, StdioServerConfig)
    return config.server_parameters.args


# --- layers


@pytest.mark.parametrize(
    ("input_id", "name"), [("key", "KEY"), ("api-key.2", "API_KEY_2"), ("a b", "A_B"), ("ключ", "____")]
)
def test_the_environment_variable_of_an_input(input_id: str, name: str) -> None:
    assert variable_of(input_id) == f"A2C_INPUT_{name}"


async def test_the_environment_comes_first_then_the_cache_then_the_person() -> None:
    store = InputStore([prompt("a"), prompt("b"), prompt("c")])
    store.set_value("a", "cached")
    store.set_value("b", "cached")
    gui = quick({"a": "typed", "b": "typed", "c": "typed"})
    resolver = InputResolver(store, gui, environ={"A2C_INPUT_A": "set"})
    assert [await resolver.resolve(input_id) for input_id in "abc"] == ["set", "cached", "typed"]
    assert gui.asked == ["c"]


async def test_what_a_person_typed_is_kept_and_what_the_environment_says_is_not() -> None:
    store = InputStore([prompt("a"), prompt("b")])
    gui = quick({"b": "typed"})
    environ = {"A2C_INPUT_A": "1"}
    resolver = InputResolver(store, gui, environ=environ)
    assert await resolver.resolve("a") == "1"
    environ["A2C_INPUT_A"] = "2"
    assert await resolver.resolve("a") == "2"
    assert [await resolver.resolve("b") for _ in range(3)] == ["typed"] * 3
    assert gui.asked == ["b"]
    assert dict(store.values) == {"b": "typed"}


async def test_a_cleared_value_is_asked_for_again() -> None:
    store = InputStore([prompt("a"), prompt("b")])
    gui = quick({"a": "1", "b": "2"})
    resolver = InputResolver(store, gui, environ={})
    await resolver.resolve("a")
    await resolver.resolve("b")
    store.clear_value("a")
    await resolver.resolve("a")
    await resolver.resolve("b")
    assert gui.asked == ["a", "b", "a"]


async def test_a_front_end_replaces_the_last_layer_and_nothing_else(tmp_path: Path) -> None:
    count = tmp_path / "count"
    code = f"open({str(count)!r}, 'a').write('x'); print('from the command')"
    command = {"id": "cmd", "type": "command", "command": shlex.join([sys.executable, "-c", code])}
    pick = {"id": "pick", "type": "pickString", "options": ["x", "y"]}
    store = InputStore([prompt("env"), parse_input(command), parse_input(pick), prompt("object")])
    gui = quick({"pick": "y", "object": {"nested": [1, 2]}, "env": "never", "cmd": "never"})
    resolver = InputResolver(store, gui, environ={"A2C_INPUT_ENV": "from the environment"})
    raw = server("s", *(f"<${{input:{input_id}}}>" for input_id in ("env", "cmd", "pick", "object")))
    for _ in range(2):
        assert args_of(await resolver.config(raw)) == [
            "<from the environment>",
            "<from the command>",
            "<y>",
            '<{"nested": [1, 2]}>',
        ]
    assert gui.asked == ["pick", "object"]
    assert count.read_text() == "x"


async def test_a_default_is_used_when_nobody_can_be_asked_and_not_kept() -> None:
    store = InputStore([prompt("a", default="fallback")])
    assert await InputResolver(store, environ={}).resolve("a") == "fallback"
    assert await InputResolver(store, quick({}), environ={}).resolve("a") == "fallback"
    assert await InputResolver(store, quick({"a": "typed"}), environ={}).resolve("a") == "typed"


async def test_an_empty_default_is_a_default() -> None:
    assert await InputResolver(InputStore([prompt("a", default="")]), environ={}).resolve("a") == ""


async def test_without_a_default_the_error_names_the_input_the_server_and_the_way_out() -> None:
    resolver = InputResolver(InputStore([prompt("api-key")]), environ={})
    with pytest.raises(InputNotFoundError) as caught:
        await resolver.config(server("files", "${input:api-key}"))
    assert caught.value.input_id == "api-key"
    assert "server 'files'" in str(caught.value)
    assert "A2C_INPUT_API_KEY" in str(caught.value)


async def test_a_value_that_is_no_option_is_refused_and_not_kept() -> None:
    pick = parse_input({"id": "p", "type": "pickString", "options": ["a"]})
    store = InputStore([pick])
    for resolver in (
        InputResolver(store, quick({"p": "canary"}), environ={}),
        InputResolver(store, environ={"A2C_INPUT_P": "canary"}),
    ):
        with pytest.raises(InputFailedError) as caught:
            await resolver.resolve("p")
        assert "canary" not in f"{caught.value} {caught.value.payload()}"
    assert not store.values


async def test_a_failed_command_does_not_become_a_prompt() -> None:
    store = InputStore([parse_input({"id": "c", "type": "command", "command": "false"})])
    gui = quick({"c": "typed"})
    with pytest.raises(InputFailedError, match="status 1"):
        await InputResolver(store, gui, environ={}).resolve("c")
    assert gui.asked == []


async def test_layers_compose() -> None:
    layers = CompositeResolver([EnvInputResolver({}), CompositeResolver([EnvInputResolver({"A2C_INPUT_A": "1"})])])
    assert await layers.resolve(prompt("a")) == "1"
    with pytest.raises(InputNotFoundError):
        await layers.resolve(prompt("b"))


# --- configs


async def test_configs_are_rendered_first_and_validated_after() -> None:
    store = InputStore([prompt("off"), prompt("n")])
    resolver = InputResolver(store, environ={"A2C_INPUT_OFF": "yes", "A2C_INPUT_N": "7"})
    config = await resolver.config(server("files", "${input:n}", disabled="${input:off}"))
    assert config.disabled is True
    assert args_of(config) == ["7"]


async def test_an_undefined_id_is_an_error_that_names_the_id_and_the_server() -> None:
    with pytest.raises(InputNotFoundError) as caught:
        await InputResolver(InputStore(), environ={}).config(server("files", "${input:nope}"))
    assert caught.value.input_id == "nope"
    assert "server 'files'" in caught.value.message


async def test_environment_variables_are_rendered_and_missing_ones_named() -> None:
    resolver = InputResolver(InputStore(), environ={"HOME": "/home/me"})
    assert args_of(await resolver.config(server("s", "${env:HOME}/x"))) == ["/home/me/x"]
    with pytest.raises(InvalidConfigError, match=r"server 's': server_parameters.args\[0\]: .*'NO_SUCH' is not set"):
        await resolver.config(server("s", "${env:NO_SUCH}"))


@pytest.mark.parametrize(
    "raw",
    [
        server("s", "${input:a}", colour="red"),
        server("s", "${input:a}", disabled="maybe"),
        server("s ${input:a}"),
        {**server("s", "${input:a}"), "type": "${input:a}"},
        {**server("s", "${input:a}"), "tool_meta": {"${input:a}": {}}},
    ],
)
async def test_a_config_that_is_wrong_as_written_is_refused_before_anyone_is_asked(raw: dict[str, Any]) -> None:
    gui = quick({"a": "1"})
    with pytest.raises(InvalidConfigError, match="server 's"):
        await InputResolver(InputStore([prompt("a")]), gui, environ={}).config(raw)
    assert gui.asked == []


@pytest.mark.parametrize("missing", ["${input:undefined}", "${env:NO_SUCH}"])
async def test_what_nobody_can_give_is_found_before_anyone_is_asked(missing: str) -> None:
    gui = quick({"a": "1"})
    with pytest.raises(BadRequestError, match="server 's'"):
        await InputResolver(InputStore([prompt("a")]), gui, environ={}).config(server("s", "${input:a}", missing))
    assert gui.asked == []


async def test_a_config_that_is_wrong_once_rendered_names_the_field_and_not_the_value() -> None:
    resolver = InputResolver(InputStore([prompt("off")]), quick({"off": "canary"}), environ={})
    with pytest.raises(InvalidConfigError, match="server 'files': disabled: ") as caught:
        await resolver.config(server(disabled="${input:off}"))
    assert "canary" not in f"{caught.value} {caught.value!r} {caught.value.payload()}"


async def test_a_disabled_server_asks_for_nothing_but_what_disables_it() -> None:
    store = InputStore([prompt("off"), prompt("key")])
    gui = quick({"off": True, "key": "never"})
    resolver = InputResolver(store, gui, environ={})
    assert await resolver.is_disabled(server("s", "${input:key}", disabled=True)) is True
    assert await resolver.is_disabled(server("s", "${input:key}")) is False
    assert gui.asked == []
    assert await resolver.is_disabled(server("s", "${input:key}", disabled="${input:off}")) is True
    assert gui.asked == ["off"]


# --- one question, many who wait


async def test_one_prompt_however_many_servers_start_at_the_same_moment() -> None:
    gui = Gui({"key": "typed"})
    resolver = InputResolver(InputStore([prompt("key")]), gui, environ={})
    results: list[list[str]] = []

    async def start(name: str) -> None:
        results.append(args_of(await resolver.config(server(name, "${input:key}", "${input:key}"))))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(start, f"server {number}")
        with anyio.fail_after(20):
            await gui.opened.wait()
        await anyio.wait_all_tasks_blocked()
        gui.typed.set()
    assert results == [["typed", "typed"]] * 20
    assert gui.asked == ["key"]


async def test_a_failure_reaches_everyone_who_waits_and_the_next_one_asks_again() -> None:
    gui = Gui({})
    resolver = InputResolver(InputStore([prompt("key")]), gui, environ={})
    failures: list[BaseException] = []

    async def start() -> None:
        try:
            await resolver.resolve("key")
        except InputNotFoundError as error:
            failures.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(start)
        tasks.start_soon(start)
        await anyio.wait_all_tasks_blocked()
        gui.typed.set()
    assert len(failures) == 2
    assert gui.asked == ["key"]
    await start()
    assert gui.asked == ["key", "key"]


@pytest.mark.parametrize("who", ["first", "second"])
async def test_one_who_gives_up_does_not_take_the_prompt_from_the_others(who: str) -> None:
    gui = Gui({"key": "typed"})
    resolver = InputResolver(InputStore([prompt("key")]), gui, environ={})
    scopes = {"first": anyio.CancelScope(), "second": anyio.CancelScope()}
    results: dict[str, str] = {}

    async def start(name: str) -> None:
        with scopes[name]:
            results[name] = await resolver.resolve("key")

    async with anyio.create_task_group() as tasks:
        for name in scopes:
            tasks.start_soon(start, name)
        await anyio.wait_all_tasks_blocked()
        scopes[who].cancel()
        await anyio.wait_all_tasks_blocked()
        gui.typed.set()
    assert results == {name: "typed" for name in scopes if name != who}
    assert gui.asked == ["key"]
    assert gui.withdrawn == []


async def test_when_everyone_has_given_up_the_prompt_goes_away_and_the_next_one_is_asked() -> None:
    gui = Gui({"key": "typed"})
    resolver = InputResolver(InputStore([prompt("key")]), gui, environ={})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resolver.resolve, "key")
        tasks.start_soon(resolver.resolve, "key")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert gui.withdrawn == ["key"]
    gui.typed.set()
    assert await resolver.resolve("key") == "typed"
    assert gui.asked == ["key", "key"]


async def test_a_question_that_was_changed_is_asked_anew() -> None:
    store = InputStore([prompt("key")])
    gui = Gui({"key": "typed"})
    resolver = InputResolver(store, gui, environ={})
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(resolver.resolve, "key")
        await anyio.wait_all_tasks_blocked()
        store.put(prompt("key", description="another question"))
        tasks.start_soon(resolver.resolve, "key")
        await anyio.wait_all_tasks_blocked()
        gui.typed.set()
    assert gui.asked == ["key", "key"]
