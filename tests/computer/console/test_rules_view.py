"""Rules on the page: listed with who made them, written, edited, moved, for an hour, tested, and one for a tool."""

import time
from pathlib import Path
from typing import Any

from playwright.async_api import Browser, expect

from a2c_smcp.computer.computer import Computer
from tests.computer.console.harness import Visitor, as_agent, go, opened, press, tab
from tests.computer.console.test_recorded_calls import _record
from tests.computer.fakes.computers import code, server
from tests.computer.fakes.processes import eventually

ASKS: dict[str, Any] = {"default_tool_meta": {}, "prefixed": False}
FILE = """# Kept by Ada.
# For the build.
[[rules]]
id = "first"
effect = "allow"
tool = "echo"

[[rules]]
id = "second"
effect = "deny"
tool = "stats"
reason = "not here"
"""


def ids(computer: Computer) -> list[str]:
    return [rule.id for rule in computer.decisions.rules.list.all]


def written(path: Path) -> Path:
    path.write_text(FILE)
    path.chmod(0o600)
    return path


async def save(visitor: Visitor, text: str, **more: Any) -> Any:
    answer = await visitor.post("/api/save-rule", {"text": text, **more})
    return answer.status_code, answer.json()


async def test_rules_are_moved_and_edited_in_their_file_with_their_comments(tmp_path: Path) -> None:
    file = written(tmp_path / "rules.toml")
    async with opened() as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        store = computer.decisions.rules
        store.open(file)
        listed = (await visitor.get("/api/rules")).json()["rules"]
        assert [(each["id"], each["comment"], each["made"]) for each in listed] == [
            ("first", "Kept by Ada.\nFor the build.", None),
            ("second", "", None),
        ]
        assert (await visitor.post("/api/move-rule", {"id": "first", "up": True})).status_code == 400
        assert (await visitor.post("/api/move-rule", {"id": "first"})).status_code == 200
        assert ids(computer) == ["second", "first"]
        await eventually(lambda: '# Kept by Ada.\n# For the build.\n[[rules]]\nid = "first"' in file.read_text())
        # An edit keeps the place. Who edits an older text is told so, and changes nothing.
        was = next(each["text"] for each in listed if each["id"] == "second")
        edited = was.replace('"deny"', '"ask"')
        assert (await save(visitor, edited, replaces="second", was=was))[0] == 200
        assert ids(computer) == ["second", "first"] and store.list.all[0].effect == "ask"
        status, said = await save(visitor, was, replaces="second", was=was)
        assert status == 400 and said["error"]["details"]["says"] == "rule"
        assert (await save(visitor, 'id = "first"\neffect = "deny"'))[0] == 400  # another rule has this id
        await store.aclose()
        assert 'effect = "ask"' in file.read_text() and '"deny"' not in file.read_text()
        (made, kept) = (await visitor.get("/api/rules")).json()["rules"]
        assert made["made"]["by"] == "Unknown browser" and made["source"] == "file"
        # An edit keeps the words of a comment, and says below them who made it.
        text = kept["text"].replace("allow", "ask")
        assert (await save(visitor, text, replaces="first", was=kept["text"]))[0] == 200
        (_, kept) = (await visitor.get("/api/rules")).json()["rules"]
        assert (kept["comment"], kept["made"]["by"]) == ("Kept by Ada.\nFor the build.", "Unknown browser")
        await store.aclose()


async def test_a_deny_that_is_edited_is_in_force_all_the_time(tmp_path: Path) -> None:
    """The old rule goes and the new one comes in one step: a call that waits never meets a list without both."""
    file = written(tmp_path / "rules.toml")
    async with opened() as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        store, seen = computer.decisions.rules, list[Any]()
        store.open(file)
        store._on_change = lambda change: seen.append(ids(computer))
        was = (await visitor.get("/api/rules")).json()["rules"][1]["text"]
        assert (await save(visitor, was.replace("not here", "never"), replaces="second", was=was))[0] == 200
        assert seen and all("second" in found for found in seen)
        await store.aclose()


async def test_what_is_wrong_with_a_rule_and_what_it_would_have_decided_is_told_before_it_is_saved() -> None:
    config = server("one", prefixed=False)
    async with opened(config) as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()

        async def check(text: str, **more: Any) -> Any:
            return (await visitor.post("/api/check-rule", {"text": text, **more})).json()

        assert "did you mean 'tool'" in (await check('effect = "deny"\ntol = "echo"'))["problems"][0]
        assert "is not TOML" in (await check("effect = "))["problems"][0]
        assert (await check('effect = "deny"\n[[rules]]\neffect = "ask"'))["problems"]
        assert (await check('effect = "deny"\nargs.text = {one_of = ["[[", "x"]}'))["problems"] == []
        for text in ("a", "b", "c"):
            await as_agent(computer, "echo", text=text)
        found = await check('effect = "deny"\nargs.text = {equals = "b"}')
        assert (found["calls"], found["found"], found["effect"]) == (3, 1, "deny")
        (past,) = found["past"]
        assert past["before"] is None and past["after"]["effect"] == "deny" and '"b"' in past["arguments"]
        assert ids(computer) == []
        # Behind a rule that decides these calls already, it decides none.
        assert (await save(visitor, 'effect = "allow"\ntool = "echo"'))[0] == 200
        assert (await check('effect = "deny"\ntool = "echo"'))["found"] == 0
        assert "has the id" in (await check(f'id = "{ids(computer)[0]}"\neffect = "deny"'))["problems"][0]
        assert (await check('effect = "deny"\ntool = "echo"', first=True))["found"] == 3


