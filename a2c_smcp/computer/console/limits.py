"""How much the console serves and keeps, and how long it waits, as one value. `docs/console.md` tells users. Pure."""

from dataclasses import dataclass
from typing import Final

__all__ = ["CONSOLE_LIMITS", "ConsoleLimits"]


@dataclass(frozen=True, slots=True)
class ConsoleLimits:
    """Numbers without a unit in their name count things."""

    # Who may come in.
    links: int = 8  # links that were not used yet; with one more, the oldest stops working
    link_seconds: float = 3600.0
    sessions: int = 16  # with one more, the session that was silent longest ends, if it is not in use
    alive_seconds: float = 150.0  # a page says every 20 s that it is in use; in the background perhaps once a minute
    devices: int = 32  # remembered browsers
    device_seconds: float = 30 * 86400.0  # a browser that was not used for this time is forgotten
    device_name_characters: int = 60
    challenge_seconds: float = 60.0  # how long a challenge can be answered
    challenges: int = 1024  # answered challenges that are remembered; no more are accepted in `challenge_seconds`
    # What a page sends.
    body_bytes: int = 4 * 2**20  # the arguments of a call may be long
    small_body_bytes: int = 1024  # the body of a request about sessions and browsers
    paste_bytes: int = 64 * 2**10  # a pasted config, or an entry that is edited
    field_characters: int = 4096  # an address, the name of an office, or a key
    search_characters: int = 200
    office_seconds: float = 60.0  # how long a server may take to let the computer into an office
    # What a page is sent.
    streams: int = 16  # pages that follow; the tabs of one browser share a stream
    ping_seconds: float = 5.0  # between two pings; a stream that is silent for three times as long is gone
    gather_seconds: float = 0.1  # between two messages; events in this time go out together
    settle_seconds: float = 0.01  # between events that belong together, such as a call's end and its server's state
    calls: int = 32  # calls of the console itself that run
    listed_calls: int = 100  # ended calls in one answer or message; the page asks for older ones
    replayed_calls: int = 1000  # past calls against which a rule is tested
    exports: int = 2  # exports that are under way
    page_characters: int = 400_000  # of a page of a document, rendered
    pages: int = 50  # pages of a document in one answer
    rows: int = 1000  # rows of a table
    preview_characters: int = 600  # characters of a call's arguments, and of its result, in a list
    depth: int = 100  # levels of a schema, and of an exported value


CONSOLE_LIMITS: Final = ConsoleLimits()
