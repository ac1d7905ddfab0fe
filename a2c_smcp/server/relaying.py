"""How requests of agents are put through to computers, and answers brought back, without a task for any of them.

A relay is filed when it is sent. Its answer is written to the caller in the call that brings the ack.
"""

import asyncio
import itertools
import logging
import random
import time
from functools import partial
from typing import Any, Final

from a2c_smcp.dialects.at_the_server import answer_for, largest_for, refusal_for, stand_in_of
from a2c_smcp.errors import (
    InternalError,
    NotFoundError,
    NotInRoomError,
    PayloadTooLargeError,
    RequestTimeoutError,
    SMCPError,
    TooManyRequestsError,
)
from a2c_smcp.packet_text import ACK, EVENT, encode_ack, encode_event
from a2c_smcp.relay.asks import Ask
from a2c_smcp.server import offices
from a2c_smcp.server.admission import Admission
from a2c_smcp.server.boundary import (
    Observer,
    cancellation,
    log_passed_on,
    log_refusal,
    outcome_of,
    refusal,
    unanswered,
)
from a2c_smcp.server.call_tally import CallTally, ToolName
from a2c_smcp.server.clients import AgentRequest, Client
from a2c_smcp.server.envelopes import Answer, Message, answer_from, payload_of, read_answer
from a2c_smcp.server.event_log import CALLS, EventLog, session_fields
from a2c_smcp.server.limits import Limits
from a2c_smcp.server.offices import Member
from a2c_smcp.server.own_fields import stamp_of
from a2c_smcp.server.registry import Registry
from a2c_smcp.server.relay_spans import begin_span
from a2c_smcp.server.relays import PassOn, Relay, RelayAsk, TellEnd, relay_table, reported_by
from a2c_smcp.server.reports import QuestionLimit, ReportLimit, report_of
from a2c_smcp.smcp import (
    CANCEL_TOOL_CALL_NOTIFICATION,
    QUESTION_EVENT,
    QUESTION_NOTIFICATION,
    STAMP_FIELD,
    TOOL_CALL_EVENT,
    TOOL_PROGRESS_NOTIFICATION,
    Event,
)
from a2c_smcp.tracing.switch import TRACING
from a2c_smcp.utils.log_fields import with_fields
from a2c_smcp.utils.text import in_log, req_id_in_log
from a2c_smcp.wire import Encoded, codec, exceeds

__all__ = ["LATER", "Relaying"]

logger = logging.getLogger(__name__)

#: A client may answer on another connection than it was asked on, so no two requests of a process have the same id.
#: They start at a random number, so that a restarted process does not repeat them. JavaScript counts to 2**53.
_ACK_IDS: Final = itertools.count(random.randrange(2**40, 2**50))

#: In the place of a reply: it comes later.
LATER: Final = object()


