"""Hostile answers and notifications for a real agent, in both colours.

A computer answers with what is generated here, or with a right answer that was mangled, and notifications of all kinds
come with it. No socket is needed: the agent's link is handed in. Whatever comes, the agent returns something or raises
an `SMCPError` with a code, in time. Nothing else is raised or logged, and an honest computer is answered as ever.
"""

import asyncio
import itertools
import json
import logging
import random
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from a2c_smcp.agent import AgentHandler, AsyncSMCPAgentClient, SMCPAgentClient, text_of
from a2c_smcp.errors import SMCPError
from a2c_smcp.link.interface import Joined, Membership
from a2c_smcp.link.office_link import OfficeLink
from a2c_smcp.packet_text import read_event
from a2c_smcp.smcp import (
    EVENTS,
    GET_CONFIG_EVENT,
    GET_DESKTOP_EVENT,
    GET_FINDER_EVENT,
    GET_TOOLS_EVENT,
    LIST_ROOM_EVENT,
    READ_RESOURCE_EVENT,
    TOOL_CALL_EVENT,
    Kind,
)
from tests.agent.harness import a_document, a_tool
from tests.fuzz.packets import acks

__all__ = ["fuzz_answers"]

OFFICE: Final = "fuzz"
DOCUMENT: Final = "dpe://com.example.docs/report"
_DEADLINE: Final = 60.0
_AT_ONCE: Final = 20
#: For so many answers the agent for threads reads one.
_BLOCKING: Final = 10

_RIGHT: Final[dict[str, Any]] = {
    TOOL_CALL_EVENT: {
        "content": [{"type": "text", "text": "x", "annotations": {"audience": ["user"]}}],
        "structuredContent": {"a": [1, {"b": None}]},
        "isError": False,
        "meta": {"a": 1},
    },
    GET_TOOLS_EVENT: {"tools": [a_tool("t")]},
    GET_CONFIG_EVENT: {"servers": {"s": {"name": "s", "type": "stdio"}}, "inputs": [{"id": "i"}]},
    GET_DESKTOP_EVENT: {"desktops": ["window://h/main\n\nhello"]},
    GET_FINDER_EVENT: {"documents": [a_document()], "total_count": 1},
    READ_RESOURCE_EVENT: {"contents": [{"uri": DOCUMENT, "mimeType": "application/json", "text": '{"pages":[]}'}]},
}
_MEMBERS: Final = [{"sid": name, "name": name, "role": "computer", "office_id": OFFICE} for name in ("evil", "honest")]
#: Texts that are JSON, and hard to swallow.
_HARD: Final = (
    "null", "true", "0", "-0.0", "1e999", '""', "[]", "{}", "9" * 400, '"\\ud800"', '"\\u0000"', '{"a":1,"a":2}',
    "[" * 90 + "]" * 90, "[" * 900 + "]" * 900, "[" + "[]," * 20_000 + "[]]", "[" + '{"type":"text"},' * 2_000 + "1]",
    '{"error":{"code":"x"}}', '{"code":404}', '"' + "[" * 50_000 + '"', '{"audience":[' + "1," * 2_000 + "1]}",
)  # fmt: skip


def answer(source: random.Random, event: str) -> str:
    """The JSON after the ack id; it need not be JSON."""
    if source.random() < 0.2:
        return acks(source)
    if event == READ_RESOURCE_EVENT and source.random() < 0.3:  # the text of a document is JSON as well
        text = source.choice((*_HARD, "[" * 50_000))
        return json.dumps([{"contents": [{"uri": DOCUMENT, "mimeType": "application/json", "text": text}]}])
    text = json.dumps(_RIGHT[event])
    for _ in range(source.randrange(1, 4)):
        text = source.choice((_replaced, _replaced, _cut, _doubled))(source, text)
    return f"[{text}]"


def _spots(text: str) -> list[tuple[int, int]]:
    """Where the values of a JSON text are, roughly: between two of its marks."""
    marks = [at for at, character in enumerate(text) if character in "[]{},:"]
    return [(one + 1, two) for one, two in itertools.pairwise(marks) if two > one + 1] or [(0, len(text))]


def _replaced(source: random.Random, text: str) -> str:
    start, end = source.choice(_spots(text))
    return f"{text[:start]}{source.choice(_HARD)}{text[end:]}"


def _cut(source: random.Random, text: str) -> str:
    start = source.randrange(len(text) + 1)
    return text[:start] + text[start + source.randrange(4) :]


def _doubled(source: random.Random, text: str) -> str:
    start, end = source.choice(_spots(text))
    return f"{text[:end]},{text[start:end]}{text[end:]}"


