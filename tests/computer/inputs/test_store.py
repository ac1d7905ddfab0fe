"""Definitions and values: create, read, update, delete, and who is told."""

import pytest

from a2c_smcp.computer.config.problems import InvalidConfigError
from a2c_smcp.computer.inputs import InputFailedError, InputStore
from a2c_smcp.computer.mcp_clients.model import MCPServerInput, parse_input
from a2c_smcp.errors import InputNotFoundError


def prompt(input_id: str, default: str | None = None) -> MCPServerInput:
    return parse_input({"id": input_id, "type": "promptString", "default": default})


def pick(input_id: str, *options: str) -> MCPServerInput:
    return parse_input({"id": input_id, "type": "pickString", "options": list(options)})


def store_of(*definitions: MCPServerInput) -> tuple[InputStore, list[str]]:
    store = InputStore(definitions)
    told: list[str] = []
    store.subscribe(told.append)
    return store, told


def test_definitions_keep_their_order() -> None:
    store, _ = store_of(prompt("b"), prompt("a"))
    store.add(prompt("c"))
    assert list(store.definitions) == ["b", "a", "c"]


def test_an_id_is_defined_once() -> None:
    store, told = store_of(prompt("a", "1"))
    with pytest.raises(InvalidConfigError, match="input 'a': id: there is another"):
        store.add(prompt("a", "2"))
    assert store.definition("a") == prompt("a", "1")
    assert told == []
    with pytest.raises(InvalidConfigError):
        InputStore([prompt("a"), prompt("a")])


def test_changing_one_input_forgets_its_value_and_keeps_the_others() -> None:
    store, told = store_of(prompt("a"), prompt("b"))
    store.set_value("a", "1")
    store.set_value("b", "2")
    told.clear()
    store.put(prompt("a", "new"))
    assert dict(store.values) == {"b": "2"}
    assert told == ["a"]


def test_the_same_definition_again_changes_nothing() -> None:
    store, told = store_of(prompt("a"))
    store.set_value("a", "1")
    told.clear()
    store.put(prompt("a"))
    assert dict(store.values) == {"a": "1"}
    assert told == []


def test_removing_an_input_removes_its_value() -> None:
    store, told = store_of(prompt("a"), prompt("b"))
    store.set_value("a", "1")
    store.remove("a")
    store.add(prompt("a"))
    assert dict(store.values) == {}
    assert told == ["a", "a", "a"]


def test_listeners_are_told_of_changed_values_only() -> None:
    store, told = store_of(prompt("a"), prompt("b"))
    store.set_value("a", "1")
    store.set_value("a", "1")
    store.set_value("a", "2")
    assert store.clear_value("a") is True
    assert store.clear_value("a") is False
    assert told == ["a", "a", "a"]


def test_clearing_all_values_tells_of_each_that_there_was() -> None:
    store, told = store_of(prompt("a"), prompt("b"), prompt("c"))
    store.set_value("a", "1")
    store.set_value("c", "1")
    told.clear()
    store.clear_values()
    assert told == ["a", "c"]
    assert not store.values


def test_whoever_unsubscribes_hears_no_more() -> None:
    store = InputStore([prompt("a")])
    told: list[str] = []
    unsubscribe = store.subscribe(told.append)
    store.subscribe(lambda _: unsubscribe())
    store.set_value("a", "1")
    store.set_value("a", "2")
    assert told == ["a"]


def test_an_answer_is_kept_without_telling_anyone() -> None:
    store, told = store_of(prompt("a"))
    store.keep_answer(store.definition("a"), "1")
    assert dict(store.values) == {"a": "1"}
    assert told == []


def test_an_answer_that_comes_too_late_is_not_kept() -> None:
    store, _ = store_of(prompt("a"), prompt("b"), prompt("c"))
    asked = dict(store.definitions)
    store.put(prompt("a", "another question"))
    store.remove("b")
    store.set_value("c", "set meanwhile")
    for definition in asked.values():
        store.keep_answer(definition, "late")
    assert dict(store.values) == {"c": "set meanwhile"}


@pytest.mark.parametrize("action", ["definition", "remove", "clear_value", "set_value"])
def test_an_unknown_id_is_named(action: str) -> None:
    store = InputStore()
    with pytest.raises(InputNotFoundError) as caught:
        getattr(store, action)("nope", *(["v"] if action == "set_value" else []))
    assert caught.value.input_id == "nope"


def test_a_value_that_is_no_option_is_refused_without_being_shown() -> None:
    store, told = store_of(pick("p", "a", "b"))
    with pytest.raises(InputFailedError, match="not one of the options") as caught:
        store.set_value("p", "canary")
    assert "canary" not in f"{caught.value} {caught.value.payload()}"
    assert told == []
    store.set_value("p", "b")
    assert dict(store.values) == {"p": "b"}


def test_the_views_cannot_be_written_to() -> None:
    store = InputStore([prompt("a")])
    with pytest.raises(TypeError):
        store.values["a"] = 1  # type: ignore[index]
