"""docs/rules.md: each recipe is a valid file, and its rules say what the page says."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from a2c_smcp.computer.rules.conditions import OPERATORS
from a2c_smcp.computer.rules.deciding import Moment, RuleCounters, RuledCall, RuledTool, decide
from a2c_smcp.computer.rules.toml_text import read_rules
from a2c_smcp.computer.rules.words import ENGLISH, sentence_of
from a2c_smcp.utils.values import read_values

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "rules.md").read_text("utf-8")
_BLOCKS = re.compile(
    r"^### (.+?)\n\n<!-- recipe -->\n```toml\n(.*?)^```\n\n<!-- calls -->\n```text\n(.*?)^```", re.MULTILINE | re.DOTALL
)
RECIPES = _BLOCKS.findall(PAGE)


def call_of(line: str) -> tuple[RuledCall, Moment]:
    """A line such as `write_file path=/a agent=planner [readOnlyHint=true] @10:00`."""
    name, _, rest = line.partition(" ")
    hints, who = {}, {"agent": "", "office": "", "server": ""}
    if found := re.search(r"\[(\w+=\w+(?: \w+=\w+)*)\]", rest):
        hints = {key: value == "true" for key, value in (pair.split("=") for pair in found[1].split())}
        rest = rest.replace(found[0], "")
    hour, minute = 12, 0
    if found := re.search(r"@(\d\d):(\d\d)", rest):
        hour, minute = int(found[1]), int(found[2])
        rest = rest.replace(found[0], "")
    arguments: dict[str, Any] = {}
    if rest.strip().startswith("{"):
        arguments = json.loads(rest)
    else:
        words = rest.split()
        who |= {key: value for key, _, value in (word.partition("=") for word in words) if key in who}
        arguments = read_values([word for word in words if word.partition("=")[0] not in who]).read(None)
    tool = RuledTool(who["server"], name, name, hints)
    return RuledCall(tool, arguments, who["agent"], who["office"]), Moment(1.8e9, hour * 60 + minute, 100.0)


@pytest.mark.parametrize(("rules", "calls"), [recipe[1:] for recipe in RECIPES], ids=[recipe[0] for recipe in RECIPES])
def test_recipe(rules: str, calls: str) -> None:
    parsed, problems = read_rules(rules)
    assert not problems, problems
    assert all(sentence_of(rule) for rule in parsed)
    for line in calls.splitlines():
        said, _, answer = line.rpartition(" => ")
        call, now = call_of(said)
        verdict = decide(parsed, call, now, RuleCounters())
        assert ("none" if verdict is None else verdict.effect) == answer, line


def test_there_are_ten_recipes_and_every_operator_is_on_the_page() -> None:
    assert len(RECIPES) == 10 and PAGE.count("<!-- recipe -->") == 10
    assert all(f"`{operator}" in PAGE for operator in OPERATORS)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_in_the_browser_has_a_sentence_for_every_condition(language: str) -> None:
    folder = ROOT / "a2c_smcp" / "computer" / "console" / "static" / "js"
    script = (folder / f"texts-{language}.js").read_text("utf-8")
    texts = {key: json.loads(text) for key, text in re.findall(r'^  "rule\.([\w.]+)": (".*"),$', script, re.MULTILINE)}
    texts.pop("and")
    assert texts.keys() == ENGLISH.keys()
    for key, text in texts.items():
        assert set(re.findall(r"\{\w+\}", text)) == set(re.findall(r"\{\w+\}", ENGLISH[key])), key
    if language == "en":
        assert texts == ENGLISH
