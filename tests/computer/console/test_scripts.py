"""The pure modules of the page, run in the browser: values of forms, and what the page knows."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.computer.console.harness import opened, tab


@pytest.fixture(scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with opened() as (_, console), tab(browser, console.link()) as page:
        yield page


async def run(page: Page, code: str, given: Any = None) -> Any:
    """What a function returns that has the modules and the given value."""
    whole = f"""async given => {{
      const form = await import("/js/form-values.js"), {{ EMPTY, reduce }} = await import("/js/state.js");
      return ({code})(given);
    }}"""
    return await page.evaluate(whole, given)


async def test_a_number_is_sent_with_every_digit_that_was_typed(page: Page) -> None:
    sent = """given => JSON.stringify(
      form.completed({ n: new form.Typed(given), empty: undefined, list: [new form.Typed("1.50")] }),
    )"""
    digits = "123456789012345678901234567890"
    assert await run(page, sent, digits) == f'{{"n":{digits},"list":[1.50]}}'


@pytest.mark.parametrize(
    ("typed", "valid"), [("1", True), ("-0.5e-3", True), ("1e", False), ("0x1", False), ("", False)]
)
async def test_what_is_no_number_is_known(page: Page, typed: str, valid: bool) -> None:
    assert await run(page, "given => new form.Typed(given).isNumber", typed) is valid


async def test_required_parts_are_there_from_the_start_and_others_are_left_out(page: Page) -> None:
    schema = {
        "type": "object",
        "$defs": {
            "place": {"type": "object", "properties": {"x": {"type": "number", "default": 2}}, "required": ["x"]}
        },
        "properties": {
            "at": {"$ref": "#/$defs/place"},
            "other": {"$ref": "#/$defs/place"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "kind": {"const": "k"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        },
        "required": ["at", "tags", "kind"],
    }
    assert await run(page, "given => JSON.parse(JSON.stringify(form.completed(form.initial(given))))", schema) == {
        "at": {"x": 2},
        "tags": [],
        "kind": "k",
    }


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"type": "string", "enum": ["a"]}, "choice"),
        ({"oneOf": [{"const": 1, "title": "one"}]}, "choice"),
        ({"type": "array", "items": {"enum": ["a"]}}, "several"),
        ({"type": "array", "items": {"type": "integer"}}, "list"),
        ({"type": "array", "prefixItems": [{}]}, "json"),
        ({"type": ["integer", "null"]}, "integer"),
        ({"type": ["integer", "string"]}, "json"),
        ({"type": "object"}, "json"),
        ({"properties": {}}, "object"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "variants"),
        ({"anyOf": "nonsense", "enum": 5, "type": 7}, "json"),
        ({}, "json"),
        ({"type": "string", "enum": ["x"] * 5000}, "string"),
        ({"type": "object", "properties": {str(n): {} for n in range(5000)}}, "json"),
    ],
)
async def test_each_schema_has_its_field(page: Page, schema: dict[str, Any], kind: str) -> None:
    assert await run(page, "given => form.kindOf(given)", schema) == kind


async def test_a_schema_that_contains_itself_ten_times_does_not_fill_the_page(page: Page) -> None:
    inner = {str(number): {"$ref": "#/$defs/node"} for number in range(10)}
    node = {"type": "object", "properties": inner, "required": list(inner)}
    schema = {"$defs": {"node": node, "loop": {"$ref": "#/$defs/loop"}}, "$ref": "#/$defs/node"}
    assert len(str(await run(page, "given => form.initial(given)", schema))) < 100_000
    assert await run(page, "given => form.kindOf(form.resolved({ $ref: '#/$defs/loop' }, given))", schema) == "json"
    draw = """async given => {
      const { Form } = await import("/js/form.js"), { html, render } = await import("/js/html.js");
      const place = document.body.appendChild(document.createElement("div"));
      render(html`<${Form} schema=${given} value=${{}} onChange=${() => {}} />`, place);
      const count = place.querySelectorAll("fieldset").length;
      render(null, place);
      place.remove();
      return count;
    }"""
    assert 0 < await run(page, draw, schema) < 5000


async def test_a_request_that_is_not_answered_in_time_is_given_up(page: Page) -> None:
    """The page's timers run a thousand times as fast meanwhile."""
    await page.route("**/api/desktop", lambda route: None)
    said = await page.evaluate("""async () => {
      const { get } = await import("/js/api.js"), later = window.setTimeout;
      window.setTimeout = (work, milliseconds) => later(work, milliseconds / 1000);
      const answer = get("desktop");
      window.setTimeout = later;
      return answer.catch(error => [error.message, error.code]);
    }""")
    await page.unroute("**/api/desktop")
    assert said == ["The computer does not answer.", 0]


