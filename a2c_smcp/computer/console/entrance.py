"""The ways into a console: links and remembered browsers; and what a page without a session may ask."""

import logging
import os
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, Literal

from starlette.requests import Request
from starlette.routing import Route

from a2c_smcp.computer.console.device_names import DeviceNames, device_name
from a2c_smcp.computer.console.device_proofs import Challenges, decoded, is_public_key, is_signed, signed_text
from a2c_smcp.computer.console.devices import Device, DeviceBook
from a2c_smcp.computer.console.limits import CONSOLE_LIMITS
from a2c_smcp.computer.console.memory import ConsoleMemory
from a2c_smcp.computer.console.qr_codes import qr_image
from a2c_smcp.computer.console.requests import read_routes, text_field, visitor, write_routes
from a2c_smcp.computer.console.visitors import PageSession, VisitorBook
from a2c_smcp.computer.utils.callbacks import ignore
from a2c_smcp.computer.watching.events import ConsoleSignIn
from a2c_smcp.errors import BadRequestError, ForbiddenError, InternalError, NotFoundError
from a2c_smcp.utils.limited_log import LimitedLog

__all__ = ["OUTSIDE", "Advice", "Door", "Entrance"]

logger = logging.getLogger(__name__)

#: The paths that are answered without a session.
OUTSIDE: Final = frozenset({"/api/session", "/api/challenge", "/api/door"})
#: How many refused sign-ins of one run are told: whoever tries must not fill the record.
_TOLD_REFUSALS: Final = 100


class Advice(StrEnum):
    """How a person who has no link gets one."""

    PROMPT = "prompt"
    """Type `console` at the computer's prompt."""
    SIGNAL = "signal"
    """Send SIGUSR1 to the process. It prints a link."""
    PROGRAM = "program"
    """Ask the program that uses the library."""


@dataclass(frozen=True, slots=True)
class Door:
    """Where the console is, and what it tells a page without a session."""

    base: str
    """Scheme, host and port, as a link starts."""
    host: str
    port: int
    is_local: bool
    """Whether only this machine reaches it. Otherwise there is a certificate."""
    advice: Advice = Advice.PROGRAM


