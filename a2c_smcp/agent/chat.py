"""`a2c chat`: a conversation with a model that uses the computers of an office. An example to copy.

The parts that an agent of yours needs are `Chat.turn`, and one of the two models: both are about twenty lines. If a
person has to agree to a call, the computer asks the person who sits there. This program asks nothing.

Answers of the model go to stdout, everything else to stderr: `echo "…" | a2c chat | less` shows only the answer.
"""

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias

from a2c_smcp.agent import llm
from a2c_smcp.agent.client import AsyncSMCPAgentClient
from a2c_smcp.errors import BadRequestError, SMCPError, UnauthorizedError
from a2c_smcp.link.interface import LinkOptions
from a2c_smcp.results import text_of
from a2c_smcp.terminal.exits import FAILED, INTERRUPTED, REFUSED
from a2c_smcp.terminal.options import KEY_ADVICE
from a2c_smcp.terminal.screen import say
from a2c_smcp.utils.distribution import install_command
from a2c_smcp.utils.loops import command_loop
from a2c_smcp.utils.signals import call_on_signals
from a2c_smcp.utils.strangers_words import told, told_on_line

__all__ = ["ChatOptions", "ChatService", "chat"]

ChatService: TypeAlias = Literal["auto", "openai", "anthropic"]

_INSTRUCTIONS: Final = "You help a person who sits at a terminal. Use tools to find out and to act. Answer briefly."
_HELP: Final = """\
/computers        who is in the office
/desktop [NAME]   what shows on the computers, or on one of them
/find WORDS       documents that have any of these words
/clear            begin a new conversation
/help             this text
/quit             leave; so does Ctrl-D
Anything else goes to the model. Ctrl-C stops its turn and cancels the tools that run."""
#: A model that calls tools again and again is stopped after this many requests.
_MOST_REQUESTS: Final = 50
#: The most tokens of one answer; Anthropic's API wants to know.
_ANSWER_TOKENS: Final = 8192
_CONTEXT_CHARACTERS: Final = 6000
_UNFINISHED: Final = "[Your last turn was stopped before its end.]"


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """Which office, and which model."""

    link: LinkOptions
    office: str
    name: str
    model: str
    service: ChatService = "auto"
    endpoint: str | None = None
    timeout: int = 300
    approval_timeout: int = 600
    images: bool = True

    @property
    def style(self) -> llm.Style:
        """The API to speak. Models of Anthropic are called claude-…; most other services speak OpenAI's chat."""
        if self.service == "auto":
            return "anthropic" if self.model.startswith("claude") else "openai"
        return self.service


# --- models


@dataclass(slots=True)
class Tokens:
    """What the requests of a conversation used."""

    requests: int = 0
    read: int = 0
    written: int = 0

    def __str__(self) -> str:
        return f"tokens: {self.read} read, {self.written} written, in {self.requests} requests"

    def add(self, read: int | None, written: int | None) -> None:
        self.requests += 1
        self.read += read or 0
        self.written += written or 0


class ServiceFailedError(Exception):
    """The service refused a request, or broke off."""


@dataclass(slots=True)
class Model:
    """A model's API. `answer` streams one answer, and returns what `run_tool_calls` takes."""

    client: Any
    name: str
    tokens: Tokens = field(default_factory=Tokens)

    async def answer(self, system: str, messages: list[Any], tools: list[Any], on_text: Callable[[str], None]) -> Any:
        raise NotImplementedError


class OpenAIModel(Model):
    """OpenAI's chat completions, which many services and local servers speak, too."""

    async def answer(self, system: str, messages: list[Any], tools: list[Any], on_text: Callable[[str], None]) -> Any:
        stream = await self.client.chat.completions.create(
            model=self.name,
            messages=[{"role": "system", "content": system}, *messages],
            tools=tools,
            stream=True,
            stream_options={"include_usage": True},
        )
        chunks, usage = [], None
        async with stream:
            async for chunk in stream:
                chunks.append(chunk)
                usage = chunk.usage or usage
                if chunk.choices and chunk.choices[0].delta.content:
                    on_text(chunk.choices[0].delta.content)
        self.tokens.add(*((usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)))
        return chunks


class AnthropicModel(Model):
    """Anthropic's messages."""

    async def answer(self, system: str, messages: list[Any], tools: list[Any], on_text: Callable[[str], None]) -> Any:
        # The tools and the system prompt stay the same for a while: the service need not read them again.
        cached = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
        async with self.client.messages.stream(
            model=self.name, max_tokens=_ANSWER_TOKENS, system=cached, messages=messages, tools=tools
        ) as stream:
            async for text in stream.text_stream:
                on_text(text)
            answer = await stream.get_final_message()
        self.tokens.add(answer.usage.input_tokens, answer.usage.output_tokens)
        return answer


