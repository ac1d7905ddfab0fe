"""Log lines about sessions: readable, with fields, and never too many."""

import logging

import pytest

from a2c_smcp.server.event_log import EventLog
from a2c_smcp.server.mounted import newcomer_of
from a2c_smcp.server.offices import Grant
from a2c_smcp.server.session_record import SessionRecord, session_record
from a2c_smcp.utils.log_fields import fields_of


def record(name: str = "laptop", key: str = "ci") -> SessionRecord:
    made = SessionRecord(Grant(key), "10.0.0.1", "", 0.0)
    made.enters("lab", "computer", name)
    return made


def test_a_line_reads_well_and_has_the_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "a2c_smcp")
    events, here = EventLog(), record()
    events.connected("s1", SessionRecord(Grant("ci"), "10.0.0.1", "", 0.0))
    events.joined("s1", here)
    events.left("s1", here, "ping timeout")
    assert caplog.messages == [
        "connected: session s1 from 10.0.0.1, key ci",
        "joined office lab: computer laptop, session s1, key ci",
        "left office lab: computer laptop, session s1: ping timeout",
    ]
    connect, _, leave = [fields_of(each) for each in caplog.records]
    assert "office" not in connect
    assert (leave["event"], leave["reason"], leave["office"], leave["key"]) == ("leave", "ping timeout", "lab", "ci")


def test_one_client_that_comes_and_goes_fills_nothing_and_hides_nobody(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "a2c_smcp")
    events = EventLog()
    for number in range(1000):
        events.connected(f"s{number}", record())
    assert len(caplog.messages) < 100
    events.connected("other", record(key="another"))
    assert "session other" in caplog.messages[-1]


def test_a_version_is_what_a_client_says_and_cannot_act_on_a_terminal() -> None:
    def version(**environ: str) -> str:
        return session_record(newcomer_of(environ), Grant(), 0.0).version

    assert version(HTTP_USER_AGENT="a2c-smcp/0.2.0") == "0.2.0"
    assert version(QUERY_STRING="a2c_version=0.4.0&office=x") == "0.4.0"
    assert version(HTTP_USER_AGENT="Mozilla/5.0") == version() == ""
    assert (
        "\x1b" not in version(QUERY_STRING="a2c_version=%1b[2J")
        and len(version(QUERY_STRING=f"a2c_version={'9' * 99}")) == 32
    )
