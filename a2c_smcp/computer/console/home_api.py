"""What a page changes about the computer itself: its servers with their config file, and the office that it is in."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

import anyio
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.requests import read_routes, text_field, write_routes
from a2c_smcp.computer.console.server_changes import ServerChanges
from a2c_smcp.computer.home import ComputerHome, OfficeDoor
from a2c_smcp.errors import (
    BadRequestError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
)

__all__ = ["HomeAPI"]


class HomeAPI:
    """The routes for changes at home. One change of the servers is made at a time."""

    def __init__(self, computer: Computer, home: ComputerHome, start_seconds: float = 300.0) -> None:
        self._computer = computer
        self._home = home
        self._servers = ServerChanges(computer, home.config)
        self._start_seconds = start_seconds
        self._change: anyio.CancelScope | None = None
        self._ended = anyio.Event()

    @property
    def routes(self) -> list[Route]:
        reads = {"/home": self._about, "/entry": self._entry, "/clashes": self._clashes, "/shared": self._shared}
        writes = {
            "/check-servers": self._check,
            "/save-servers": self._save,
            "/cancel-save": self._cancel,
            "/remove-server": self._remove,
            "/join-office": self._join,
            "/leave-office": self._leave,
        }
        # Each character of a paste may be written as an escape.
        return [*read_routes(reads), *write_routes(writes, 8 * CONSOLE_LIMITS.paste_bytes)]

    async def _about(self, request: Request) -> Any:
        """What can be changed: the file that gets new servers, and the address of the office's server."""
        file, offices = self._home.config.home_file, self._home.offices
        return {"file": None if file is None else str(file), "office_url": None if offices is None else offices.url}

    # --- servers

    async def _check(self, request: Request, body: dict[str, Any]) -> Any:
        """What saving would do. Asked when a person pauses while typing."""
        text = _pasted(body)
        if "server" in body:
            return self._servers.check_entry(text_field(body, "server"), text)
        return self._servers.check_paste(text, until_stop=body.get("until_stop") is True)

    async def _entry(self, request: Request) -> Any:
        return self._servers.entry(request.query_params.get("server", ""))

    async def _save(self, request: Request, body: dict[str, Any]) -> Any:
        text = _pasted(body)
        if "server" in body:
            name, digest = text_field(body, "server"), text_field(body, "digest")
            await self._one_at_a_time(lambda: self._servers.edit(name, text, digest))
            return {"names": [name]}
        until_stop = body.get("until_stop") is True
        return {"names": await self._one_at_a_time(lambda: self._servers.add(text, until_stop=until_stop))}

    async def _remove(self, request: Request, body: dict[str, Any]) -> None:
        name = text_field(body, "server")
        sign_out = body.get("sign_out") is True
        await self._one_at_a_time(lambda: self._servers.remove(name, sign_out=sign_out))

    async def _cancel(self, request: Request, body: dict[str, Any]) -> None:
        """Cancel the change that is under way, and wait for its end. Its request answers that nothing was changed."""
        if self._change is not None:
            self._change.cancel()
            with anyio.move_on_after(30.0):  # the server that was being started is stopped meanwhile
                await self._ended.wait()

    async def _one_at_a_time(self, work: Callable[[], Awaitable[Any]]) -> Any:
        if self._change is not None:
            raise TooManyRequestsError("another change of the servers is under way; wait until it ends, or cancel it")
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

    async def _shared(self, request: Request) -> Any:
        """What each server that runs shares with agents."""
        return {"shared": {server: asdict(counts) for server, counts in self._computer.shared.counts.items()}}

    async def _clashes(self, request: Request) -> Any:
        """The clashes of tool names, each with its servers."""
        conflicts = self._computer.tool_conflicts
        return {"clashes": [{"text": each.message, "servers": each.details.get("servers", [])} for each in conflicts]}

    # --- the office

    async def _join(self, request: Request, body: dict[str, Any]) -> Response:
        """Join an office. No answer ever has the key."""
        url, office = _field(body, "url").strip(), _field(body, "office").strip()
        key = _field(body, "key") if body.get("key") else None
        if not url or not office:
            raise BadRequestError("the address of a server and the name of an office are needed")
        return await _office_answer(lambda: self._door().join(url, office, key))

    async def _leave(self, request: Request, body: dict[str, Any]) -> Response:
        return await _office_answer(lambda: self._door().leave())

    def _door(self) -> OfficeDoor:
        if self._home.offices is None:
            raise BadRequestError("the program that runs this computer joins offices; this page cannot")
        return self._home.offices


async def _office_answer(work: Callable[[], Awaitable[None]]) -> Response:
    """A refusal of the server is sent as 400: its 401 must not end the session of the page."""
    try:
        with anyio.fail_after(CONSOLE_LIMITS.office_seconds):
            await work()
    except TimeoutError:
        raise RequestTimeoutError(f"the server did not answer in {CONSOLE_LIMITS.office_seconds:.0f} s") from None
    except SMCPError as error:
        return PageResponse(error.payload(), 400)
    return PageResponse({})


def _pasted(body: dict[str, Any]) -> str:
    text = text_field(body, "text")
    if len(text.encode("utf-8", "replace")) > CONSOLE_LIMITS.paste_bytes:
        raise PayloadTooLargeError(f"a paste has at most {CONSOLE_LIMITS.paste_bytes // 1024} KiB")
    return text


def _field(body: dict[str, Any], name: str) -> str:
    text, most = text_field(body, name), CONSOLE_LIMITS.field_characters
    if len(text) > most or not text.isprintable():
        raise BadRequestError(f"field {name!r} must be one line of at most {most} characters", {"field": name})
    return text
