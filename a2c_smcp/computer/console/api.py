"""What a page may ask and do: a thin layer over the Computer's public methods, its decisions and its events.

Messages here are for programs, in English. `says` in the details of an error names the page's own text for it.
"""

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing, suppress
from typing import Any

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.console.attendance import BrowserAttendance
from a2c_smcp.computer.console.calls_api import CallsAPI
from a2c_smcp.computer.console.decision_views import whole_call_view
from a2c_smcp.computer.console.feed import FeedResponse, messages
from a2c_smcp.computer.console.home_api import HomeAPI
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.page_json import PageResponse
from a2c_smcp.computer.console.requests import query_field, read_routes, text_field, visitor, write_routes
from a2c_smcp.computer.console.rules_api import RulesAPI
from a2c_smcp.computer.console.sight_api import SightAPI
from a2c_smcp.computer.console.visitors import PageSession
from a2c_smcp.computer.decisions.book import (
    MAX_REASON,
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    DecisionAnswer,
    DecisionChangedError,
    Declined,
    Dismissed,
)
from a2c_smcp.computer.home import ComputerHome
from a2c_smcp.computer.mcp_clients.masking import input_view
from a2c_smcp.errors import BadRequestError, NotFoundError, TooManyRequestsError

__all__ = ["ConsoleAPI"]


class ConsoleAPI:
    """The routes below `/api` for pages with a session. `run` names this run of the console."""

    def __init__(self, computer: Computer, run: str, home: ComputerHome | None = None) -> None:
        self._computer = computer
        self._run = run
        self._streams: set[FeedResponse] = set()
        self._attendance = BrowserAttendance(computer.decisions)
        self.calls = CallsAPI(computer)
        self._others = (
            self.calls,
            SightAPI(computer),
            RulesAPI(computer, self.calls),
            HomeAPI(computer, home or ComputerHome()),
        )

    @property
    def routes(self) -> list[Route]:
        reads = {"/feed": self._feed, "/decision": self._decision, "/inputs": self._inputs, "/log": self._log}
        writes = {
            "/answer": self._answer,
            "/refuse-all": self._refuse_all,
            "/server": self._server,
            "/input": self._input,
        }
        return [*read_routes(reads), *write_routes(writes), *(route for each in self._others for route in each.routes)]

    async def end_streams(self) -> None:
        """Close every stream, so that a stop need not wait for them."""
        for stream in (*self._streams, *self.calls.exports):
            stream.end()
        self._attendance.leave()

    def end_streams_of(self, sessions: Collection[PageSession]) -> None:
        """Close the streams of these sessions."""
        for stream in (*self._streams, *self.calls.exports):
            if stream.session in sessions:
                stream.end()

    # --- live

    async def _feed(self, request: Request) -> Any:
        if request.method == "HEAD":  # nothing would be written to it, so its end would never be noticed
            return Response(media_type=FeedResponse.media_type)
        if len(self._streams) >= CONSOLE_LIMITS.streams:
            raise TooManyRequestsError(f"{CONSOLE_LIMITS.streams} pages follow this computer already; close one")
        return FeedResponse(self._followed(), visitor(request), self._streams)

    async def _followed(self) -> AsyncGenerator[dict[str, Any], None]:
        """What one page is told. While it follows, a person may answer there."""
        with self._attendance.page():
            async with aclosing(messages(self._computer, self._run)) as told:
                async for message in told:
                    yield message

    # --- decisions

    async def _answer(self, request: Request, body: dict[str, Any]) -> None:
        """Decide. The digest is that of what was shown: another call under the same id is not answered."""
        self._computer.decisions.answer(
            text_field(body, "id"), _answer_of(body), by=visitor(request).name, digest=text_field(body, "digest")
        )

    async def _decision(self, request: Request) -> Any:
        """All arguments of a call that waits for its confirmation, with the digest under which they are shown. With
        `secrets` in the query, no password is hidden.
        """
        decision_id = query_field(request, "id")
        for decision in self._computer.decisions.pending:
            if decision.id == decision_id and isinstance(decision, Confirmation):
                # Megabytes are shown: not on the event loop.
                return await anyio.to_thread.run_sync(_whole_call, decision, "secrets" in request.query_params)
        raise NotFoundError("this call does not wait any more")

    async def _refuse_all(self, request: Request, body: dict[str, Any]) -> Any:
        """Refuse the calls that the page shows. A call that came meanwhile was not seen, and is not refused."""
        shown = body.get("shown")
        if not isinstance(shown, list) or not all(isinstance(each, dict) for each in shown):
            raise BadRequestError("field 'shown' must be a list of objects", {"field": "shown"})
        refused, by = 0, visitor(request).name
        for each in shown:
            with suppress(AlreadyDecidedError, DecisionChangedError, NotFoundError):
                digest = text_field(each, "digest")
                self._computer.decisions.answer(text_field(each, "id"), Declined(), by=by, digest=digest)
                refused += 1
        return {"refused": refused}

    # --- servers and inputs

    async def _server(self, request: Request, body: dict[str, Any]) -> None:
        actions = {
            "start": self._computer.start_server,
            "stop": self._computer.stop_server,
            "restart": self._computer.restart_server,
            "login": self._login,
        }
        action = actions.get(text_field(body, "action"))
        if action is None:
            raise BadRequestError(f"field 'action' must be one of {', '.join(actions)}", {"field": "action"})
        await action(text_field(body, "server"))

    async def _login(self, name: str) -> None:
        self._computer.begin_sign_in(name)

    async def _log(self, request: Request) -> Any:
        return {"lines": self._computer.server_logs(query_field(request, "server"))}

    async def _inputs(self, request: Request) -> Any:
        inputs = self._computer.inputs
        return {
            "inputs": [
                {**input_view(definition), "has_value": input_id in inputs.values}
                for input_id, definition in inputs.definitions.items()
            ]
        }

    async def _input(self, request: Request, body: dict[str, Any]) -> None:
        """Set the value of an input, or forget it. No answer ever has a value."""
        if "value" in body:
            self._computer.inputs.set_value(text_field(body, "id"), body["value"])
        else:
            self._computer.inputs.clear_value(text_field(body, "id"))


def _whole_call(decision: Confirmation, secrets: bool) -> Response:
    return PageResponse({**whole_call_view(decision, secrets=secrets), "digest": decision.digest})


def _answer_of(body: Mapping[str, Any]) -> DecisionAnswer:
    match body.get("answer"):
        case "yes":
            return Accepted(body.get("value"))
        case "always":
            return Accepted(always=True)
        case "like":
            return Accepted(widths=_widths(body))
        case "no":
            return Declined(_reason(body))
        case "never":
            return Declined(_reason(body), never=True)
        case "dismiss":
            return Dismissed()
    raise BadRequestError("field 'answer' must be one of yes, like, always, no, never, dismiss", {"field": "answer"})


def _widths(body: Mapping[str, Any]) -> tuple[int, ...]:
    widths = body.get("widths")
    if not isinstance(widths, list) or not all(type(width) is int for width in widths) or len(widths) > 100:
        raise BadRequestError("field 'widths' must be a list of numbers, one for each part", {"field": "widths"})
    return tuple(widths)


def _reason(body: Mapping[str, Any]) -> str:
    reason = body.get("reason", "")
    if not isinstance(reason, str) or len(reason) > MAX_REASON:
        raise BadRequestError(f"field 'reason' must be a text of at most {MAX_REASON} characters", {"field": "reason"})
    return reason
