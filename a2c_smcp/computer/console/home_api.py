"""What a page changes about the computer itself: its servers with their config file, and the office that it is in."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.requests import object_body, text_field
from a2c_smcp.computer.console.server_changes import ServerChanges
from a2c_smcp.computer.home import ComputerHome, OfficeDoor
from a2c_smcp.errors import (
    BadRequestError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
)

__all__ = ["MAX_PASTE", "Endpoint", "HomeAPI"]

#: Bytes of what is pasted, or of an entry that is edited.
MAX_PASTE: Final = 64 * 2**10
#: A request around it: each character may be written as an escape.
_MAX_BODY: Final = 8 * MAX_PASTE
_OFFICE_SECONDS: Final = 60.0
#: Characters of an address, of an office's name, and of a key.
_MAX_FIELD: Final = 4096

Endpoint = Callable[[Request], Awaitable[Response]]


class HomeAPI:
    """Routes for what is changed at home. One change is made at a time."""

    def __init__(self, computer: Computer, home: ComputerHome, start_seconds: float = 300.0) -> None:
        self._computer = computer
        self._home = home
        self._servers = ServerChanges(computer, home.config)
        self._start_seconds = start_seconds
        self._change: anyio.CancelScope | None = None
        self._ended = anyio.Event()

    @property
    def reads(self) -> Mapping[str, Endpoint]:
        return {"/home": self._about, "/entry": self._entry, "/clashes": self._clashes}

    @property
    def writes(self) -> Mapping[str, Endpoint]:
        return {
            "/check-servers": self._check,
            "/save-servers": self._save,
            "/cancel-save": self._cancel,
            "/remove-server": self._remove,
            "/join-office": self._join,
            "/leave-office": self._leave,
        }

    async def _about(self, request: Request) -> Response:
        """What can be changed: the file that gets new servers, and how the office is reached."""
        file, offices = self._home.config.home_file, self._home.offices
        return PageResponse(
            {"file": None if file is None else str(file), "office_url": None if offices is None else offices.url}
        )

    # --- servers

    async def _check(self, request: Request) -> Response:
        """What saving would do, for a person who pauses while typing."""
        body = await object_body(request, _MAX_BODY)
        text = _pasted(body)
        if "server" in body:
            return PageResponse(self._servers.check_entry(text_field(body, "server"), text))
        return PageResponse(self._servers.check_paste(text, until_stop=body.get("until_stop") is True))

    async def _entry(self, request: Request) -> Response:
        return PageResponse(self._servers.entry(request.query_params.get("server", "")))

    async def _save(self, request: Request) -> Response:
        body = await object_body(request, _MAX_BODY)
        text = _pasted(body)
        if "server" in body:
            name, digest = text_field(body, "server"), text_field(body, "digest")
            await self._one_at_a_time(lambda: self._servers.edit(name, text, digest))
            return PageResponse({"names": [name]})
        until_stop = body.get("until_stop") is True
        names = await self._one_at_a_time(lambda: self._servers.add(text, until_stop=until_stop))
        return PageResponse({"names": names})

    async def _remove(self, request: Request) -> Response:
        name = text_field(await object_body(request), "server")
        await self._one_at_a_time(lambda: self._servers.remove(name))
        return PageResponse({})

    async def _cancel(self, request: Request) -> Response:
        """Give up the change that is under way, and wait for its end. Its own request says that nothing was changed."""
        await object_body(request)
        if self._change is not None:
            self._change.cancel()
            # For a change that was cancelled to end: the server that was being started is stopped.
            with anyio.move_on_after(30.0):
                await self._ended.wait()
        return PageResponse({})

    async def _one_at_a_time(self, work: Callable[[], Awaitable[Any]]) -> Any:
        if self._change is not None:
            raise TooManyRequestsError("another change of the servers is under way; wait for its end, or cancel it")
        self._ended = anyio.Event()
        scope = self._change = anyio.CancelScope(deadline=anyio.current_time() + self._start_seconds)
        with scope:
            try:
                return await work()
            finally:
                self._change = None
                self._ended.set()
        if anyio.current_time() >= scope.deadline:
            raise RequestTimeoutError(f"it took more than {self._start_seconds:.0f} s; nothing was changed")
        raise BadRequestError("cancelled; nothing was changed")

    async def _clashes(self, request: Request) -> Response:
        """The clashes of tool names, each with the servers that it is about."""
        conflicts = self._computer.tool_conflicts
        return PageResponse(
            {"clashes": [{"text": each.message, "servers": each.details.get("servers", [])} for each in conflicts]}
        )

    # --- the office

    async def _join(self, request: Request) -> Response:
        """Join an office. The key goes in, and never comes out."""
        body = await object_body(request, _MAX_BODY)
        url, office = _field(body, "url").strip(), _field(body, "office").strip()
        key = _field(body, "key") if body.get("key") else None
        if not url or not office:
            raise BadRequestError("an address and the name of an office are needed")
        return await _office_answer(lambda: self._door().join(url, office, key))

    async def _leave(self, request: Request) -> Response:
        await object_body(request)
        return await _office_answer(lambda: self._door().leave())

    def _door(self) -> OfficeDoor:
        if self._home.offices is None:
            raise BadRequestError("this computer is connected by the program that runs it; it joins offices there")
        return self._home.offices


async def _office_answer(work: Callable[[], Awaitable[None]]) -> Response:
    """A refusal is the server's, not the console's: a 401 of the server does not end the session of the page."""
    try:
        with anyio.fail_after(_OFFICE_SECONDS):
            await work()
    except TimeoutError:
        raise RequestTimeoutError(f"the server did not answer in {_OFFICE_SECONDS:.0f} s") from None
    except SMCPError as error:
        return PageResponse(error.payload(), 400)
    return PageResponse({})


def _pasted(body: dict[str, Any]) -> str:
    text = text_field(body, "text")
    if len(text.encode("utf-8", "replace")) > MAX_PASTE:
        raise PayloadTooLargeError(f"a paste has at most {MAX_PASTE // 1024} KiB")
    return text


def _field(body: dict[str, Any], name: str) -> str:
    text = text_field(body, name)
    if len(text) > _MAX_FIELD or not text.isprintable():
        raise BadRequestError(f"field {name!r} must be one line of at most {_MAX_FIELD} characters", {"field": name})
    return text
