"""The rules file: read, followed, written, and raced for; and the rules in a Computer that runs."""

import asyncio
import random
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from typer.testing import CliRunner

from a2c_smcp.computer.cli.main import app
from a2c_smcp.computer.config.files import load_config_files
from a2c_smcp.computer.decisions.book import Accepted, Confirmation, Declined
from a2c_smcp.computer.decisions.tool_definitions import ToolDefinitions
from a2c_smcp.computer.rules.deciding import Moment, RuledCall, RuledTool
from a2c_smcp.computer.rules.difference import word_changes
from a2c_smcp.computer.rules.rule_list import RuleList, only_denies_more
from a2c_smcp.computer.rules.store import RuleChange, RuleStore, real_paths
from a2c_smcp.computer.rules.toml_text import read_rules, with_rule, without_rule
from a2c_smcp.computer.watching.events import ToolListChanged
from a2c_smcp.errors import BadRequestError, InvalidConfigError, NotFoundError
from tests.computer.fakes.computers import DEADLINE, call, code, running, server, text
from tests.computer.fakes.processes import eventually
from tests.computer.rules.races import ASKING, NOTES, asked, race_for_cards, race_for_the_file, race_of_all, rule

# --- the text


def test_a_rule_is_added_and_removed_and_every_other_byte_stays() -> None:
    added = with_rule(NOTES, rule("new"), comment="made\non a card")
    assert added.startswith(NOTES) and "# made\n# on a card\n[[rules]]" in added
    assert without_rule(added, "new") == NOTES
    between = with_rule(NOTES, rule("new"), before="second")
    assert [each.id for each in read_rules(between)[0]] == ["first", "new", "second"]
    assert without_rule(between, "new") == NOTES
    without_first = without_rule(NOTES, "first")
    assert "# About echo.\n[[rules]]" in without_first and "first" not in without_first


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('rules = [{effect = "ask"}]\n', "by hand"),
        ("[[rules]]\n", "has a mistake"),
        ('[[rules]]\neffect = "ask"\nreason = """\n[[rules]]\n"""\n', "by hand"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_not(text: str, why: str) -> None:
    with pytest.raises(BadRequestError, match=why):
        with_rule(text, rule("new"), before=next((each.id for each in read_rules(text)[0]), None))


def test_a_rule_that_is_gone_cannot_be_removed() -> None:
    with pytest.raises(NotFoundError):
        without_rule(NOTES, "other")


def test_a_difference_is_shown_word_by_word() -> None:
    assert word_changes("Lists all files.", "Removes all files.") == [
        ("gone", "Lists"),
        ("new", "Removes"),
        ("same", " all files."),
    ]
    assert word_changes("a " * 2000, "b") == [("gone", "a " * 2000), ("new", "b")]
    assert word_changes("", "") == []


# --- the command


def test_the_command_says_which_rule_decides_and_lists_mistakes_with_their_places(tmp_path: Path) -> None:
    file, broken, config = tmp_path / "rules.toml", tmp_path / "broken.toml", tmp_path / "c.json"
    file.write_text(NOTES)
    broken.write_text('[[rules]]\neffect = "alow"\ntol = "x"\nargs.p = {undr = "/x"}\n')
    config.write_text('{"servers": {}, "rules": [{"effect": "deny", "tool": "rm", "reason": "never"}]}')
    run = CliRunner().invoke
    tested = run(app, ["rules", "test", str(file), "--call", "a.echo", "text=no"])
    assert tested.exit_code == 0 and tested.output.startswith("deny: rule second, number 2 of 2")
    assert "reason: not this text" in tested.output
    assert "no rule matches" in run(app, ["rules", "test", str(file), "--call", "a.echo", "text=yes"]).output
    assert "deny: rule" in run(app, ["rules", "test", str(config), "--call", "rm"]).output
    by_name = tmp_path / "names.toml"
    by_name.write_text('[[rules]]\nid = "ada"\neffect = "allow"\nagent = "ada"\nkey = "home"\n')
    tested = run(app, ["rules", "test", str(by_name), "--call", "t", "--agent", "ada", "--key", "home"])
    assert tested.output.startswith("allow: rule ada")
    assert "If no key is bound to the name ada:\nno rule matches" in tested.output
    assert "no rule matches" in run(app, ["rules", "test", str(by_name), "--call", "t", "--agent", "ada"]).output
    claimed = run(app, ["rules", "test", str(by_name), "--call", "t", "--agent", "ada", "--key", "home", "--claimed"])
    assert claimed.output.startswith("no rule matches")
    card = '[[rules]]\nid = "{0}"\neffect = "allow"\ntool = "t"\nserver = "a"\ndigest = "{1}"\n'
    file.write_text("".join(card.format(f"r{each}", each * 64) for each in "bdacef"))
    assert "allow: rule rb" in run(app, ["rules", "test", str(file), "--call", "t"]).output
    assert "it sleeps" in run(app, ["rules", "test", str(file), "--call", "t", "--server", "b"]).output
    file.write_text(NOTES)
    assert "Ask before: the tool is a.stats" in run(app, ["rules", "list", str(file)]).output
    assert "valid: 0 servers, 0 inputs, 3 rules" in run(app, ["validate", str(file), str(config)]).output
    checked = run(app, ["validate", str(broken)])
    assert checked.exit_code == 1
    for said in ("rules[1].effect", "did you mean 'allow'?", "did you mean 'tool'?", "did you mean 'under'?"):
        assert said in checked.output


OLD_SHAPES = """
[[rules]]
id = "mail"
effect = "allow"
args.to = {every = {glob = "*@example.com"}}

[[rules]]
id = "git"
effect = "allow"
args.branch = {glob = "agent/*"}

[[rules]]
id = "price"
effect = "allow"
args.amount = {at_most = 10}

[[rules]]
id = "here"
effect = "deny"
args.url = {host = ["localhost", "169.254.169.254"]}

[[rules]]
id = "fine"
effect = "allow"
args.to = {mail = "*@example.com"}
args.branch = {plain_glob = "agent/*"}
args.name = {glob = "*.md"}
args.amount = {at_least = 0, at_most = 10}
args.url = {host = "example.com"}
"""


async def test_rules_of_the_old_shapes_hold_and_are_named_wherever_rules_are_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(OLD_SHAPES)
    warned = ["mail: args.to:", "git: args.branch:", "price: args.amount:", "here: args.url:"]
    for command in ("validate", "rules list"):
        said = CliRunner().invoke(app, [*command.split(), str(file)])
        assert said.exit_code == 0 and "did you mean 'mail'?" in said.output and "add at_least" in said.output
        assert "host = 'loopback'" in said.output and "host = 'link_local'" in said.output
    store = RuleStore()
    store.open(file)
    assert len(store.list.all) == 5
    log = [record.getMessage() for record in caplog.records]
    assert all(any(f"rule {each}" in line for line in log) for each in warned) and "rule fine" not in str(log)
    file.write_text(OLD_SHAPES * 1 + '[[rules]]\neffect = "allow"\nargs.x = {glob = "a:*"}\n')
    caplog.clear()
    await store.reload()
    assert any("plain_glob" in record.getMessage() for record in caplog.records)


# --- the file


async def test_a_broken_file_changes_nothing_and_says_so_and_a_mended_one_holds_again(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(NOTES)
    store = RuleStore()
    store.open(file)
    file.write_text("[[rules]]\neffect = 3\n")
    await store.reload()
    assert [each.id for each in store.list.all] == ["first", "second"]
    assert "rules[1].effect" in store.problem
    with pytest.raises(InvalidConfigError):
        RuleStore().open(file)
    # A rule that is made now holds, but the broken file is left alone.
    store.add(rule("new"))
    await store.aclose()
    assert [each.source for each in store.listed()] == ["file", "file", "run"]
    assert file.read_text() == "[[rules]]\neffect = 3\n"
    file.write_text(NOTES.replace('"ask"', '"deny"'))
    await store.reload()
    assert [each.rule.id for each in store.listed()] == ["first", "second", "new"]
    assert [each.source for each in store.listed()] == ["file"] * 3
    assert store.problem == "" and "# About echo." in file.read_text()
    assert file.stat().st_mode & 0o077 == 0


async def test_a_broken_file_that_gets_its_old_text_again_has_no_problem_any_more(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(NOTES)
    changes: list[RuleChange] = []
    store = RuleStore(changes.append)
    store.open(file)
    file.write_text("[[rules]]\n")
    await store.reload()
    assert store.problem
    file.write_text(NOTES)
    await store.reload()
    assert store.problem == ""
    assert [change.outcome for change in changes] == ["read", "problem", "read"]


async def test_a_file_that_is_gone_takes_no_rule_away_and_a_new_rule_does_not_replace_it(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(NOTES)
    store = RuleStore()
    store.open(file)
    file.unlink()
    await store.reload()
    assert [each.id for each in store.list.all] == ["first", "second"]
    assert "no such file" in store.problem
    store.add(rule("new"))
    await store.aclose()
    assert not file.exists()
    file.write_text(NOTES)
    await store.reload()
    assert store.problem == ""
    assert [each.id for each in read_rules(file.read_text())[0]] == ["first", "second", "new"]
    file.write_text("")  # this is how somebody takes all rules away
    await store.reload()
    assert store.list.all == ()


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("", "d", True),
        ("ab", "ab", True),
        ("ad", "dad", True),
        ("ad", "a", False),
        ("ad", "da", False),
        ("", "a", False),
        ("d", "dk", False),
        ("dd", "d", False),
    ],
)
def test_only_a_change_that_forbids_more_counts_at_once(before: str, after: str, counts: bool) -> None:
    effects = {"a": "allow", "b": "allow", "k": "ask", "d": "deny"}
    old, new = ([rule(each, effect=f'"{effects[each]}"') for each in texts] for texts in (before, after))
    assert only_denies_more(old, new) == counts


async def test_a_file_that_is_short_for_a_moment_allows_no_more_than_before_or_after(tmp_path: Path) -> None:
    """An editor that writes in parts: for a moment a new rule lacks the line that binds it to one folder."""
    file = tmp_path / "rules.toml"
    file.write_text(NOTES)
    changes: list[RuleChange] = []
    store = RuleStore(changes.append)
    store.open(file)
    start, end = '[[rules]]\nid = "new"\neffect = "allow"\ntool = "w"\n', 'args.path = {under = "/srv"}\n'
    file.write_text(start)
    reading = asyncio.create_task(store.reload())
    await asyncio.wait([reading], timeout=0.1)
    seen = store.list.all
    file.write_text(NOTES + start + end)
    await reading
    assert [each.id for each in seen] == ["first", "second"]
    (new,) = (each for each in store.list.all if each.id == "new")
    assert new.args and store.gone == "" and not store.gone_denies
    # A rule that is made now is not written to a file that is short.
    file.write_text("")
    store.add(rule("card"))
    saving = asyncio.create_task(store.aclose())
    await asyncio.wait([saving], timeout=0.1)
    file.write_text(NOTES)
    await saving
    assert [each.id for each in read_rules(file.read_text())[0]] == ["first", "second", "card"]
    file.write_text("")
    await store.reload()
    assert store.list.all == () and store.gone == "1 deny is gone from the rules file"
    assert [(each.outcome, each.denies) for each in changes][-2:] == [("read", None), ("gone", 1)]
    file.write_text(NOTES)
    await store.reload()
    assert store.gone == ""


def test_a_rules_file_that_somebody_names_must_be_there(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"servers": {}}')
    given = ["run", "--headless", "--office", "o", "--config", str(config), "--no-record"]
    done = CliRunner().invoke(app, [*given, "--rules", str(tmp_path / "typo.toml")])
    assert done.exit_code == 1 and "there is no such file" in done.output


async def test_a_rules_file_that_is_a_link_is_followed_where_it_leads(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    target, link = tmp_path / "there" / "mine.toml", tmp_path / "here" / "rules.toml"
    target.write_text("")
    link.symlink_to(target)
    store = RuleStore()
    store.open(link)
    store.add(rule("a", digest='"' + "d" * 64 + '"'), seen={"title": "T"})
    await store.aclose()
    again = RuleStore()
    again.open(link)
    assert again.seen("d" * 64) == {"title": "T"}
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(again.follow)
        with anyio.fail_after(DEADLINE):
            while not any(each.id == "second" for each in again.list.all):  # when watching begins is not to be seen
                target.write_text(f"{NOTES}# {random.random()}\n")
                await anyio.sleep(0.3)
        tasks.cancel_scope.cancel()


async def test_a_never_is_first_although_the_rule_that_stood_there_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text('[[rules]]\nid = "a"\neffect = "ask"\n\n[[rules]]\nid = "b"\neffect = "allow"\n')
    store = RuleStore()
    store.open(file)
    store.add(rule("never", effect='"deny"'), is_first=True)
    file.write_text('[[rules]]\nid = "b"\neffect = "allow"\n')  # an editor was quicker
    await store.aclose()
    assert [each.id for each in read_rules(file.read_text())[0]] == ["never", "b"]
    assert [each.id for each in store.list.all] == ["never", "b"]


async def test_a_path_that_nobody_can_resolve_in_time_is_taken_as_unknown() -> None:
    """A network drive that does not answer holds up threads; neither calls nor others' threads wait for it."""
    wait = threading.Event()

    def resolve(paths: Sequence[str]) -> dict[str, str | None]:
        if any("dead" in path for path in paths):
            wait.wait(DEADLINE)
        return real_paths(paths)

    store = RuleStore(resolve=resolve, resolve_seconds=0.05)
    store.add(rule("d", effect='"deny"', **{"args.path": '{under = "/srv"}'}))
    tool = RuledTool("s", "t", "t")
    try:
        for _ in range(45):
            verdict = await store.verdict(RuledCall(tool, {"path": "/dead/x"}))
            assert verdict is not None and verdict.effect == "deny"
        with anyio.fail_after(DEADLINE):
            assert await anyio.to_thread.run_sync(lambda: 1) == 1
    finally:
        wait.set()


async def test_writers_and_a_person_with_an_editor_race_and_no_rule_is_lost(tmp_path: Path) -> None:
    await race_for_the_file(tmp_path / "rules.toml", rounds=10, seed=1)


# --- in a Computer


async def test_rules_decide_calls_and_come_before_the_config(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(NOTES)
    async with running(server("a")) as (computer, record):
        computer.decisions.rules.open(file)
        assert code(await call(computer, "a.echo", text="yes")) is None  # auto_apply
        denied = await call(computer, "a.echo", text="no")
        assert denied.meta is not None
        assert (denied.meta["error_code"], denied.meta["outcome"]) == (4005, "rule")
        assert denied.meta["reason"] == "not this text"
        assert code(await call(computer, "a.stats")) == 4005  # it must be asked for, and nobody is there
        computer.decisions.allow_all = True
        assert code(await call(computer, "a.echo", text="no")) == 4005
        # A person's own call is the person's decision.
        own = await computer.execute_tool("own", "a.echo", {"text": "no"}, DEADLINE, confirmed_by="terminal")
        assert text(own) == "no"
        listed = {each.rule.id: each.matched for each in computer.decisions.rules.listed()}
        assert listed == {"first": 1, "second": 2}
        marks = {tool["name"]: (tool["meta"] or {}).get("a2c_rule") for tool in computer.get_available_tools()}
        assert (marks["a.stats"], marks["a.echo"], marks["a.sleep"]) == ("ask", None, "allow")
        before = len(record.now(ToolListChanged))
        computer.decisions.rules.remove("first")
        await eventually(lambda: len(record.now(ToolListChanged)) > before)
        marks = {tool["name"]: (tool["meta"] or {}).get("a2c_rule") for tool in computer.get_available_tools()}
        assert marks["a.stats"] == "allow"


async def test_an_allow_never_brings_back_a_forbidden_tool() -> None:
    async with running(server("a", forbidden_tools=["echo"])) as (computer, _):
        computer.decisions.rules.add(rule("all", tool='"*"'))
        assert code(await call(computer, "a.echo", text="x")) == 4002
        assert "a.echo" not in [tool["name"] for tool in computer.get_available_tools()]
        assert code(await call(computer, "a.stats")) is None


async def test_a_card_does_not_switch_off_a_deny_of_a_config_file(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text(
        '{"servers": {}, "rules": [{"effect": "deny", "args": {"text": {"glob": "*.ssh*"}}, "reason": "keys"}]}'
    )
    async with running(server("a", **ASKING)) as (computer, _):
        computer.decisions.rules.use_config(load_config_files(config).rules)
        with computer.decisions.attend("browser"):
            task, card = await asked(computer, "a.echo", text="hello")
            computer.decisions.answer(card.id, Accepted(always=True), by="browser")
            assert text(await task) == "hello"
            assert text(await call(computer, "a.echo", text="again")) == "again"
            denied = await call(computer, "a.echo", text="/home/ada/.ssh/id")
            assert denied.meta is not None and denied.meta["reason"] == "keys"


async def test_a_place_that_is_called_rule_is_believed_like_any_other() -> None:
    async with running(server("a", **ASKING)) as (computer, _):
        with computer.decisions.attend("rule"):
            task, card = await asked(computer, "a.echo", text="x")
            computer.decisions.answer(card.id, Accepted(), by="rule")
            with anyio.fail_after(DEADLINE):
                assert text(await task) == "x"
        (ended,) = computer.past_calls()
        assert (ended.how.by, ended.how.place) == ("person", "rule")


async def test_the_file_is_followed_and_a_deny_that_comes_after_the_question_beats_a_yes(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    async with running(server("a", **ASKING)) as (computer, _), anyio.create_task_group() as tasks:
        computer.decisions.rules.open(file)
        tasks.start_soon(computer.decisions.rules.follow)
        with computer.decisions.attend("browser"):
            calls = [asyncio.create_task(call(computer, "a.echo", text=each)) for each in ("no", "yes")]
            await eventually(lambda: len(computer.decisions.pending) == 2)
            with anyio.fail_after(DEADLINE):
                while not calls[0].done():  # when watching begins is not to be seen
                    file.write_text(f"{NOTES}# {random.random()}\n")
                    await asyncio.wait([calls[0]], timeout=0.5)
            denied = await calls[0]
            assert denied.meta is not None and denied.meta["outcome"] == "rule"
            (left,) = computer.decisions.pending
            computer.decisions.answer(left.id, Accepted(), by="browser")
            assert text(await calls[1]) == "yes"
        tasks.cancel_scope.cancel()


async def test_a_rule_of_a_config_file_decides_and_is_not_undone_here(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"servers": {}, "rules": [{"id": "c", "effect": "deny", "tool": "a.*", "reason": "closed"}]}')
    async with running(server("a")) as (computer, _):
        computer.decisions.rules.use_config(load_config_files(file).rules)
        denied = await call(computer, "a.echo", text="x")
        assert denied.meta is not None and denied.meta["reason"] == "closed"
        with pytest.raises(BadRequestError, match="config file"):
            computer.decisions.rules.remove("c")


async def test_a_server_that_changes_its_tool_between_the_card_and_the_click(tmp_path: Path) -> None:
    """The rug pull: the rule is for what was shown, so it sleeps, and the change is shown. So it is after a restart."""
    file = tmp_path / "rules.toml"
    changed = {"name": "echo", "description": "text → text, and then it deletes your files"}
    async with running(server("a", **ASKING)) as (computer, _):
        computer.decisions.rules.open(file)
        with computer.decisions.attend("browser"):
            task, first = await asked(computer, "a.echo", text="x")
            await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
            await eventually(lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools()))
            computer.decisions.answer(first.id, Accepted(always=True), by="browser", digest=first.digest)
            await eventually(lambda: bool(computer.decisions.pending))
            (again,) = computer.decisions.pending
            assert isinstance(again, Confirmation) and not task.done()
            assert again.allowed_before is not None and again.allowed_before.description == "text → text"
            assert again.definition.changes_since(again.allowed_before) == ("description",)
            computer.decisions.answer(again.id, Declined(), by="browser", digest=again.digest)
            assert code(await task) == 4005
        (made,) = computer.decisions.rules.list.all
        assert computer.sleeping_rules() == {made.id}
        marks = {tool["name"]: (tool["meta"] or {}).get("a2c_rule") for tool in computer.get_available_tools()}
        assert marks["a.echo"] == "ask"
        await computer.decisions.rules.aclose()
    # The next run knows the rule and the tool that was seen; here the tool is again as it was.
    async with running(server("a", **ASKING)) as (computer, _):
        computer.decisions.rules.open(file)
        assert text(await call(computer, "a.echo", text="x")) == "x"
        await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
        await eventually(lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools()))
        assert code(await call(computer, "a.echo", text="x")) == 4005  # nobody is there
        with computer.decisions.attend("browser"):
            task, card = await asked(computer, "a.echo", text="x")
            assert card.allowed_before is not None and card.allowed_before.description == "text → text"
            # A new rule for the tool as it is now replaces the one that sleeps.
            computer.decisions.answer(card.id, Accepted(always=True), by="browser", digest=card.digest)
            assert text(await task) == "x"
        assert computer.sleeping_rules() == frozenset()
        assert len(computer.decisions.rules.list.all) == 1


async def test_a_call_that_waits_for_its_turn_is_asked_for_again_if_its_tool_changes_meanwhile() -> None:
    changed = {"name": "echo", "description": "text → text, and then it deletes your files"}
    async with running(server("a", **ASKING), max_calls=2) as (computer, _):
        tasks: list[asyncio.Task[Any]] = []

        async def begin(tool: str, **arguments: Any) -> str:
            before = {entry.call.id for entry in computer.running_calls}
            own = computer.execute_tool(f"own-{len(tasks)}", tool, arguments, DEADLINE, confirmed_by="test")
            tasks.append(asyncio.create_task(own))
            for _ in range(20):  # until it waits for its server
                await asyncio.sleep(0)
            (new,) = {entry.call.id for entry in computer.running_calls} - before
            return new

        # Two calls hold both places. Then the tool is changed, a third call takes that place, and ours is next.
        first, second = await begin("a.sleep", seconds=60), await begin("a.sleep", seconds=60)
        await begin("a.describe", **changed)
        third = await begin("a.sleep", seconds=60)
        with computer.decisions.attend("browser"):
            task, card = await asked(computer, "a.echo", text="x")
            computer.decisions.answer(card.id, Accepted(), by="browser", digest=card.digest)
            for _ in range(20):
                await asyncio.sleep(0)
            computer.cancel_call(first, by="test")
            await eventually(lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools()))
            assert not task.done() and not computer.decisions.pending
            computer.cancel_call(second, by="test")
            await eventually(lambda: bool(computer.decisions.pending))
            (again,) = computer.decisions.pending
            assert isinstance(again, Confirmation) and "deletes" in again.definition.description
            computer.decisions.answer(again.id, Declined(), by="browser", digest=again.digest)
            assert code(await task) == 4005
        computer.cancel_call(third, by="test")
        await asyncio.gather(*tasks)


@pytest.mark.parametrize("allowed_by", ["person", "rule", "config"])
@pytest.mark.parametrize("denied_by", ["file", "card"])
async def test_a_deny_that_comes_while_an_approved_call_waits_for_its_turn_stops_it(
    tmp_path: Path, allowed_by: str, denied_by: str
) -> None:
    file, deny = tmp_path / "rules.toml", '[[rules]]\nid = "d"\neffect = "deny"\ntool = "a.echo"\nreason = "closed"\n'
    allow = '[[rules]]\nid = "ok"\neffect = "allow"\ntool = "a.echo"\nargs.text = {equals = "x"}\n'
    meta = {"auto_apply": False} if allowed_by != "config" else {"auto_apply": True}
    async with running(server("a", default_tool_meta=meta), max_calls=1) as (computer, _):
        rules = computer.decisions.rules
        file.write_text(allow if allowed_by == "rule" else "")
        rules.open(file)
        with computer.decisions.attend("browser"):
            holds = asyncio.create_task(
                computer.execute_tool("own", "a.sleep", {"seconds": 60}, DEADLINE, confirmed_by="test")
            )
            await eventually(lambda: bool(computer.running_calls))
            (first,) = computer.running_calls
            task = asyncio.create_task(call(computer, "a.echo", text="x"))
            if allowed_by == "person":
                await eventually(lambda: bool(computer.decisions.pending))
                computer.decisions.answer(computer.decisions.pending[0].id, Accepted(), by="browser")
            for _ in range(20):  # until it waits for its server
                await asyncio.sleep(0)
            if denied_by == "file":
                file.write_text(deny)
                await rules.reload()
            else:
                rules.add(rule("d", effect='"deny"', tool='"a.echo"', reason='"closed"'), is_first=True, by="browser")
            assert not task.done()
            computer.cancel_call(first.call.id, by="test")
            with anyio.fail_after(DEADLINE):
                denied = await task
                await holds
        assert denied.meta is not None and (denied.meta["outcome"], denied.meta["reason"]) == ("rule", "closed")
        (how,) = (ended.how for ended in computer.past_calls() if ended.call.name == "a.echo")
        assert (how.by, how.rule) == ("rule", "d")


async def test_a_rule_about_something_else_does_not_ask_twice_while_a_call_waits_for_its_turn() -> None:
    async with running(server("a", **ASKING), max_calls=1) as (computer, _):
        computer.decisions.rules.add(rule("few", effect='"allow"', tool='"a.echo"', at_most='"1 per hour"'))
        own = computer.execute_tool("own", "a.sleep", {"seconds": 60}, DEADLINE, confirmed_by="test")
        holds = asyncio.create_task(own)
        await eventually(lambda: bool(computer.running_calls))
        (first,) = computer.running_calls
        task = asyncio.create_task(call(computer, "a.echo", text="x"))
        for _ in range(20):
            await asyncio.sleep(0)
        computer.decisions.rules.add(rule("other", effect='"deny"', tool='"a.stats"'))
        computer.cancel_call(first.call.id, by="test")
        with anyio.fail_after(DEADLINE):
            # Its rate has room for this call, which it has counted, and for no other.
            assert text(await task) == "x"
            await holds
        assert [each.matched for each in computer.decisions.rules.listed()] == [1, 0]
        assert code(await call(computer, "a.echo", text="x")) == 4005


@pytest.mark.parametrize(
    ("limit", "later", "alike"),
    [
        ({}, Moment(9e9, 0), True),
        ({"hours": '"22:00-06:00"'}, Moment(1_000_030.0, 600), True),
        ({"hours": '"22:00-06:00"'}, Moment(1_000_030.0, 601), False),
        ({"hours": '"22:00-06:00"'}, Moment(1_086_400.0, 600), False),
        ({"expires": "1970-01-12T13:47:00Z"}, Moment(1_000_010.0, 600), True),
        ({"expires": "1970-01-12T13:47:00Z"}, Moment(1_000_020.0, 600), False),
    ],
)
def test_a_call_is_decided_again_if_time_has_put_other_rules_in_force(
    limit: dict[str, str], later: Moment, alike: bool
) -> None:
    rules = RuleList((rule("r", **limit),))
    assert rules.has_times == bool(limit)
    assert rules.holds_alike(Moment(1_000_000.0, 600), later) is alike


async def test_a_tool_that_changes_while_a_path_is_resolved_is_decided_about_again() -> None:
    changed = {"name": "echo", "description": "text → text, and then it deletes your files"}
    async with running(server("a", **ASKING)) as (computer, _):
        go, waits = threading.Event(), threading.Event()

        def resolve(paths: Sequence[str]) -> dict[str, str | None]:
            waits.set()
            go.wait(DEADLINE)
            return real_paths(paths)

        computer.decisions.rules = RuleStore(resolve=resolve, resolve_seconds=DEADLINE)
        shown = computer._manager.validate_tool_call("a.echo")
        digest = ToolDefinitions(computer._manager.book).of(shown).digest
        bound = rule("b", tool='"a.echo"', digest=f'"{digest}"', **{"args.text": '{under = "/srv"}'})
        computer.decisions.rules.add(bound)
        task = asyncio.create_task(call(computer, "a.echo", text="/srv/x"))
        await eventually(waits.is_set)
        await computer.execute_tool("s", "a.describe", changed, confirmed_by="test")
        await eventually(lambda: any("deletes" in tool["description"] for tool in computer.get_available_tools()))
        go.set()
        assert code(await task) == 4005  # the rule sleeps, and nobody can be asked


async def test_two_people_and_two_tabs_and_the_file_race_and_one_answer_counts(tmp_path: Path) -> None:
    await race_for_cards(tmp_path / "rules.toml", rounds=50, seed=2)


async def test_a_terminal_a_page_an_editor_and_rules_race_and_nothing_runs_that_is_denied(tmp_path: Path) -> None:
    decided = await race_of_all(tmp_path / "rules.toml", rounds=100, seed=3)
    assert decided["terminal"] > 5 and decided["browser"] > 5  # it is a race: both of them win
