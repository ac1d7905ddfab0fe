"""Races for the rules: two people, two tabs, and a rules file that changes. `make races` runs a thousand of each."""

import asyncio
import itertools
import logging
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from a2c_smcp.computer.asker import ASKER, Asker
from a2c_smcp.computer.computer import Computer
from a2c_smcp.computer.decisions.book import (
    Accepted,
    AlreadyDecidedError,
    Confirmation,
    Decision,
    DecisionAnswer,
    Declined,
    Dismissed,
    Outcome,
    Resolution,
)
from a2c_smcp.computer.rules.rule import Rule
from a2c_smcp.computer.rules.store import RuleStore
from a2c_smcp.computer.rules.toml_text import read_rules, without_rule
from a2c_smcp.utils.replacing import replace_file
from tests.computer.fakes.computers import call, code, running, server
from tests.computer.fakes.processes import eventually

NOTES = """\
# My rules.
[[rules]]
id = "first"  # the first one
effect = "ask"
tool = "a.stats"

# About echo.
[[rules]]
id = "second"
effect = "deny"
tool = "a.echo"
args.text = {equals = "no"}
reason = "not this text"
"""
ASKING: dict[str, Any] = {"default_tool_meta": {"auto_apply": False}}


def read(file: Path) -> str:
    return file.read_text("utf-8")


def write(file: Path, text: str) -> None:
    file.write_text(text, "utf-8")


def rule(rule_id: str, **more: Any) -> Rule:
    written = "".join(f"{key} = {value}\n" for key, value in {"effect": '"allow"', "tool": '"t"', **more}.items())
    rules, problems = read_rules(f'[[rules]]\nid = "{rule_id}"\n{written}')
    assert not problems
    return rules[0]


async def asked(computer: Computer, tool: str, **arguments: Any) -> tuple[asyncio.Task[Any], Confirmation]:
    task = asyncio.create_task(call(computer, tool, **arguments))
    await eventually(lambda: bool(computer.decisions.pending))
    (decision,) = computer.decisions.pending
    assert isinstance(decision, Confirmation)
    return task, decision


async def race_for_the_file(file: Path, rounds: int, seed: int) -> None:
    """Two stores with one file, and an editor. Each adds and undoes. In the end the file has what all of them
    wanted.
    """
    chance = random.Random(seed)
    write(file, NOTES)
    stores = [RuleStore(), RuleStore()]
    for store in stores:
        store.open(file)
    wanted = {"first", "second"}
    numbers = itertools.count()
    for _ in range(rounds):
        for place, store in enumerate(stores):
            name = f"r{place}-{next(numbers)}"
            store.add(rule(name))
            wanted.add(name)
            if chance.random() < 0.4 or len(wanted) > 20:
                gone = chance.choice(sorted(each for each in wanted if each.startswith(f"r{place}-")))
                await asyncio.sleep(0)
                store.remove(gone)
                wanted.discard(gone)
        if chance.random() < 0.5:
            # An editor that was opened just now. One that has an old text overwrites newer rules, as any editor does.
            await asyncio.gather(*(store.aclose() for store in stores))
            write(file, f"{read(file)}# seen\n")
        await asyncio.gather(*(store.aclose() for store in stores))
        await asyncio.gather(*(store.reload() for store in stores))
    assert {each.id for each in read_rules(read(file))[0]} == wanted
    assert all({each.id for each in store.list.all} == wanted for store in stores)


async def race_for_cards(file: Path, rounds: int, seed: int) -> None:
    """Four places answer each card at once, with rules, while the file changes. One answer counts, a deny in the file
    beats it, and a rule stands in the list only if its answer counted.
    """
    chance = random.Random(seed)
    async with running(server("a", **ASKING)) as (computer, _):
        rules = computer.decisions.rules
        rules.open(file)
        ASKER.set(Asker("planner"))
        with computer.decisions.attend("browser"):
            for number in range(rounds):
                task, card = await asked(computer, "a.echo", text=str(number))
                won: list[Any] = []
                answers: list[DecisionAnswer] = [
                    Accepted(),
                    Accepted(widths=(0,)),
                    Declined(),
                    Declined("no", never=True),
                ]
                chance.shuffle(answers)
                if denies := chance.random() < 0.3:
                    rules.add(rule(f"deny-{number}", effect='"deny"', tool='"a.echo"'))
                for answer in answers:
                    try:
                        computer.decisions.answer(card.id, answer, by="browser", digest=card.digest)
                        won.append(answer)
                    except AlreadyDecidedError:
                        pass
                assert len(won) == (0 if denies else 1)
                ran = code(await task) is None
                assert ran == (bool(won) and isinstance(won[0], Accepted))
                made = {each.id for each in rules.list.all}
                for rule_id in made:
                    rules.remove(rule_id)
                if chance.random() < 0.5:
                    await rules.aclose()
                    await rules.reload()
        await rules.aclose()
    assert read_rules(read(file))[0] == ()