def notification(source: random.Random) -> str:
    """An event that a hostile or broken server passes on to an agent."""
    name = source.choice([event.name for event in EVENTS.values() if event.kind is Kind.NOTIFICATION])
    fields = {"computer": '"evil"', "office_id": f'"{OFFICE}"', "agent": '"ada"', "req_id": '"1"', "progress": "1"}
    for _ in range(source.randrange(3)):
        fields[source.choice(list(fields))] = source.choice(_HARD)
    body = "{" + ",".join(f'"{key}":{value}' for key, value in fields.items()) + "}"
    body = _cut(source, body) if source.random() < 0.2 else source.choice((body, body, body, source.choice(_HARD)))
    return f'["{name}",{body}]'


class HostileLink(OfficeLink):
    """The way to an office whose computer `evil` answers anything at all, and whose `honest` one answers right."""

    source: ClassVar[random.Random]

    @property
    def connected(self) -> bool:
        return self.membership is not None

    @property
    def joined(self) -> bool:
        return self.connected

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def join(self, membership: Membership) -> None:
        self.membership = membership
        self._on_event(Joined(membership, again=False))

    async def leave(self) -> None:
        self.membership = None

    async def exchange(self, event: str, data: Any, timeout: float, over: object = None) -> str:
        await asyncio.sleep(0)
        if data.get("computer") == "evil":
            return answer(self.source, event)
        return json.dumps([_RIGHT.get(event, {"sessions": _MEMBERS} if event == LIST_ROOM_EVENT else {})])

    async def hear(self, body: str) -> None:
        """As `Connection` takes an event."""
        with suppress(ValueError):
            event, *args = read_event(body)
            await self._dispatch(event, tuple(args))


class _Problems(logging.Handler):
    """What was logged with a traceback: something was not handled."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.levelno >= logging.ERROR:
            self.found.append(f"the log has {record.getMessage()[:300]}")


def fuzz_answers(count: int, seed: int, say: Callable[[str], object] = lambda _: None) -> list[str]:
    """Have agents read so many hostile answers, and as many notifications; what is wrong in the end."""
    logged, package = _Problems(), logging.getLogger("a2c_smcp")
    HostileLink.source = random.Random(seed)
    package.addHandler(logged)
    try:
        problems = asyncio.run(_fuzz(count, HostileLink.source))
        problems += _fuzz_blocking(count // _BLOCKING, HostileLink.source)
    finally:
        package.removeHandler(logged)
    say(f"agent: {count} answers and as many notifications, {count // _BLOCKING} answers in threads")
    return [*problems, *logged.found]


class _Deaf(AgentHandler):
    """Hears everything, and does nothing about it."""


def _agent() -> AsyncSMCPAgentClient:
    return AsyncSMCPAgentClient("http://127.0.0.1:9", name="ada", handler=_Deaf(), link=HostileLink)


async def _fuzz(count: int, source: random.Random) -> list[str]:
    problems: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: problems.append(f"not handled: {context}"[:500]))
    async with _agent() as agent:
        await agent.join_office(OFFICE)
        link = agent._link
        assert isinstance(link, HostileLink)
        for _ in range(0, count, _AT_ONCE):
            some = [_outcome(source.choice(_ASKING)(agent), problems) for _ in range(_AT_ONCE)]
            await asyncio.gather(*some, *(link.hear(notification(source)) for _ in range(_AT_ONCE)))
            if text_of(await agent.call_tool("honest", "t", {}, 60)) != "x" or problems:
                return [*problems, "an honest computer was not answered as ever"]
        await link.hear(f'["notify:enter_office",{{"office_id":"{OFFICE}","computer":"late"}}]')
        async with asyncio.timeout(_DEADLINE):
            while not (late := agent.computers.get("late")) or late.tools is None:  # noqa: ASYNC110 - a test
                await asyncio.sleep(0.01)
    return problems


#: What may be asked of a computer; what its answer is read as differs.
_ASKING: Final[Sequence[Callable[[Any], Any]]] = (
    lambda agent: agent.call_tool("evil", "t", {}, 60),
    lambda agent: agent.get_tools("evil"),
    lambda agent: agent.get_config("evil"),
    lambda agent: agent.get_desktop("evil"),
    lambda agent: agent.get_finder("evil"),
    lambda agent: agent.read_document_metadata("evil", DOCUMENT),
    lambda agent: agent.read_document_pages("evil", DOCUMENT),
)


async def _outcome(asking: Coroutine[Any, Any, Any], problems: list[str]) -> None:
    try:
        async with asyncio.timeout(_DEADLINE):
            await asking
    except SMCPError as error:
        if not isinstance(error.code, int) or not error.code:
            problems.append(f"without a code: {error}"[:300])
    except Exception as error:
        problems.append(f"{type(error).__name__}: {error}"[:300])


def _fuzz_blocking(count: int, source: random.Random) -> list[str]:
    problems: list[str] = []
    blocking = SMCPAgentClient("http://127.0.0.1:9", name="ada")
    blocking._client = _agent()
    with blocking as agent:
        agent.join_office(OFFICE)
        for _ in range(count):
            try:
                source.choice(_ASKING)(agent)
            except SMCPError:
                pass
            except Exception as error:
                problems.append(f"in threads: {type(error).__name__}: {error}"[:300])
    return problems