class Relaying:
    """The clients of one server process, and their requests to computers."""

    def __init__(self, limits: Limits, registry: Registry, observer: Observer, namespace: str) -> None:
        self.namespace = namespace
        self.limits = limits
        self.admission = Admission(limits)
        self.registry = registry
        self.tally = CallTally()
        self._observer = observer
        self._events = EventLog()
        self._clients: dict[str, Client] = {}
        self._relays = relay_table(limits.pending_relays)
        self._relay_numbers = itertools.count(1)
        self._event_head, self._ack_head = f"{EVENT}{namespace},", f"{ACK}{namespace},"

    # --- replies

    def _ack(self, ack_id: int, reply: Any) -> str:
        """What an event is answered with; a tuple is several arguments."""
        return encode_ack(self.namespace, ack_id, reply if isinstance(reply, tuple) else (reply,))

    def _refused(self, sid: str, message: Message, error: Exception) -> Any:
        """The reply to an event whose handling has raised. This is the boundary: every event is answered."""
        client = self._clients.get(sid)
        fields = session_fields(sid, client.record if client else None)
        if isinstance(error, SMCPError):
            log_refusal(self.admission.session_log, self._peer_in_log(client), message, sid, error, fields)
            failure = error
        else:
            req_id = req_id_in_log(message.request)
            extra = with_fields(event="failed", req_id=req_id, **fields)
            what = "failed to handle %s from %s, req_id %s"
            logger.error(what, in_log(message.event), sid, req_id, exc_info=error, extra=extra)
            failure = InternalError("the server failed to handle this; its log says why")
        self._observer.refused(failure.code)
        reply = refusal(message.event, failure)
        return reply if client is None else refusal_for(client.record.dialect, message.event, failure, reply)

    @staticmethod
    def _peer_in_log(client: Client | None) -> str:
        """The key by which log lines about a session are limited: its connection, because a peer may open one
        session after another over it.
        """
        if client is None:
            return "sessions that have ended or are elsewhere"
        return f"the connection {client.line.connection} from {client.line.address}"

    # --- requests to computers

    def _relay(self, client: Client, ack_id: int | None, row: Event, message: Message) -> Any:
        request = AgentRequest(client, ack_id, message, time.monotonic())
        if (spans := TRACING.spans) is not None:
            request.span = begin_span(spans.relaying, message)
        given = message.request
        if row.name == TOOL_CALL_EVENT:
            # The name is not kept with the request: a peer may send one of any length.
            tool, computer = given.pop("tool_name", ""), given["computer"]
            request.tool = ToolName(client.record.office, computer[: offices.MAX_NAME], tool[: offices.MAX_NAME])
        try:
            target = self.registry.route(client.sid, row, given["computer"])
            # Nothing waits between the look-up and the table of relays: the end of either session finds the relay.
            self._put_through(client.sid, target, message, partial(self._reply, request))
        except Exception as error:
            self._note_end(request, outcome_of(error), error.code if isinstance(error, SMCPError) else None)
            raise
        return LATER

    def _ask(
        self, caller: str, target: Member, message: Message, end: TellEnd, pass_on: PassOn | None = None
    ) -> RelayAsk:
        """Send a request to a computer of this process. `pass_on` takes what the call says to its caller, if another
        process has the caller.
        """
        ask = self._file(caller, target, message, end, pass_on)
        try:
            self._send(ask, message)
        except BaseException:
            self._end(ask)
            raise
        return ask

    _put_through = _ask
    """Sends a request to a computer, wherever that is. `end` is told how it ends; or this raises."""

    def _file(
        self,
        caller: str,
        target: Member,
        message: Message,
        end: TellEnd,
        pass_on: PassOn | None = None,
        grace: float = 0.0,
    ) -> RelayAsk:
        """File a relay, and set its deadline."""
        event, given = message.event, message.request
        assert event is not None
        agent, req_id = given["agent"], given["req_id"]
        relay = Relay(event, agent, req_id, given["computer"], end)
        speaks = given.get("progress") or given.get("questions")
        topic = (target.sid, agent, req_id) if speaks else None
        weight = len(agent) + len(req_id)
        ask = Ask(next(self._relay_numbers), relay, caller, target.sid, topic, weight)
        if topic is not None:
            pass_on = pass_on or partial(self._mention, ask)
            if given.get("progress"):
                relay.on_progress = ReportLimit(partial(pass_on, TOOL_PROGRESS_NOTIFICATION), time.monotonic)
            if given.get("questions"):
                relay.on_question = QuestionLimit(partial(pass_on, QUESTION_NOTIFICATION))
        self._relays.ask(ask)
        seconds = self.limits.deadline(event, given.get("timeout"))
        relay.timer = asyncio.get_running_loop().call_later(seconds + grace, self._late, ask, seconds)
        if event == TOOL_CALL_EVENT:
            for sid in (caller, target.sid):
                if (client := self._clients.get(sid)) is not None:  # another process may have one of them
                    client.record.calls += 1
        return ask

    def _send(self, ask: RelayAsk, message: Message) -> None:
        relay = ask.waiter
        there = self._clients.get(ask.target)
        # With the name that the sender has at this moment: it may have another one since it sent the request.
        if (asks := self._clients.get(ask.caller)) is None:
            stamp = codec.dumps(stamp_of(self.registry.asker(ask.caller)))
        else:
            member = self.registry.session(ask.caller).member
            if asks.stamp is None or asks.stamp[0] is not member:
                asks.stamp = member, codec.dumps(stamp_of(self.registry.asker(ask.caller)))
            stamp = asks.stamp[1]
        if there is None:
            raise offices.computer_gone()
        most = self.limits.max_message
        if there.mark is not None:
            most = largest_for(there.record.dialect, most)
        relay.ack_id, relay.line = next(_ACK_IDS), there.line
        body, message.body = message.body, None  # its memory is free once it is sent
        assert body is not None
        # Behind the payload there are only blanks and a bracket, so the last brace closes it. No request is empty.
        end = body.rindex("}")
        text = f'{self._event_head}{relay.ack_id}{body[:end]},"{STAMP_FIELD}":{stamp}{body[end:]}'
        if (len(text) + 1) * 4 > most and exceeds(text, most):
            raise PayloadTooLargeError(f"{relay.event} has more than {most} bytes")
        ask.was_sent = True
        if not there.line.ask(relay.ack_id, text, partial(self._acked, ask)):
            if not there.line.is_open:
                raise offices.computer_gone()
            raise TooManyRequestsError("this computer has too much to read; try again later")

    # How a relay ends: by an ack, by its deadline, or because one of the two has gone. The first one counts.

    def _acked(self, ask: RelayAsk, body: str) -> None:
        if self._relays.end(ask.id) is not None:
            relay = ask.waiter
            if relay.timer is not None:
                relay.timer.cancel()
                relay.timer = None
            if relay.on_progress is not None:
                relay.on_progress.end()
            answer = read_answer(body)
            if answer is None and (there := self._clients.get(ask.target)) is not None:
                stand_in = stand_in_of(there.record.dialect, relay.event, relay.req_id)
                answer = None if stand_in is None else answer_from((stand_in,))
            relay.end(answer, None)

    def _late(self, ask: RelayAsk, seconds: float) -> None:
        if self._end(ask):
            ask.waiter.end(None, RequestTimeoutError(f"the computer did not answer within {seconds:g} s"))

    def _end(self, ask: RelayAsk) -> bool:
        """Take a relay out; returns `False` if it had ended before."""
        if self._relays.end(ask.id) is None:
            return False
        self._let_go(ask)
        return True

    @staticmethod
    def _let_go(ask: RelayAsk) -> None:
        relay = ask.waiter
        if relay.timer is not None:
            relay.timer.cancel()
            relay.timer = None
        if relay.line is not None:
            relay.line.forget(relay.ack_id)
        if relay.on_progress is not None:
            relay.on_progress.end()

    def _fail_relays(self, sid: str) -> list[RelayAsk]:
        """Fail the requests that wait for this session, and those that it sent. Returns the tool calls that it sent:
        their computers must be told that these are cancelled.
        """
        lost = self._relays.lost(sid)
        for ask in (*lost.unanswered, *lost.unwanted):
            self._let_go(ask)
        for ask in lost.unanswered:
            ask.waiter.end(None, offices.computer_gone())
        for ask in lost.unwanted:
            ask.waiter.end(None, NotInRoomError("the agent has gone"))
        return [ask for ask in lost.unwanted if ask.waiter.event == TOOL_CALL_EVENT]

    def _end_relays(self, sid: str) -> None:
        if self._relays.concerns(sid):
            for ask in self._fail_relays(sid):
                self._cancel(ask.target, cancellation(ask.waiter))

    def _cancel(self, sid: str, call: dict[str, str]) -> None:
        if (client := self._clients.get(sid)) is not None:
            client.line.send(encode_event(self.namespace, CANCEL_TOOL_CALL_NOTIFICATION, call))

    def _reply(self, request: AgentRequest, answer: Answer | None, error: Exception | None) -> None:
        """Answer a client of this process: its request has ended."""
        line, ack_id = request.client.line, request.ack_id
        try:
            if error is not None:
                raise error
            text = self._passed_on(request, answer)
        except Exception as failure:
            # The boundary: an error becomes the reply to this request.
            self._note_end(request, outcome_of(failure), failure.code if isinstance(failure, SMCPError) else None)
            error = failure
        else:
            if ack_id is None or line.offer(f"{self._ack_head}{ack_id}[{text}]") or not line.is_open:
                return
            error = TooManyRequestsError("this agent has too much to read; the answer was left out")
        reply = self._refused(line.sid, request.message, error)
        if ack_id is not None:
            line.send(self._ack(ack_id, reply))

    def _passed_on(self, request: AgentRequest, answer: Answer | None) -> str:
        """What an agent gets of a computer's answer."""
        client, event = request.client, request.message.event
        assert event is not None
        if answer is None:
            raise unanswered(event)
        text, error = answer.text, answer.error
        if client.mark is not None:
            text = answer_for(client.record.dialect, event, Encoded(text), error).text
        self._note_end(request, "answered" if error is None else "error", None if error is None else error.code)
        if error is not None:
            log, peer = self.admission.session_log, self._peer_in_log(client)
            fields = session_fields(client.sid, client.record)
            log_passed_on(log, peer, event, client.sid, request.message.request, error, fields)
        return text

    def _note_end(self, request: AgentRequest, outcome: str, code: int | None) -> None:
        now, event = time.monotonic(), request.message.event
        seconds = now - request.began
        assert event is not None
        self._observer.relayed(event, outcome, seconds)
        if (tool := request.tool) is not None:
            client = request.client
            if self._events.record is not None or CALLS.isEnabledFor(logging.DEBUG):
                end = outcome, seconds, code
                self._events.called((client.sid, client.record), tool, request.message.request, end)
            self.tally.note(tool, seconds, outcome != "answered", now)
        if (span := request.span) is not None:
            with span:
                if outcome != "answered":
                    span.failed(outcome)

    # --- what a running call says to its caller

    def _report(self, client: Client, message: Message) -> dict[str, Any]:
        """Pass a report or a question on to the session that waits for its call. The limit of requests does not count
        them: each call has limits of its own. A report that is late, or about somebody else's call, is dropped. Such a
        question is refused, because its computer waits for an answer.
        """
        if message.error:
            raise message.error
        ask = reported_by(self._relays, client.sid, message.request)
        if message.event == QUESTION_EVENT:
            if ask is None or ask.waiter.on_question is None:
                raise NotFoundError("no call waits that could be asked this")
            ask.waiter.on_question(message.request, payload_of(message.take_body()))
        elif ask is not None and ask.waiter.on_progress is not None:
            ask.waiter.on_progress(message.request)
        return {}

    def _mention(self, ask: RelayAsk, event: str, text: str) -> bool:
        """Pass something on to a caller that is connected to this process."""
        if (client := self._clients.get(ask.caller)) is None:
            return False
        if event == QUESTION_NOTIFICATION:
            return client.line.offer(encode_event(self.namespace, event, Encoded(text)))
        client.line.mention(report_of(self.namespace, ask.waiter, text))
        return True