DENY = '[[rules]]\nid = "edited"\neffect = "deny"\ntool = "a.echo"\n'
ANSWERS: tuple[DecisionAnswer, ...] = (
    *(Accepted(), Accepted(always=True), Accepted(widths=(0,))),
    *(Declined(), Declined("no", never=True), Dismissed()),
)


async def race_of_all(file: Path, rounds: int, seed: int) -> dict[str, int]:
    """A terminal and a page answer the same card, each in a task of its own, while somebody in a thread edits the file
    and the computer reads it again. Returns how often each of them decided.

    One answer counts. What is denied from before the call until after it never runs. What nobody denied has the outcome
    of the answer that counted.
    """
    chance, decided = random.Random(seed), Counter[str]()
    write(file, "")
    async with running(server("a", **ASKING)) as (computer, _):
        decisions, rules = computer.decisions, computer.decisions.rules
        rules.open(file)
        ASKER.set(Asker("planner"))
        plan = _Plan(chance)

        async def at_terminal(_: Decision) -> DecisionAnswer:
            await turns(plan.terminal)
            return plan.terminal_answer

        async def at_page(decision: Decision) -> DecisionAnswer | None:
            await turns(plan.page)
            try:
                decisions.answer(decision.id, plan.page_answer, by="browser", digest=decision.digest)
            except AlreadyDecidedError:
                return None
            assert (found := decisions.resolution(decision.id)) is not None and found.by == "browser"
            return None

        with decisions.attend("terminal", ask=at_terminal), decisions.attend("page", ask=at_page):
            for number in range(rounds):
                plan = _Plan(chance)
                seen: list[Resolution] = []
                denied = [_denies(rules)]
                task = asyncio.create_task(call(computer, "a.echo", text=str(number)))
                editor = asyncio.create_task(_edited(file, plan, rules))
                while not task.done():
                    for card in decisions.pending:
                        asked_id = card.id
                        await eventually(lambda: decisions.resolution(asked_id) is not None)  # noqa: B023
                        found = decisions.resolution(asked_id)
                        assert found is not None
                        seen.append(found)
                    denied.append(_denies(rules))
                    await asyncio.sleep(0)
                ran = code(await task) is None
                denied.append(_denies(rules))
                await editor
                if all(denied) and plan.edit != "remove":
                    assert not ran
                if seen and plan.edit is None and not any(denied):
                    assert ran == (seen[-1].outcome is Outcome.ACCEPTED)
                decided.update(str(each.by) for each in seen)
                for made in rules.list.own:
                    if made.id != "edited":
                        rules.remove(made.id)
                await rules.aclose()
                await rules.reload()
                assert rules.problem == ""
        await rules.aclose()
        assert [each.id for each in rules.list.own] == [each.id for each in read_rules(read(file))[0]]
    return dict(decided)


class _Plan:
    """What happens in one round, and after how many turns of the event loop."""

    def __init__(self, chance: random.Random) -> None:
        self.terminal, self.page, self.reading = (chance.randrange(25) for _ in range(3))
        self.terminal_answer, self.page_answer = chance.choice(ANSWERS), chance.choice(ANSWERS)
        self.edit = chance.choice((None, None, "add", "remove"))
        self.pause = chance.random() * 0.002


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def _denies(rules: RuleStore) -> bool:
    return any(each.effect == "deny" for each in rules.list.all)


async def _edited(file: Path, plan: _Plan, rules: RuleStore) -> None:
    """An editor saves the file as it should be. Then the computer reads it."""

    def edit() -> None:
        time.sleep(plan.pause)
        text = read(file)
        without = without_rule(text, "edited") if "edited" in text else text
        replace_file(file, (f"{DENY}\n{without}" if plan.edit == "add" else without).encode())

    if plan.edit is not None:
        await asyncio.to_thread(edit)
    await turns(plan.reading)
    await rules.reload()


async def main(rounds: int) -> None:
    logging.disable()
    with tempfile.TemporaryDirectory() as folder:
        for name, race in (("the file", race_for_the_file), ("cards", race_for_cards)):
            began = time.perf_counter()
            await race(Path(folder) / f"{name[-4:]}.toml", rounds, seed=int(time.time()))
            print(f"{rounds} races for {name}: {time.perf_counter() - began:.1f} s, no rule lost, one answer each")
        began = time.perf_counter()
        decided = await race_of_all(Path(folder) / "all.toml", rounds, seed=int(time.time()))
        print(f"{rounds} races of all: {time.perf_counter() - began:.1f} s, nothing denied ran; decided by {decided}")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000))
