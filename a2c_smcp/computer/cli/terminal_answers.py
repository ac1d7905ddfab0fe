"""Asks the person at the terminal to decide, and says so when somebody else was quicker."""

from dataclasses import dataclass
from typing import Final

import anyio

from a2c_smcp.computer.cli.confirm import ask_to_confirm
from a2c_smcp.computer.cli.output import Output, printable
from a2c_smcp.computer.cli.prompts import CliInputResolver
from a2c_smcp.computer.cli.question_form import ask_a_question
from a2c_smcp.computer.cli.sign_in_form import ask_to_sign_in
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    Declined,
    Dismissed,
    MissingInput,
    MissingSignIn,
    Outcome,
    Question,
)
from a2c_smcp.computer.decisions.store import Attendance, DecisionStore
from a2c_smcp.computer.mcp_clients.model import CommandInput

__all__ = ["TERMINAL", "TerminalAnswers"]

#: The name of this place, where people read who decided.
TERMINAL: Final = "terminal"


@dataclass(frozen=True, slots=True)
class TerminalAnswers:
    """While inside `attend()`, the person at this terminal is asked, one decision after the other."""

    decisions: DecisionStore
    terminal: Terminal
    output: Output
    inputs: CliInputResolver

    def attend(self) -> Attendance:
        return self.decisions.attend(TERMINAL, ask=self._ask)

    async def _ask(self, decision: Decision) -> None:
        """Ask in a turn of the terminal, and answer. The store cancels this when the decision is made elsewhere, or is
        not needed any more.
        """
        is_shown = False
        try:
            async with self.terminal.turn():
                is_shown = True
                try:
                    answer = await self._put(decision)
                except (KeyboardInterrupt, EOFError):
                    answer = Declined()
                self.decisions.answer(decision.id, answer, by=TERMINAL, digest=decision.digest)
        except AlreadyDecidedError:
            self._tell(decision, is_shown=True)
        except anyio.get_cancelled_exc_class():
            self._tell(decision, is_shown=is_shown)
            raise

    async def _put(self, decision: Decision) -> DecisionAnswer:
        match decision:
            case Confirmation():
                return await ask_to_confirm(self.terminal, self.output, decision)
            case Question():
                return await ask_a_question(self.terminal, self.output, decision)
            case MissingInput(definition=definition) if not isinstance(definition, CommandInput):
                return Accepted(await self.inputs.ask(definition))
            case MissingSignIn():
                return await ask_to_sign_in(self.terminal, self.output, decision)
            case _:
                return Dismissed()

    def _tell(self, decision: Decision, *, is_shown: bool) -> None:
        """Say how it was decided: the person may still look at the question, or wonder about the call."""
        resolution = self.decisions.resolution(decision.id)
        if resolution is None:
            return  # the program ends
        if isinstance(decision, Confirmation) and resolution.outcome is Outcome.UNANSWERED:
            text = f"Nobody answered in time: {printable(decision.call.tool or '')} is not run."
        elif isinstance(decision, Question) and resolution.outcome is Outcome.UNANSWERED:
            text = f"Nobody answered the question of {printable(decision.server)} in time."
        elif is_shown:
            text = f"Decided: {resolution}."
        else:
            return
        self.output.event(
            "decision_decided",
            text,
            decision=decision.id,
            kind=decision.kind,
            outcome=resolution.outcome.value,
            by=resolution.by,
            always=resolution.always,
        )
