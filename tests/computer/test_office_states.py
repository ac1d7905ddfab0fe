"""What a Computer knows of its connections: pure, and then with a real server."""

from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.socketio import SMCPComputerClient
from a2c_smcp.computer.watching.events import OfficeStatus
from a2c_smcp.computer.watching.office_states import OfficeStates
from a2c_smcp.errors import ForbiddenError
from a2c_smcp.link.interface import Connected, Disconnected, Joined, Left, Membership, RejoinFailed
from tests.computer.fakes.computers import recorded
from tests.computer.fakes.offices import new_office, options
from tests.server.harness import Running

URL = "http://me:secret@host:7000?key=secret"
LAB = Membership("computer", "pc", "lab")


def test_a_connection_from_its_first_word_to_its_end() -> None:
    states = OfficeStates()

    def after(event: Connected | Disconnected | Joined | Left | RejoinFailed) -> tuple[object, ...]:
        status = states.hear("1", URL, event)
        assert states.statuses == (status,)
        assert "secret" not in repr(status)
        return status.state, status.office, status.name, status.reason, status.final

    assert after(Connected(URL)) == ("connected", None, None, None, False)
    assert after(Joined(LAB, again=False)) == ("joined", "lab", "pc", None, False)
    assert after(Disconnected("transport closed", final=False)) == (
        "disconnected",
        "lab",
        "pc",
        "transport closed",
        False,
    )
    assert after(Connected(URL)) == ("connected", "lab", "pc", None, False)
    refused = RejoinFailed(LAB, ForbiddenError("no"), final=True)
    assert after(refused) == ("connected", "lab", "pc", "403 Forbidden: no", True)
    assert after(Joined(LAB, again=True)) == ("joined", "lab", "pc", None, False)
    assert after(Left(LAB)) == ("connected", None, None, None, False)
    closed = states.close("1")
    assert closed == OfficeStatus("1", "closed", closed.url if closed else "", final=True)
    assert states.statuses == ()
    assert states.close("1") is None


def test_connections_are_told_apart() -> None:
    states = OfficeStates()
    states.hear("1", "http://one", Connected("http://one"))
    states.hear("2", "http://two", Connected("http://two"))
    states.hear("2", "http://two", Joined(LAB, again=False))
    assert [(status.url, status.state) for status in states.statuses] == [
        ("http://one", "connected"),
        ("http://two", "joined"),
    ]


async def test_a_watcher_sees_the_office_that_a_computer_is_in(hub: Running) -> None:
    computer, office = Computer("pc"), new_office()
    async with recorded(computer) as record:
        async with computer, SMCPComputerClient(computer, options(hub.url)) as client:
            await client.join_office(office)
            (status,) = computer.snapshot().offices
            assert (status.state, status.office, status.name, status.url) == ("joined", office, "pc", hub.url)
            assert client._link._connection is not None
            await client._link._connection.eio.ws.close()  # as a cable that is pulled
            await record.until(lambda: [it.state for it in record.now(OfficeStatus)].count("joined") == 2)
            await client.leave_office()
        await record.until(lambda: record.now(OfficeStatus)[-1].state == "closed")
        states = [event.state for event in record.now(OfficeStatus)]
        assert states == [
            "connected",
            "joined",
            "disconnected",
            "connected",
            "joined",
            "connected",
            "disconnected",
            "closed",
        ]
        assert computer.offices == ()