def make_model(options: ChatOptions) -> Model:
    """The model behind its SDK."""
    key = _key(options, "ANTHROPIC_API_KEY" if options.style == "anthropic" else "OPENAI_API_KEY")
    if options.style == "anthropic":
        from anthropic import AsyncAnthropic

        return AnthropicModel(AsyncAnthropic(base_url=options.endpoint, api_key=key), options.model)
    from openai import AsyncOpenAI

    return OpenAIModel(AsyncOpenAI(base_url=options.endpoint, api_key=key), options.model)


def _key(options: ChatOptions, variable: str) -> str:
    if key := os.environ.get(variable):
        return key
    if options.endpoint is None:
        raise BadRequestError(f"set {variable} to the key of the service, or name another service with --endpoint")
    return "none"  # a server on this machine needs no key, but the SDK wants one


# --- the conversation


@dataclass(slots=True)
class Chat:
    """One conversation. `turn` is the loop of every agent: ask, run the tools, append, ask again."""

    agent: AsyncSMCPAgentClient
    model: Model
    options: ChatOptions
    messages: list[Any] = field(default_factory=list)
    context: llm.OfficeContext | None = None
    system: str = ""
    is_unfinished: bool = False

    async def turn(self, text: str) -> None:
        """One turn: send what the person says, run the tools that the model calls, and show its answer."""
        self.context = await llm.office_context(self.agent, budget=_CONTEXT_CHARACTERS, task=text, since=self.context)
        if not self.system:
            # Later changes are told in the conversation: so the system prompt stays in the service's cache.
            self.system = f"{_INSTRUCTIONS}\n\n{self.context.text}"
        notes = [_UNFINISHED if self.is_unfinished else "", self.context.changes, text]
        self.messages.append({"role": "user", "content": "\n\n".join(filter(None, notes))})
        self.is_unfinished = True
        for _ in range(_MOST_REQUESTS):
            tools = await llm.office_tools(self.agent, self.options.style)
            answer = ShownAnswer()
            try:
                reply = await self.model.answer(self.system, self.messages, tools, answer.show)
            except Exception as error:  # an SDK also passes on what its HTTP client and its JSON parser raise
                raise ServiceFailedError(error) from error
            finally:
                answer.end()
            if not (more := await self._run(reply)):
                self.messages.append({"role": "assistant", "content": answer.text or "(nothing)"})
                self.is_unfinished = False
                return
            self.messages += more
        note(f"stopped after {_MOST_REQUESTS} requests; say something to go on")

    async def _run(self, reply: Any) -> list[Any]:
        limits: Any = {"timeout": self.options.timeout, "approval_timeout": self.options.approval_timeout}
        return await llm.run_tool_calls(self.agent, reply, events=shown_calls(), images=self.options.images, **limits)

    # --- what the person asks without the model

    async def command(self, line: str) -> None:
        name, _, rest = line.partition(" ")
        match name:
            case "/computers":
                with suppress(SMCPError):  # a computer may take long to list its tools
                    await self.agent.settled(3)
                for view in self.agent.computers.values():
                    note(f"{view.name}: {len(view.tools) if view.tools else 'no'} tools", one_line=True)
                if not self.agent.computers:
                    note(self.agent.problem or "nobody is in the office")
            case "/desktop":
                await self._of_each(rest.strip() or None, self._desktop)
            case "/find":
                await self._of_each(None, lambda computer: self._documents(computer, rest.split()))
            case "/clear":
                self.messages, self.context, self.system, self.is_unfinished = [], None, "", False
                note("a new conversation")
            case "/help":
                note(_HELP)
            case _:
                note(f"there is no command {told_on_line(name, 100)}; /help shows the commands")

    async def _of_each(self, computer: str | None, show: Callable[[str], Awaitable[None]]) -> None:
        for name in [computer] if computer else list(self.agent.computers):
            try:
                await show(name)
            except SMCPError as error:
                note(f"{name}: {error.message}", one_line=True)

    async def _desktop(self, computer: str) -> None:
        windows = await self.agent.get_desktop(computer)
        note("\n\n".join([f"{computer}:", *(told(window, 2000) for window in windows or ["nothing shows"])]))

    async def _documents(self, computer: str, words: list[str]) -> None:
        page = await self.agent.get_finder(computer, words or None)
        found = [f"{document['title']}  {document['uri']}" for document in page["documents"]]
        for line in found or ["no documents"]:
            note(f"{computer}: {line}", one_line=True)


# --- what is shown


def note(text: str, *, one_line: bool = False) -> None:
    """Show what is not the model's answer. `one_line` is for a line with words of others."""
    say(text, err=True, one_line=one_line)


class ShownAnswer:
    """The model's words, shown as they come."""

    def __init__(self) -> None:
        self.text = ""

    def show(self, text: str) -> None:
        self.text += text
        say(text, end="")

    def end(self) -> None:
        if self.text and not self.text.endswith("\n"):
            say("")