async def test_a_gap_is_noticed_and_what_is_known_already_is_not_taken_twice(page: Page) -> None:
    states = """() => {
      const empty = { servers: [], offices: [], running: [], ended: [], pending: [], answerers: [] };
      const state = reduce(EMPTY, { kind: "snapshot", number: 5, now: 0, name: "pc", ...empty }, 0);
      const change = (since, number) =>
        reduce(state, { kind: "changes", since, number, now: 0, marked: ["tools"] }, 0);
      const renewed = change(5, 7).stamps.tools > state.stamps.tools;
      return [renewed, change(6, 7), change(3, 5) === state, reduce(state, { kind: "ping", number: 9 })];
    }"""
    assert await run(page, states) == [True, None, True, None]


async def test_a_call_that_starts_and_ends_is_in_one_list_at_a_time(page: Page) -> None:
    states = """() => {
      const call = id => ({ id });
      const message = (since, number, more) => ({ kind: "changes", since, number, now: 0, ...more });
      const progress = { a: { progress: 1 }, b: { progress: 1 } };
      let state = reduce(EMPTY, message(-1, 1, { started: [call("a"), call("b")] }), 0);
      state = reduce(state, message(1, 2, { ended: [call("a")], progress }), 0);
      const ids = list => list.map(each => each.id);
      return [ids(state.running), state.running[0].progress.progress, ids(state.ended)];
    }"""
    assert await run(page, states) == [["b"], 1, ["a"]]


async def test_calls_that_are_over_in_great_number_run_no_more_and_leave_no_gap(page: Page) -> None:
    states = """async () => {
      const { joined } = await import("/js/past.js");
      const call = id => ({ id }), calls = (...ids) => ids.map(call), ids = list => list.map(each => each.id);
      const message = (since, number, more) => ({ kind: "changes", since, number, now: 0, ...more });
      let state = reduce(EMPTY, message(-1, 1, { started: calls("a", "b", "c"), ended: calls("z") }), 0);
      state = reduce(state, message(1, 2, { ended: calls("y"), over: ["a", "b"], skipped: 7 }), 0);
      const list = (...names) => ({ calls: calls(...names), more: true });
      const all = [[list("c", "b"), list("b", "a")], [list("d", "c"), list("a")], [list(), list("a")]];
      return [ids(state.running), ids(state.ended), all.map(([first, before]) => ids(joined(first, before).calls))];
    }"""
    assert await run(page, states) == [["c"], ["y"], [["c", "b", "a"], ["d", "c"], []]]


async def test_times_are_short_and_the_page_has_a_name(page: Page) -> None:
    shown = """async () => {
      const { duration } = await import("/js/i18n.js");
      return [0.0123, 1.25, 59.9, 61, 3700].map(duration);
    }"""
    assert await run(page, shown) == ["12 ms", "1.3 s", "59 s", "1 min 01 s", "1 h 1 min"]
    await expect(page).to_have_title("pc · console")


async def test_each_step_of_a_call_says_who_decided_and_whether_a_rule_was_made(page: Page) -> None:
    steps = """async given => {
      const { stepText } = await import("/js/call-details.js");
      return given.map(stepText);
    }"""
    decided = [
        {"kind": "decided", "outcome": outcome, "how": how, "place": place, "rule": rule, "always": always}
        for outcome in ("accepted", "declined")
        for how, place, rule, always in (
            ("person", "terminal", None, False),
            ("person", "terminal", "card-1", True),
            ("rule", None, "notes", False),
        )
    ]
    asked = {"kind": "asked", "what": "sign_in"}
    assert await run(page, steps, [*decided, asked]) == [
        "Allowed or answered by the terminal.",
        "Allowed by the terminal, and a rule was made for later calls.",
        "Allowed by the rule notes.",
        "Refused by the terminal.",
        "Refused by the terminal, and a rule was made for later calls.",
        "Refused by the rule notes.",
        "A sign-in was asked for.",
    ]
