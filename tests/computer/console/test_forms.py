"""Forms in a real browser: what is wrong is said at its field, and dates with times are picked."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.computer.console.harness import opened, tab

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["name", "count", "colour"],
    "properties": {
        "name": {"type": "string", "title": "Name", "description": "Of the thing", "minLength": 2},
        "mail": {"type": "string", "format": "email", "title": "Mail"},
        "count": {"type": "integer", "title": "Count", "minimum": 3, "maximum": 5},
        "colour": {"enum": ["red", "blue"], "title": "Colour"},
        "several": {"type": "array", "items": {"enum": ["a", "b"]}, "title": "Several"},
        "free": {"title": "Free"},
    },
}

DRAWN = """async ({ schema }) => {
  const { Form } = await import("/js/form.js"), { html, render } = await import("/js/html.js");
  const values = await import("/js/form-values.js");
  document.querySelector("#drawn")?.remove();
  const place = document.body.appendChild(document.createElement("form"));
  place.id = "drawn";
  place.onsubmit = event => {
    event.preventDefault();
    window.sent = JSON.parse(JSON.stringify(values.completed(value)));
  };
  let value = values.initial(schema);
  window.sent = null;
  window.refuse = errors => draw(value, errors);
  function draw(next, errors) {
    value = next;
    const given = { schema, value, errors, titled: true, onChange: each => draw(each, errors) };
    render(html`<${Form} ...${given} /><button>Go</button>`, place);
  }
  draw(value, null);
}"""


@pytest.fixture(scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    async with opened() as (_, console), tab(browser, console.link(), timezone_id="Asia/Kolkata") as page:
        yield page


async def drawn(page: Page, schema: dict[str, Any]) -> Locator:
    await page.evaluate(DRAWN, {"schema": schema})
    return page.locator("#drawn")


async def wrong(form: Locator, label: str, text: str) -> Locator:
    """The field of this name says this of itself, also to those who hear it."""
    field = form.get_by_label(label, exact=False)
    await expect(field).to_have_attribute("aria-invalid", "true")
    await expect(field).to_have_accessible_description(text)
    return field


async def test_each_wrong_field_says_so_at_itself_and_the_first_has_the_focus(page: Page) -> None:
    form = await drawn(page, SCHEMA)
    await form.get_by_label("Mail").fill("nonsense")
    await form.get_by_label("Count").fill("2")
    await form.get_by_label("Free").fill("{")
    await form.get_by_role("button", name="Go").click()
    await expect(await wrong(form, "Name", "Of the thing Fill this in.")).to_be_focused()
    await wrong(form, "Mail", "This is not an e-mail address.")
    await wrong(form, "Count", "It must be at least 3.")
    await wrong(form, "Colour", "Choose one.")
    await wrong(form, "Free", "This is not JSON.")
    assert await page.evaluate("window.sent") is None

    await form.get_by_label("Name").press_sequentially("x")
    await wrong(form, "Name", "Of the thing It needs at least 2 characters.")
    await form.get_by_label("Name").press_sequentially("y")
    await expect(form.get_by_label("Name")).not_to_have_attribute("aria-invalid", "true")
    await form.get_by_label("Mail").fill("a@b")
    await form.get_by_label("Count").fill("9")
    await wrong(form, "Count", "It must be at most 5.")
    await form.get_by_label("Count").fill("4")
    await form.get_by_label("Colour").select_option("blue")
    await form.get_by_label("Free").fill("[1]")
    await expect(form.locator(".wrong")).to_have_count(0)
    await form.get_by_role("button", name="Go").click()
    assert await page.evaluate("window.sent") == {
        "name": "xy", "mail": "a@b", "count": 4, "colour": "blue", "free": [1],
    }  # fmt: skip


async def test_what_the_computer_refuses_is_shown_at_its_field_until_that_changes(page: Page) -> None:
    form = await drawn(page, SCHEMA)
    await page.evaluate("window.refuse({ several: 'Choose at least 1 option.', count: 'No.' })")
    await expect(await wrong(form, "Count", "No.")).to_be_focused()
    group = form.get_by_role("group", name="Several")
    await expect(group).to_have_accessible_description("Choose at least 1 option.")
    await form.get_by_label("Count").fill("3")
    await expect(form.locator(".wrong")).to_have_count(1)
    await group.get_by_label("a").check()
    await expect(form.locator(".wrong")).to_have_count(0)
    await page.evaluate("window.refuse({ count: 'No.' })")
    await wrong(form, "Count", "No.")


async def test_a_date_with_a_time_is_picked_and_sent_with_the_offset_of_this_place(page: Page) -> None:
    form = await drawn(
        page,
        {
            "type": "object",
            "properties": {
                "when": {"type": "string", "format": "date-time", "title": "When"},
                "given": {"type": "string", "format": "date-time", "title": "Given", "default": "2026-01-31T09:30:05Z"},
                "odd": {"type": "string", "format": "date-time", "title": "Odd", "default": "tomorrow"},
            },
        },
    )
    when = form.get_by_label("When")
    await expect(when).to_have_attribute("type", "datetime-local")
    await expect(form.get_by_label("Given")).to_have_value("2026-01-31T15:00:05")
    await expect(form.get_by_label("Odd")).to_have_value("tomorrow")
    await when.fill("2026-07-01T08:15")
    await form.get_by_role("button", name="Go").click()
    assert await page.evaluate("window.sent") == {
        "when": "2026-07-01T08:15:00+05:30", "given": "2026-01-31T09:30:05Z", "odd": "tomorrow",
    }  # fmt: skip
    # As people type it: digit after digit, with the parts of a date that are not there yet.
    await when.fill("")
    await when.focus()
    await page.keyboard.type("12312026111213PM")
    await form.get_by_role("button", name="Go").click()
    assert (await page.evaluate("window.sent"))["when"] == "2026-12-31T23:12:13+05:30"