class Entrance:
    """The routes about sessions and remembered browsers. `end_streams` ends the streams of the sessions it is given."""

    def __init__(
        self,
        visitors: VisitorBook,
        door: Door,
        run: str,
        memory: ConsoleMemory | None,
        end_streams: Callable[[Collection[PageSession]], None],
        on_sign_in: Callable[[ConsoleSignIn], None] = ignore,
    ) -> None:
        self._on_sign_in = on_sign_in
        self._refusals = 0
        self._visitors = visitors
        self._door = door
        self._run = run
        self._memory = memory
        self._end_streams = end_streams
        self._clock: Callable[[], float] = time.monotonic
        self._calendar: Callable[[], float] = time.time
        self._devices = DeviceBook(memory.found.devices if memory else ())
        self._challenges = Challenges()
        self._names = DeviceNames(device.name for device in self._devices.all)
        self._log = LimitedLog(logger)

    @property
    def routes(self) -> list[Route]:
        writes = {
            "/session": self._enter,
            "/challenge": self._challenge,
            "/remember": self._remember,
            "/revoke": self._revoke,
            "/link": self._link,
        }
        reads = {"/door": self._say_advice, "/alive": self._alive, "/devices": self._list}
        return [*read_routes(reads), *write_routes(writes, CONSOLE_LIMITS.small_body_bytes)]

    def new_link(self) -> str:
        """A link that works once."""
        return f"{self._door.base}/#link={self._visitors.new_token(self._clock())}"

    def find(self, key: str) -> PageSession | None:
        """The session with this key. If its browser is remembered, its last use is noted."""
        session = self._visitors.find(key)
        if session is not None and session.device is not None and self._devices.use(session.device, self._calendar()):
            self._keep_if_possible()
        return session

    # --- from outside

    async def _enter(self, request: Request, body: dict[str, Any]) -> Any:
        by: Literal["link", "device"] = "device" if "device" in body else "link"
        address = None if request.client is None else request.client.host
        try:
            key, session = self._by_device(request, body) if by == "device" else self._by_link(request, body)
        except ForbiddenError:
            self._refusals += 1
            if self._refusals <= _TOLD_REFUSALS:
                self._on_sign_in(ConsoleSignIn("refused", None, by, address))
            raise
        self._on_sign_in(ConsoleSignIn("entered", session.name, by, address))
        return {"key": key, "run": self._run, "device": session.name}

    def _by_link(self, request: Request, body: dict[str, Any]) -> tuple[str, PageSession]:
        def session() -> PageSession:
            return PageSession(self._names.new(device_name(request.headers.get("user-agent", ""))))

        admitted = self._visitors.redeem(text_field(body, "token"), session, self._clock())
        if admitted is None:
            self._log.warn("links", "refused a link that was used already, or is not ours")
            raise ForbiddenError("this link was used already, or is too old; get a fresh one")
        return admitted

    def _by_device(self, request: Request, body: dict[str, Any]) -> tuple[str, PageSession]:
        given = [text_field(body, name) for name in ("device", "challenge", "signature")]
        token = text_field(body, "token") if "token" in body else None
        device = self._signed_by(request.headers["origin"].lower(), *given)
        if device is None:
            # The same answer for every failure: an attacker learns nothing from it.
            self._log.warn("devices", "refused a browser that is not remembered, or whose signature is wrong")
            raise ForbiddenError("this browser is not remembered; get a link")
        admitted = self._visitors.admit(PageSession(device.name, device.id), self._clock())
        self._challenges.close(given[1], self._clock())
        if token is not None:
            # The browser came by a link that it did not need. That link must not work again.
            self._visitors.discard(token)
        if self._devices.use(device.id, self._calendar()):
            self._keep_if_possible()
        return admitted

    def _signed_by(self, origin: str, device_id: str, challenge: str, signature: str) -> Device | None:
        """The device that signed an open challenge; `None` if anything is wrong."""
        device, raw = self._devices.find(device_id, self._calendar()), decoded(signature, 64)
        if self._memory is None or device is None or raw is None:
            return None
        if not self._challenges.is_open(challenge, self._clock()):
            return None
        text = signed_text(challenge, origin, self._memory.found.computer)
        return device if is_signed(device.public_key, raw, text) else None

    async def _challenge(self, request: Request, body: dict[str, Any]) -> Any:
        computer = self._needed_memory().found.computer
        return {"challenge": self._challenges.new(self._clock()), "computer": computer}

    async def _say_advice(self, request: Request) -> Any:
        pid = os.getpid() if self._door.is_local and self._door.advice is Advice.SIGNAL else None
        return {"advice": self._door.advice, "pid": pid, "remembers": self._memory is not None}

    # --- from inside

    async def _alive(self, request: Request) -> None:
        """A tab that hears the stream through another tab says that it is in use."""
        visitor(request).followed_until = self._clock() + CONSOLE_LIMITS.alive_seconds

    async def _list(self, request: Request) -> Any:
        here, now = visitor(request), self._calendar()
        devices = [
            {
                "id": device.id,
                "name": device.name,
                "granted": device.granted,
                "used": device.used,
                "expires": device.expires,
                "here": device.id == here.device,
            }
            for device in self._devices.all
            if device.expires >= now
        ]
        pages = [
            {"name": session.name, "here": session is here}
            for session in self._visitors.sessions
            if session.device is None
        ]
        computer = self._memory.found.computer if self._memory else None
        return {"computer": computer, "devices": devices, "pages": pages, "others_reach_it": not self._door.is_local}

    async def _remember(self, request: Request, body: dict[str, Any]) -> Any:
        """Let this browser in without a link from now on."""
        memory = self._needed_memory()
        here, key = visitor(request), decoded(text_field(body, "key"), 65)
        if key is None or not is_public_key(key):
            raise BadRequestError("field 'key' must be a public key of P-256", {"field": "key"})
        device = self._devices.grant(here.name, key, self._calendar(), here.device)
        try:
            # The browser's key belongs to this origin, so this port is remembered.
            self._keep(host=self._door.host, port=self._door.port)
        except OSError as error:
            self._devices = DeviceBook(memory.found.devices)
            raise InternalError(
                f"this browser cannot be remembered: the file cannot be written: {error.strerror}"
            ) from None
        here.device = device.id
        logger.info("the browser %s is remembered", device.name)
        self._on_sign_in(ConsoleSignIn("remembered", device.name, "device"))
        return {"device": device.id, "computer": memory.found.computer}

    async def _revoke(self, request: Request, body: dict[str, Any]) -> None:
        """End the sessions and streams of a remembered browser, or of a page that came by a link."""
        if "device" in body:
            device = text_field(body, "device")
            known = self._devices.revoke(device)
            ended = [session for session in self._visitors.sessions if session.device == device]
        else:
            page = text_field(body, "page")
            ended = [each for each in self._visitors.sessions if each.device is None and each.name == page]
            known = bool(ended)
        if not known:
            raise NotFoundError("this browser is not there any more")
        self._visitors.end(*ended)
        self._end_streams(ended)
        for name in {session.name for session in ended}:
            self._on_sign_in(ConsoleSignIn("revoked", name, "device" if "device" in body else "link"))
        self._keep_revoked()

    async def _link(self, request: Request, body: dict[str, Any]) -> Any:
        """A link for another device, also as a picture for its camera."""
        if self._door.is_local:
            raise BadRequestError("no other device reaches this console; start it with a host and a certificate")
        link = self.new_link()
        return {"link": link, "image": qr_image(link), "seconds": CONSOLE_LIMITS.link_seconds}

    # --- what is kept

    def _needed_memory(self) -> ConsoleMemory:
        if self._memory is None:
            raise NotFoundError("this console remembers no browsers")
        return self._memory

    def _keep(self, **changed: Any) -> None:
        if self._memory is not None:
            self._memory.keep(replace(self._memory.found, devices=self._devices.all, **changed))

    def _keep_if_possible(self) -> None:
        try:
            self._keep()
        except OSError as error:
            logger.warning("the last use of a browser is not noted in the file: %s", error.strerror)

    def _keep_revoked(self) -> None:
        try:
            self._keep()
        except OSError as error:
            # The person must know: after a restart the browser would be let in again.
            raise InternalError(
                f"it is locked out only until this computer stops: the file cannot be written: {error.strerror}"
            ) from None
