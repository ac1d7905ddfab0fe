"""A human in the loop over chat: a computer whose calls are confirmed in a conversation, not at its terminal.

`send` posts a line, `receive` waits for the person's next line; put your messenger there. Each question has a number,
and its answer begins with it: a late "yes" does not allow the next call.

    A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab python examples/human_in_the_loop.py config.json
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from a2c_smcp.computer import Computer, SMCPComputerClient, load_config_files
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Decision, DecisionAnswer, Declined


async def confirm_by_chat(
    computer: Computer, send: Callable[[str], Awaitable[None]], receive: Callable[[], Awaitable[str]]
) -> None:
    """Ask in the chat until it ends. `yes` and `always` allow a call, and other words refuse it."""
    open_questions: dict[str, asyncio.Future[str]] = {}
    numbers = map(str, range(1, sys.maxsize))

    async def ask(decision: Decision) -> DecisionAnswer | None:
        if not isinstance(decision, Confirmation):
            return None
        call, number = decision.call, next(numbers)
        open_questions[number] = asyncio.get_running_loop().create_future()
        try:
            what = f"{call.agent} wants {call.name} on {call.server} with {dict(call.arguments)}"
            await send(f"{number}: {what}. Answer {number} yes, {number} always or {number} no.")
            said = await open_questions[number]
        finally:
            del open_questions[number]  # it is answered, or has expired
        return Accepted(always=said == "always") if said in ("yes", "always") else Declined(said)

    with computer.decisions.attend("chat", {"confirmation"}, ask):
        while line := await receive():
            number, _, said = line.strip().partition(" ")
            if number in open_questions and not open_questions[number].done():
                open_questions[number].set_result(said)  # the agent reads the words of a refusal
            else:
                await send("Begin with the number of an open question.")


async def main() -> None:
    async def send(line: str) -> None:
        print(line, flush=True)

    config = load_config_files(*sys.argv[1:])
    computer = Computer("desk", mcp_servers=config.servers, inputs=config.inputs)
    url, key = os.environ["A2C_URL"], os.environ.get("A2C_API_KEY")
    async with computer, SMCPComputerClient(computer, url, api_key=key) as client:
        await client.join_office(os.environ["A2C_OFFICE"])
        await confirm_by_chat(computer, send, lambda: asyncio.to_thread(sys.stdin.readline))


if __name__ == "__main__":
    asyncio.run(main())