def shown_calls() -> llm.CallEvents:
    """Shows tool calls while they run: what is called, its progress, and its outcome."""
    began: dict[str, float] = {}
    told: dict[str, float] = {}

    async def on_start(call: llm.ToolRequest) -> None:
        began[call.id] = time.monotonic()
        given = ", ".join(told_on_line(f"{name}={value}", 80) for name, value in (call.arguments or {}).items())
        note(f"→ {_shown_name(call)}({told_on_line(given, 300)})", one_line=True)

    async def on_progress(call: llm.ToolRequest, progress: float, total: float | None, message: str | None) -> None:
        # One line a second is enough for a person.
        if time.monotonic() - told.get(call.id, 0.0) > 1:
            told[call.id] = time.monotonic()
            done = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
            note(f"  {_shown_name(call)}: {done}{f', {message}' if message else ''}", one_line=True)

    async def on_waiting(call: llm.ToolRequest) -> None:
        note(f"  {_shown_name(call)} waits for the person at {call.computer}", one_line=True)

    async def on_end(call: llm.ToolRequest, result: Any) -> None:
        seconds = time.monotonic() - began.get(call.id, time.monotonic())
        first = next(iter(text_of(result).strip().splitlines()), "")
        outcome = "failed" if result.is_error else "done"
        note(f"← {_shown_name(call)} {outcome} after {seconds:.1f} s: {told_on_line(first, 100)}", one_line=True)

    return llm.CallEvents(on_start, on_progress, on_waiting, on_end)


def _shown_name(call: llm.ToolRequest) -> str:
    return f"{call.computer}: {call.tool}" if call.computer else call.name


# --- the program


def chat(options: ChatOptions) -> int:
    """Hold the conversation, and return the exit status."""
    if find_spec(options.style) is None:  # the SDKs are called as the styles are
        note(f"a2c chat needs {options.style}: {install_command('chat')}")
        return FAILED
    try:
        # Whatever comes over a pipe is one message. It is read here, where Ctrl-C still ends the program.
        piped = None if sys.stdin.isatty() else sys.stdin.read().strip()
        if piped == "":
            note('a2c chat: nothing came over the pipe; echo "…" | a2c chat')
            return FAILED
        with asyncio.Runner(loop_factory=command_loop) as runner:
            return runner.run(_Program(options, piped).run())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return INTERRUPTED


class _Program:
    """Reads what the person says, and lets the chat take its turns."""

    def __init__(self, options: ChatOptions, piped: str | None) -> None:
        self._options = options
        self._piped = piped
        self._running: asyncio.Task[Any] | None = None
        """What Ctrl-C stops: a turn, or else the whole program."""

    async def run(self) -> int:
        self._running = asyncio.current_task()
        call_on_signals(lambda: self._running and self._running.cancel(), "SIGINT")
        async with AsyncExitStack() as stack:
            try:
                link = replace(self._options.link, office=self._options.office)
                agent = await stack.enter_async_context(AsyncSMCPAgentClient(link, name=self._options.name))
                await agent.join_office(self._options.office)
                model = make_model(self._options)
                stack.push_async_callback(model.client.close)
            except SMCPError as error:
                note(f"a2c chat: {error}")
                if isinstance(error, UnauthorizedError):
                    note(KEY_ADVICE)
                return REFUSED
            status = await self._talk(Chat(agent, model, self._options))
            note(str(model.tokens))
            return status

    async def _talk(self, chat: Chat) -> int:
        if self._piped is not None:
            return await self._take(chat, self._piped)
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output

        session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
        note(f"You talk with {self._options.model} in the office {self._options.office}. /help shows commands.")
        while True:
            try:
                line = (await session.prompt_async("> ", handle_sigint=False)).strip()
            except KeyboardInterrupt:
                note("Ctrl-D or /quit leaves")
                continue
            except EOFError:
                return 0
            if line == "/quit":
                return 0
            await self._take(chat, line)

    async def _take(self, chat: Chat, line: str) -> int:
        """Let the chat take a line. Ctrl-C stops it, and the tools that it runs are cancelled at the computers."""
        if not line:
            return 0
        turn = asyncio.create_task(chat.command(line) if line.startswith("/") else chat.turn(line))
        whole, self._running = self._running, turn
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                raise
            note("\nstopped; the tools that ran were cancelled")
            return INTERRUPTED
        except (ServiceFailedError, SMCPError) as error:
            note(f"{'the office' if isinstance(error, SMCPError) else 'the service'}: {told(str(error), 1000)}")
            if getattr(error.__cause__, "status_code", None) in (400, 413, 422):  # it refuses the conversation itself
                note("if it refuses every message now, begin a new conversation: /clear")
            return REFUSED
        finally:
            self._running = whole
        return 0