async def test_past_calls_of_the_record_count_as_well(tmp_path: Path) -> None:
    record = _record(tmp_path / "r.sqlite", 5)
    async with (
        opened(server("one", prefixed=False), record=record) as (computer, console),
        Visitor(console.link()) as visitor,
    ):
        await visitor.enter()
        await as_agent(computer, "echo", text="new")
        body = {"text": 'effect = "deny"\nargs.text = {one_of = ["old 3", "new"]}'}
        found = (await visitor.post("/api/check-rule", body)).json()
        assert (found["calls"], found["found"]) == (6, 2)
        assert ["new" in found["past"][0]["arguments"], "old 3" in found["past"][1]["arguments"]] == [True, True]


async def test_a_rule_for_an_hour_expires_and_one_for_a_tool_replaces_the_other() -> None:
    async with opened(server("one", **ASKS)) as (computer, console), Visitor(console.link()) as visitor:
        await visitor.enter()
        store = computer.decisions.rules
        assert (await save(visitor, 'effect = "allow"\ntool = "echo"', hour=True))[0] == 200
        (rule,) = store.list.all
        assert 3500 < (rule.expires or 0) - time.time() < 3601
        store.remove(rule.id)
        for effect in ("allow", "deny", "ask"):
            body = {"tool": "echo", "effect": effect, "hour": effect == "allow"}
            assert (await visitor.post("/api/tool-rule", body)).status_code == 200
            (rule,) = store.list.all
            assert (rule.effect, bool(rule.expires), bool(rule.digest)) == (
                effect,
                effect == "allow",
                effect == "allow",
            )
        assert (await visitor.post("/api/tool-rule", {"tool": "echo", "effect": ""})).status_code == 200
        assert ids(computer) == []
        assert (await visitor.post("/api/tool-rule", {"tool": "gone", "effect": "allow"})).status_code == 400


async def test_rules_are_written_tested_and_set_for_a_tool_on_the_page(browser: Browser, tmp_path: Path) -> None:
    file = written(tmp_path / "rules.toml")
    async with opened(server("one", **ASKS)) as (computer, console), tab(browser, console.link()) as page:
        computer.decisions.rules.open(file)
        await as_agent(computer, "echo", text="x")
        await go(page, "rules")
        listed = page.locator(".rules li[data-rule]")
        await expect(listed).to_have_count(2)
        await expect(listed.first).to_contain_text("written by hand Kept by Ada.")
        await press(listed.first.get_by_role("button", name="Down"))
        await expect(listed.last).to_have_attribute("data-rule", "first")
        await page.get_by_role("button", name="Write a rule").click()
        text = page.get_by_label("The rule, as it stands in the file")
        await text.fill('effect = "deny"\ntol = "echo"')
        await expect(page.locator(".rule-editor .problem")).to_contain_text("did you mean 'tool'")
        await expect(page.locator("[data-answer=save-rule]")).to_be_disabled()
        await text.fill('effect = "deny"\ntool = "echo"')
        await page.get_by_label("In front of all others").check()
        await page.get_by_label("Only for an hour").check()
        await expect(page.locator(".rule-editor .checked")).to_contain_text("Never run")
        await expect(page.locator(".rule-editor .past li")).to_contain_text("runs → is refused")
        await press(page.locator("[data-answer=save-rule]"))
        await expect(listed).to_have_count(3)
        await expect(listed.first).to_contain_text("by this browser")
        await expect(listed.first).to_contain_text("holds for another")
        assert code(await as_agent(computer, "echo", text="x")) == 4005
        await page.get_by_label("Tool", exact=True).select_option("echo")
        await page.get_by_role("button", name="Which rule decides?").click()
        await expect(page.locator(".tested")).to_contain_text("is refused page-")
        await go(page, "tools/stats")
        toggle = page.locator(".tool-rule")
        await expect(toggle.locator("[data-effect='']")).to_have_attribute("aria-pressed", "true")
        await press(toggle.locator("[data-effect=allow]"))
        await expect(toggle.locator("[data-effect=allow]")).to_have_attribute("aria-pressed", "true")
        await computer.decisions.rules.aclose()
    assert file.read_text().count("[[rules]]") == 4
