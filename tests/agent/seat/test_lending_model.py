"""The table of `lending` at both ends of lines that delay, with servers that restart and processes that die.

The links are models: a link joins again after a loss, unless it was let go. After any history, when every frame has
arrived and everybody has joined who wants to, one link has the seat, and every process uses a link that is in the
office.
"""

from collections import deque
from dataclasses import dataclass, field
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from a2c_smcp.agent.seat.lending import Lending, Seat, moved

_secrets = count()


@dataclass(eq=False)
class Link:
    of: object
    secret: int
    joined: bool = False
    """As its client sees it: a session whose place was taken over is ended by the server a moment later."""
    wants: bool = True
    is_open: bool = True


@dataclass(eq=False)
class Process:
    to_holder: deque[tuple[str, ...]] = field(default_factory=deque)
    to_process: deque[tuple[str, ...]] = field(default_factory=deque)
    seat: Seat = Seat.HELD
    own: Link | None = None
    borrows: int | None = None
    """The secret with which it is about to join."""
    of_holder: "Holder | None" = None
    """Who has offered the seat."""


class Holder:
    def __init__(self) -> None:
        self.lending: Lending[Process] = Lending(after=0.0)
        self.link = Link(self, next(_secrets))
        self.orphaned: int | None = None


class OneSeat(RuleBasedStateMachine):
    """What `Holder` and `SeatLink` do with each frame, and nothing else of them."""

    @initialize()
    def begin(self) -> None:
        self.taken: Link | None = None
        self.links: list[Link] = []
        self.processes: list[Process] = []
        self.start_holder()
        self.try_to_join(self.holder.link)
        self.come()

    def start_holder(self) -> None:
        self.holder = Holder()
        self.links.append(self.holder.link)

    # --- the server

    def try_to_join(self, link: Link) -> None:
        if self.taken is None or self.taken.secret == link.secret:
            self.taken, link.joined = link, True
            if link is self.holder.link:
                self.move_holder("back", self.holder.lending.who)
                for each in self.processes:
                    if each is not self.holder.lending.who:
                        each.to_process.append(("back",))
        elif link is self.holder.link and self.holder.orphaned == self.taken.secret:
            self.taken = None
            self.try_to_join(link)

    def lose(self, link: Link) -> None:
        link.joined = False
        if self.taken is link:
            self.taken = None
        if not link.wants:
            self.links.remove(link)
            for each in self.processes:
                if each.own is link:
                    each.own, each.seat = None, Seat.HELD

    def restart_server(self) -> None:
        for link in [each for each in self.links if each.joined]:
            self.lose(link)
        self.taken = None

    @rule(data=st.data())
    @precondition(lambda self: self.links)
    def step_of_a_link(self, data: st.DataObject) -> None:
        self.step(data.draw(st.sampled_from(self.links)))

    def step(self, link: Link) -> bool:
        if link.joined and self.taken is not link:
            self.lose(link)  # the server ends a session that was taken over
        elif link.wants and link.is_open and not link.joined:
            self.try_to_join(link)
            return link.joined
        else:
            return False
        return True

    # --- the holder

    def move_holder(self, word: str, process: Process | None) -> None:
        match self.holder.lending.move(word, process):
            case Seat.LENT:
                self.renew_link(self.holder.link.secret, is_open=False)
            case Seat.RETURNING:
                self.renew_link(self.holder.link.secret)

    def renew_link(self, secret: int, *, is_open: bool = True) -> None:
        self.let_go(self.holder.link)
        self.holder.link = Link(self.holder, secret, is_open=is_open)
        self.links.append(self.holder.link)

    def let_go(self, link: Link) -> bool:
        """Whether it stays until the server ends it."""
        link.wants = False
        if not link.joined and link in self.links:
            self.links.remove(link)
        return link.joined

    def come(self) -> None:
        process, user = Process(), self.holder.lending.who
        self.processes.append(process)
        if user is not None:
            user.to_process.append(("recall",))
            self.move_holder("recall", user)

    def kill_the_holder(self) -> None:
        self.links = [each for each in self.links if each.of is not self.holder]
        self.start_holder()
        for each in self.processes:
            each.to_process.clear()
            each.to_holder.clear()
            self.offer_back(each)

    def kill(self, process: Process) -> None:
        self.processes.remove(process)
        self.links = [each for each in self.links if each.of is not process]
        match self.holder.lending.gone(process):
            case Seat.OFFERED | Seat.UNWANTED:
                self.renew_link(self.holder.link.secret)
            case Seat.LENT | Seat.RETURNING:
                self.holder.orphaned = self.holder.link.secret
                self.renew_link(next(_secrets))

    @rule(data=st.data())
    def trouble(self, data: st.DataObject) -> None:
        """All of it in one rule: the quiet steps between must be more frequent."""
        if data.draw(st.integers(0, 4)) == 0:
            data.draw(st.sampled_from([self.restart_server, self.kill_the_holder]))()
        elif len(self.processes) < 2 or (len(self.processes) == 2 and data.draw(st.booleans())):
            self.come()
        else:
            self.kill(data.draw(st.sampled_from(self.processes)))

    @rule()
    @precondition(lambda self: self.processes)
    def call_a_tool(self) -> None:
        if self.holder.link.joined and self.holder.lending.offer(self.processes[0], len(self.processes), 1.0):
            self.processes[0].to_process.append(("lend",))

    def holder_hears(self, process: Process) -> None:
        word, *_ = frame = process.to_holder.popleft()
        if word != "resume":
            self.move_holder(word, process)
        elif self.holder.link.joined:
            process.to_process.append(("back",))
        elif self.holder.lending.move(word, process) is not None:
            self.renew_link(int(frame[1]))

    # --- the processes

    def process_hears(self, process: Process) -> None:
        [word] = process.to_process.popleft()
        if word != "lend":
            self.move(process, word)
        elif process.borrows is not None:
            process.to_holder.append(("declined",))
        else:
            self.move(process, word)
            process.borrows, process.of_holder = self.holder.link.secret, self.holder

    def move(self, process: Process, word: str) -> None:
        before, process.seat = process.seat, moved(process.seat, word)
        if process.seat is Seat.RETURNING:
            if process.own is not None and not self.let_go(process.own):
                process.own, process.seat = None, Seat.HELD
        elif before is Seat.RETURNING and process.own is not None:
            self.let_go(process.own)
            process.own = None

    def offer_back(self, process: Process) -> None:
        if process.own is not None:
            process.to_holder.append(("resume", str(process.own.secret)))
            self.move(process, "resume")

    def borrow(self, process: Process, works: bool) -> None:
        assert process.borrows is not None
        link, process.borrows = Link(process, process.borrows), None
        if works:
            self.try_to_join(link)
        if link.joined:
            process.own = link
            self.links.append(link)
        word = "taken" if link.joined else "declined"
        self.move(process, word)
        if process.of_holder is self.holder:
            process.to_holder.append((word,))
        else:
            self.offer_back(process)

    @rule(data=st.data(), batch=st.integers(1, 3))
    @precondition(lambda self: self.processes)
    def frames_arrive(self, data: st.DataObject, batch: int) -> None:
        process = data.draw(st.sampled_from(self.processes))
        at_holder = data.draw(st.booleans())
        for _ in range(batch):
            if at_holder and process.to_holder:
                self.holder_hears(process)
            elif not at_holder and process.to_process:
                self.process_hears(process)

    @rule(data=st.data(), works=st.booleans())
    @precondition(lambda self: any(each.borrows is not None for each in self.processes))
    def end_of_a_borrowing(self, data: st.DataObject, works: bool) -> None:
        self.borrow(data.draw(st.sampled_from([each for each in self.processes if each.borrows is not None])), works)

    # --- the end

    def teardown(self) -> None:
        for _ in range(50):
            if not self.go_on():
                break
        else:
            raise AssertionError("it never ends")
        who, link = self.holder.lending.who, self.holder.link
        assert who is None or self.processes == [who]
        for process in self.processes:
            assert process.seat is (Seat.LENT if process is who else Seat.HELD)
            used = process.own or link
            assert used.joined and used is self.taken
        assert [each for each in self.links if each.is_open] == [self.taken]

    def go_on(self) -> bool:
        """One round of all that waits. Whether anything did."""
        if self.taken is not None and self.taken not in self.links:
            self.taken = None  # the server finds that its client has died
            return True
        has_changed = False
        for process in self.processes:
            while process.to_process or process.to_holder or process.borrows is not None:
                has_changed = True
                if process.to_holder:
                    self.holder_hears(process)
                elif process.to_process:
                    self.process_hears(process)
                else:
                    self.borrow(process, works=True)
        for link in list(self.links):
            has_changed |= link in self.links and self.step(link)
        return has_changed


OneSeat.TestCase.settings = settings(max_examples=300, stateful_step_count=40, deadline=None, derandomize=True)
TestOneSeat = OneSeat.TestCase
