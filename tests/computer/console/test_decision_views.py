"""What the page is sent of a decision: whole or cut with a count, nothing hidden, values left as they are."""

from typing import Any

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.console.decision_views import decision_list, decision_view, whole_call_view
from a2c_smcp.computer.console.rule_views import difference_view
from a2c_smcp.computer.decisions.book import Confirmation, MissingInput, Question, ToolDefinition
from a2c_smcp.computer.mcp_clients.model import parse_input


def confirmation(definition: ToolDefinition = ToolDefinition(), /, **arguments: Any) -> Confirmation:  # noqa: B008
    call = WatchedCall("c", "r", "pl\u0430nner", "shell", "run", "shell_run", arguments, None, 1.0, "lab")
    return Confirmation("d", 1.0, None, call, definition)


def test_names_are_told_as_words_with_a_mark_for_mixed_scripts() -> None:
    call = decision_view(confirmation())["call"]
    assert call["agent"] == {"words": ["pl\u0430nner"], "text": "pl\u0430nner", "mixed": True}
    assert (call["office"]["text"], call["server"]["mixed"], call["shown_as"]["text"]) == ("lab", False, "shell_run")
    assert call["key"] == ["shell", "run"]


def test_long_arguments_are_cut_each_so_that_every_name_shows_and_the_whole_is_to_be_had() -> None:
    asked = confirmation(a="x" * 300_000 + "\nrm", b="\n".join("y" * 100 for _ in range(3000)), c=1)
    view = decision_view(asked)
    assert view["cut"] and [row["name"] for row in view["rows"]] == [["a"], ["b"], ["c"]]
    assert sum(len("".join(row["text"])) for row in view["rows"]) < 110_000
    first, second, third = view["rows"]
    assert (first["more_lines"], first["more"]) == (2, 300_003 - 33_333)
    assert second["more_lines"] == 3000 - 33_333 // 101
    assert (third["more_lines"], third["more"], third["is_text"]) == (0, 0, False)
    whole = whole_call_view(asked)
    assert not whole["cut"] and "".join(whole["rows"][0]["text"]).endswith("rm")
    assert not decision_view(confirmation(a="x"))["cut"]


def test_what_a_server_says_of_its_tool_is_bounded_and_only_its_yes_and_no_hints_count() -> None:
    said = ToolDefinition("T", "d" * 5000, {"destructiveHint": True, "title": "Allow", "odd": "x"}, is_dangerous=True)
    tool = decision_view(confirmation(said))["tool"]
    assert tool["hints"] == {"destructiveHint": True} and tool["dangerous"]
    assert len(tool["description"][0]) == 4000 and tool["description_cut"] == 1000


def test_a_form_has_visible_words_and_sends_back_what_the_server_meant() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a\u200b": {"type": "string", "description": "x\u202e", "default": "\u202e"},
            "b": {"type": "string", "oneOf": [{"const": "\u200b", "title": "\u200bone"}]},
            "c": {"type": "array", "items": {"type": "string", "enum": ["\u202ex"], "enumNames": "odd"}},
        },
        "required": ["b"],
    }
    view = decision_view(Question("d", 1.0, None, "shell", "m\u202e", schema, None, None, ()))
    a, b, c = view["schema"]["properties"].values()
    assert view["message"] == ["m", "\\u202e", ""] and view["schema"]["required"] == ["b"]
    assert a == {"type": "string", "title": "a\\u200b", "description": "x\\u202e", "default": "\u202e"}
    assert b["oneOf"] == [{"const": "\u200b", "title": "\\u200bone"}]
    assert (c["items"]["enum"], c["items"]["enumNames"]) == (["\u202ex"], ["\\u202ex"])
    assert not view["secret"]
    assert list(view["schema"]["properties"]) == list(schema["properties"])


def test_a_question_for_a_password_is_marked_and_one_without_a_form_is_not() -> None:
    schema = {"type": "object", "properties": {"pw": {"type": "string", "title": "Passphrase"}}}
    assert decision_view(Question("d", 1.0, None, "s", "m", schema, None, None, ()))["secret"]
    url = decision_view(Question("d", 1.0, None, "s", "password", None, "https://x.example", None, ()))
    assert not url["secret"] and url["url"] == "https://x.example"


def test_an_input_shows_its_words_and_never_a_secret_default() -> None:
    raw = {"id": "key", "type": "promptString", "password": True, "default": "hunter2", "description": "a\u202eb"}
    view = decision_view(MissingInput("d", 1.0, None, parse_input(raw), ("files",)))
    assert view["input"]["description"] == "a\\u202eb" and view["servers"] == ["files"]
    assert "hunter2" not in str(view)


def test_what_nobody_sees_in_a_label_is_shown_and_the_value_stays_as_it_is() -> None:
    raw = {"id": "key", "type": "pickString", "options": [{"label": "a\u202eb", "value": "c\u202ed"}]}
    shown = decision_view(MissingInput("d", 1.0, None, parse_input(raw), ("files",)))["input"]
    assert (shown["options"], shown["labels"]) == (["c\u202ed"], {"c\u202ed": "a\\u202eb"})


def test_a_flood_of_long_calls_makes_no_endless_message_and_a_long_name_is_cut_with_a_count() -> None:
    flood = [confirmation(**{f"a{number}": "x" * 300 for number in range(200)})] * 1000
    shown = decision_list(flood)
    assert all(each["cut"] for each in shown)
    assert sum(len("".join(row["text"])) for each in shown for row in each["rows"]) < 5_000_000
    assert not decision_list(flood[:1])[0]["cut"]
    named = decision_view(confirmation(**{"n" * 50_000: 1}))
    assert named["cut"] and named["rows"][0]["more"] == 49_000
    assert "".join(whole_call_view(confirmation(**{"n" * 50_000: 1}))["rows"][0]["name"]) == "n" * 50_000


def test_very_many_escapes_are_few_elements_of_the_page() -> None:
    rows = decision_view(confirmation(**{f"a{number}": "x\u200b" * 200 for number in range(200)}))["rows"]
    assert sum(len(row["text"]) for row in rows) < 5_000
    assert all("".join(row["text"]) == r"x\u200b" * 200 for row in rows)


def test_the_difference_of_a_very_long_description_says_how_much_is_left_out() -> None:
    before = ToolDefinition(description="a", digest="1" * 64)
    (short,) = difference_view(before, ToolDefinition(description="b " * 40_000, digest="2" * 64))
    assert short["cut"] == 0 and len(str(short["changes"])) > 80_000
    (long,) = difference_view(before, ToolDefinition(description="b" * 100_007, digest="2" * 64))
    assert long["cut"] == 7


def test_a_card_hides_secrets_until_they_are_wanted_and_stands_for_the_exact_call() -> None:
    one, other = confirmation(command="login --password hunter22"), confirmation(command="login --password hunter23")
    view = decision_view(one)
    assert view["hidden"] and "hunter" not in str(view["rows"])
    assert view["rows"] != decision_view(other)["rows"]
    assert view["digest"] != decision_view(other)["digest"], "what is decided is the exact call"
    assert "hunter" not in str(whole_call_view(one)["rows"])
    revealed = whole_call_view(one, secrets=True)
    assert not revealed["hidden"] and "hunter22" in str(revealed["rows"])
    assert not decision_view(confirmation(command="ls"))["hidden"]
