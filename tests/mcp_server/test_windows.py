"""Windows as a mapping: what is listed, what is read, what is said of a change, and what is refused."""

from typing import Any

import pytest
from mcp_types import TextResourceContents

from a2c_smcp.mcp_server.changes import Changes
from a2c_smcp.mcp_server.resources import UnknownResourceError
from a2c_smcp.mcp_server.server import ContextServer
from a2c_smcp.mcp_server.windows import Window, Windows

HOST = "com.example.shop"
DOOR = f"window://{HOST}/door"


class Said(Changes):
    """Writes down what is said."""

    def __init__(self) -> None:
        super().__init__(1, 1)
        self.said: list[str] = []

    def resources_changed(self) -> None:
        self.said.append("list")

    def updated(self, topic: str) -> None:
        self.said.append(topic)

    def take(self) -> list[str]:
        taken, self.said = self.said, []
        return taken


@pytest.fixture
def changes() -> Said:
    return Said()


@pytest.fixture
def windows(changes: Said) -> Windows:
    made = Windows(HOST, changes)
    made["door"] = Window("open")
    changes.take()
    return made


async def uris(windows: Windows) -> list[str]:
    return [resource.uri for resource in (await windows.listing(0, 100)).resources]


async def text(windows: Windows, uri: str) -> str:
    [content] = await windows.read(uri)
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_setting_changing_and_deleting_is_said(windows: Windows, changes: Said) -> None:
    windows["till"] = Window("empty")
    assert changes.take() == ["list"]
    windows["door"] = Window("closed")
    assert changes.take() == [DOOR]
    windows["door"] = Window("closed")
    assert changes.take() == []
    windows["door"] = Window("closed", priority=5)  # another URI
    assert changes.take() == ["list"]
    assert windows.uri("door") == f"{DOOR}?priority=5"
    windows["door"] = Window("open", priority=5, title="The door")
    assert changes.take() == ["list", f"{DOOR}?priority=5"]
    del windows["door"]
    assert changes.take() == ["list"]
    assert await uris(windows) == [f"window://{HOST}/till"]


async def test_a_changed_window_keeps_its_place(windows: Windows) -> None:
    windows["till"] = Window("empty")
    windows["door"] = Window("closed", priority=3)
    assert await uris(windows) == [f"{DOOR}?priority=3", f"window://{HOST}/till"]


async def test_a_function_is_asked_whenever_the_window_is_read(windows: Windows, changes: Said) -> None:
    texts = iter(["one", "two", "three"])

    async def later() -> str:
        return next(texts)

    windows["clock"] = Window(lambda: next(texts))
    assert changes.take() == ["list"]
    assert [await text(windows, f"window://{HOST}/clock") for _ in range(2)] == ["one", "two"]
    windows["clock"] = Window(later)
    windows.changed("clock")
    assert changes.take() == [f"window://{HOST}/clock"] * 2
    assert await text(windows, f"window://{HOST}/clock") == "three"


async def test_paths_are_segments_and_two_spellings_are_one_window(windows: Windows) -> None:
    windows["a/b"] = Window("x")
    assert windows["a", "b"].text == "x" and ("a", "b") in windows and "a/b" in windows
    windows[("a/b", "c d")] = Window("y")
    windows[""] = Window("z")
    assert (await uris(windows))[1:] == [f"window://{HOST}/a/b", f"window://{HOST}/a%2Fb/c%20d", f"window://{HOST}"]
    assert list(windows) == ["door", "a/b", ("a/b", "c d"), ""]
    assert object() not in windows
    windows.clear()
    assert await uris(windows) == []


async def test_only_listed_uris_are_read_byte_for_byte(windows: Windows) -> None:
    windows["door"] = Window("open", priority=1, fullscreen=True, params={"x": "y"})
    uri = f"{DOOR}?x=y&priority=1&fullscreen=true"
    assert await text(windows, uri) == "open"
    for other in (DOOR, f"{uri}&z=1", "window://other/door"):
        with pytest.raises(UnknownResourceError):
            await windows.read(other)


async def test_a_lone_surrogate_does_not_end_the_connection(windows: Windows) -> None:
    windows["door"] = Window("bad \ud800 text", title="\udfff")
    assert await text(windows, DOOR) == "bad \ufffd text"
    assert (await windows.listing(0, 1)).resources[0].name == "\ufffd"


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Window("x", priority=200), "an integer from 0 to 100, not 200"),
        (lambda: Window("x", priority=True), "an integer from 0 to 100, not True"),
        (lambda: Window("x", fullscreen=1), "true or false, not 1"),  # type: ignore[arg-type]
        (lambda: Window(b"x"), "a text, or a function that returns one, not bytes"),  # type: ignore[arg-type]
        (lambda: Window("x", title=3), "a window's title is a text, not int"),  # type: ignore[arg-type]
        (lambda: Window("x", params={"priority": "1"}), "priority is a field"),
        (lambda: ContextServer("s", host=""), "'' cannot be the host of a window or a document: the host is missing"),
        (lambda: ContextServer("s", host="a b"), "'a b' cannot be the host"),
        (lambda: ContextServer("s", host="me@x"), "user information"),
        (lambda: ContextServer("", host="x"), "needs a name"),
        (lambda: ContextServer("s", host="x", page_size=0), "from 1 up, not 0"),
        (
            lambda: ContextServer("s", host="x", windows={"a/b": Window("1"), ("a", "b"): Window("2")}),
            "there is a window .* already",
        ),
    ],
)
def test_what_cannot_work_is_said_when_it_is_made(make: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


@pytest.mark.parametrize("path", ["a//b", "/a", "a/", ("a", "")])
def test_a_path_that_is_no_uri_is_refused_and_changes_nothing(path: Any, windows: Windows, changes: Said) -> None:
    with pytest.raises(ValueError, match="cannot have a URI"):
        windows[path] = Window("x")
    with pytest.raises(TypeError, match="is a Window, not str"):
        windows["door"] = "text"  # type: ignore[assignment]
    assert (changes.take(), list(windows)) == ([], ["door"])


def test_two_functions_for_one_window_are_refused() -> None:
    server = ContextServer("s", host="x")
    server.window("clock", priority=3)(lambda: "now")
    with pytest.raises(ValueError, match="there is a window 'clock' already"):
        server.window("clock")(lambda: "then")
    assert server.windows.uri("clock") == "window://x/clock?priority=3"
