"""The person at the terminal of `a2c agent call`, who answers the questions of the tool that runs."""

import asyncio
import sys

from a2c_smcp.agent.printing import Printer
from a2c_smcp.agent.questions import QuestionAnswer
from a2c_smcp.smcp import ToolQuestion
from a2c_smcp.terminal.form_dialogue import YES_NO, fill_in, url_lines
from a2c_smcp.utils.forms import InvalidFormError, parse_form
from a2c_smcp.utils.text import printable, quoted

__all__ = ["PersonAtTerminal"]


class PersonAtTerminal:
    """`answer` is the `on_question` of a call, and this is the `Dialogue`. One question is asked at a time."""

    def __init__(self, output: Printer) -> None:
        self._output = output
        self._turn = asyncio.Lock()

    async def answer(self, question: ToolQuestion) -> QuestionAnswer | None:
        """The person's answer. Ctrl-C and Ctrl-D are no answer: `cancel`. A form that nobody can be shown is left to
        others.
        """
        async with self._turn:
            with self._output.undisturbed():
                try:
                    return await self._ask(question)
                except (KeyboardInterrupt, EOFError):
                    return QuestionAnswer("cancel")
                except InvalidFormError:
                    return None

    async def _ask(self, question: ToolQuestion) -> QuestionAnswer:
        server = printable(question.get("mcp_server", "a tool"))
        lines = [f"{server} on {printable(question['computer'])} asks:", quoted(question.get("message", ""))]
        if question.get("mode") == "url":
            self.show("\n".join([*lines, *url_lines(question.get("url", ""))]))
            answer = await self.choose("Open it yourself. Is it done? y(es), n(o): ", YES_NO)
            return QuestionAnswer("accept" if answer == "yes" else "decline")
        form = parse_form(question.get("requestedSchema", {}))
        self.show("\n".join(lines))
        if await self.choose("Answer? y(es), n(o): ", YES_NO) == "no":
            return QuestionAnswer("decline")
        content = await fill_in(self, server, form)
        return QuestionAnswer("decline") if content is None else QuestionAnswer("accept", content)

    # --- the dialogue

    def show(self, text: str) -> None:
        self._output.words(text)

    async def choose(self, question: str, choices: dict[str, str]) -> str:
        while True:
            answer = await self.text(question)
            if (choice := choices.get(answer.strip().lower())) is not None:
                return choice

    async def text(self, question: str, default: str = "") -> str:
        # Importing it takes a tenth of a second, and few calls ask.
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output import create_output

        session: PromptSession[str] = PromptSession(output=create_output(sys.stderr))
        return await session.prompt_async(printable(question), default=default, handle_sigint=False)
