"""The person at a computer of the test, who answers by a script."""

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from a2c_smcp.computer.decisions.book import Accepted, Decision, DecisionAnswer, Declined, Dismissed
from a2c_smcp.computer.decisions.store import DecisionStore

__all__ = ["NO_ANSWER", "Person", "Script", "ScriptEndedError"]

#: Stands in a script for a person who does not answer.
NO_ANSWER: Final = object()

#: One answer for everything, a list of answers in their order, or a function that gets what is asked. An answer to a
#: confirmation is true, false, or the words of a refusal. An answer to a question is the fields of its form, or false.
Script: TypeAlias = Any


class ScriptEndedError(LookupError):
    """Something was asked after the last answer of a script was given. The lab raises it when it ends."""


class Person:
    """Answers confirmations and questions. If a script is `None`, nobody answers that kind of decision."""

    def __init__(self, approvals: Script, questions: Script) -> None:
        self.asked: list[Decision] = []
        """All that the person was asked, in order."""
        self.error: Exception | None = None
        """The first error of a script. The lab raises it at its end, because raised here it would only look like a
        person who does not answer.
        """
        self._scripts = {
            kind: _answers(script)
            for kind, script in (("confirmation", approvals), ("question", questions))
            if script is not None
        }

    def attend(self, decisions: DecisionStore) -> None:
        """Sit down at the computer."""
        if self._scripts:
            kinds: Any = set(self._scripts)
            decisions.attend("test", kinds, self._answer).begin()

    async def _answer(self, decision: Decision) -> DecisionAnswer | None:
        self.asked.append(decision)
        try:
            answer = self._scripts[decision.kind](decision)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is NO_ANSWER:
                await asyncio.get_running_loop().create_future()  # cancelled when nobody may answer any more
            return _as_answer(answer)
        except Exception as error:
            self.error = self.error or error
            raise


def _answers(script: Script) -> Callable[[Decision], Any]:
    if callable(script):
        return lambda decision: script(decision)
    if not isinstance(script, Sequence) or isinstance(script, str):
        return lambda _: script
    waiting = iter(script)

    def following(decision: Decision) -> Any:
        for answer in waiting:
            return answer(decision) if callable(answer) else answer
        raise ScriptEndedError(f"the script has no answer left for this {decision.kind}")

    return following


def _as_answer(answer: Any) -> DecisionAnswer:
    match answer:
        case Accepted() | Declined() | Dismissed():
            return answer
        case True:
            return Accepted()
        case False:
            return Declined()
        case str():
            return Declined(answer)
        case Mapping():
            return Accepted(dict(answer))
    raise TypeError(f"a script answers with true, false, a text or the fields of a form, not {type(answer).__name__}")
