"""What a person decides on, as JSON for the page: the exact call, or a server's question. Pure.

Passwords and keys of a call are hidden until the person wants to see them; nothing else is.
A text of somebody else is a list of parts; every second part is an escape. See `shown_text.words`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from a2c_smcp.computer.calls.log import WatchedCall
from a2c_smcp.computer.console.rule_views import difference_view, proposal_view
from a2c_smcp.computer.decisions.book import (
    Confirmation,
    Decision,
    MissingInput,
    MissingSignIn,
    Question,
    ToolDefinition,
)
from a2c_smcp.computer.decisions.shown_text import (
    ArgumentRow,
    argument_rows,
    card_text,
    has_mixed_scripts,
    visible,
    words,
)
from a2c_smcp.utils.secret_shapes import asks_for_secret

__all__ = ["decision_list", "decision_view", "whole_call_view"]


@dataclass(frozen=True, slots=True)
class _CardBounds:
    """How much of a decision a page is sent, in characters."""

    of_a_card: int = 100_000  # of all arguments together; the page asks for the rest by the decision's id
    of_all_cards: int = 3_000_000  # a flood of decisions must not stop the computer
    of_a_row_at_least: int = 20  # every argument is seen, however long the others are
    escapes: int = 300  # of a card, marked one by one
    escapes_at_least: int = 5  # of each argument
    of_a_name: int = 1_000  # of an argument
    of_a_description: int = 4_000  # of what a server says about its tool


_MOST: Final = _CardBounds()


def decision_list(decisions: Sequence[Decision]) -> list[dict[str, Any]]:
    """Pending decisions for one message. Of many decisions, less is sent of each."""
    most = min(_MOST.of_a_card, _MOST.of_all_cards // max(1, len(decisions)))
    return [decision_view(decision, most) for decision in decisions]


def decision_view(decision: Decision, most: int = _MOST.of_a_card) -> dict[str, Any]:
    """A pending decision, with at most `most` characters of its arguments. What is cut is counted, and
    `whole_call_view` has all. The value of an input is never in it.
    """
    common = {
        "id": decision.id,
        "kind": decision.kind,
        "digest": decision.digest,
        "asked_at": decision.asked_at,
        "deadline": decision.deadline,
    }
    match decision:
        case Confirmation(call=call, definition=definition, allowed_before=before):
            return {
                **common,
                "call": _call_view(call),
                **_cut_rows(call, most),
                "tool": _definition_view(definition),
                "before": None if before is None else _definition_view(before),
                "difference": [] if before is None or not before.digest else difference_view(before, definition),
                "proposal": proposal_view(decision),
                "reads": decision.reads is not None,
            }
        case Question():
            return {**common, **_question_view(decision)}
        case MissingInput(servers=servers):
            shown = {key: visible(value) if isinstance(value, str) else value for key, value in decision.view.items()}
            # These are sent back or looked up, so they stay as they are.
            kept = {key: value for key, value in decision.view.items() if key in ("id", "default", "options")}
            if labels := decision.view.get("labels"):
                kept["labels"] = {value: visible(label) for value, label in labels.items()}
            return {**common, "input": {**shown, **kept}, "servers": list(servers)}
        case MissingSignIn(server=server, url=url, scopes=scopes, is_step_up=is_step_up):
            return {
                **common,
                "server": _name_view(server),
                "url": url,  # the page opens it as it is
                "url_words": words(url),
                "scopes": [words(scope) for scope in scopes],
                "step_up": is_step_up,
            }


def whole_call_view(decision: Confirmation, *, secrets: bool = False) -> dict[str, Any]:
    """All arguments of a call, uncut, and with its secrets if the person wants to see them."""
    rows = argument_rows(decision.call.arguments)
    return _with_hidden({"rows": _row_views(rows, secrets=secrets), "cut": False})


def _with_hidden(view: dict[str, Any]) -> dict[str, Any]:
    """The rows, and whether a secret is hidden in one of them."""
    return {**view, "hidden": any(row.pop("hidden") for row in view["rows"])}


def _call_view(call: WatchedCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "key": [call.server, call.tool],
        "agent": None if call.agent is None else _name_view(call.agent),
        "claimed": call.agent is not None and call.claimed,
        "agent_key": None if call.key is None else _name_view(call.key),
        "office": None if call.office is None else _name_view(call.office),
        "server": _name_view(call.server or ""),
        "tool": _name_view(call.tool or call.name),
        "shown_as": _name_view(call.name) if call.name != call.tool else None,
    }


def _name_view(name: str) -> dict[str, Any]:
    """A name that somebody chose, and whether it mixes letters of several scripts."""
    return {"words": words(name), "text": visible(name), "mixed": has_mixed_scripts(name)}


def _definition_view(definition: ToolDefinition) -> dict[str, Any]:
    hints = {key: value for key, value in definition.annotations.items() if isinstance(value, bool)}
    said = definition.description
    return {
        "title": None if definition.title is None else words(definition.title),
        "description": words(said[: _MOST.of_a_description]),
        "description_cut": max(0, len(said) - _MOST.of_a_description),
        "hints": hints,
        "dangerous": definition.is_dangerous,
    }


def _cut_rows(call: WatchedCall, most_of_all: int) -> dict[str, Any]:
    rows = argument_rows(call.arguments)
    most = max(_MOST.of_a_row_at_least, most_of_all // max(1, len(rows)))
    cut = any(len(row.text) > most or len(row.name) > _MOST.of_a_name for row in rows)
    return _with_hidden({"rows": _row_views(rows, most, _MOST.of_a_name), "cut": cut})


def _row_views(
    rows: Sequence[ArgumentRow], most: int | None = None, most_of_name: int | None = None, *, secrets: bool = False
) -> list[dict[str, Any]]:
    escapes = max(_MOST.escapes_at_least, _MOST.escapes // max(1, len(rows)))
    return [_row_view(row, most, most_of_name, escapes, secrets) for row in rows]


def _row_view(
    row: ArgumentRow, most: int | None, most_of_name: int | None, escapes: int, secrets: bool
) -> dict[str, Any]:
    said, name = row.text[:most], row.name[:most_of_name]
    rest = row.text[len(said) :]
    shown = said if secrets else card_text(row, said)
    return {
        "name": words(name, escapes),
        "text": words(shown, escapes),
        "is_text": row.is_text,
        "hidden": shown != said,
        "more_lines": rest.count("\n") + bool(rest),
        "more": len(rest) + len(row.name) - len(name),
    }


def _question_view(question: Question) -> dict[str, Any]:
    return {
        "server": _name_view(question.server),
        "message": words(question.message),
        "schema": None if question.schema is None else _shown_schema(question.schema),
        "secret": _asks_for_secret(question),
        "url": question.url,
        "url_words": None if question.url is None else words(question.url),
        "call": None if question.call is None else _call_view(question.call),
        "calls": [_call_view(call) for call in question.calls],
    }


def _shown_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The form with no hidden characters in its words. Names and values are sent back, so they stay as they are."""
    fields = schema.get("properties")
    if not isinstance(fields, Mapping):
        return dict(schema)
    return {**schema, "properties": {name: _shown_field(name, part) for name, part in fields.items()}}


def _shown_field(name: str, part: Any) -> Any:
    if not isinstance(part, Mapping):
        return part
    shown = {**_said(part), "title": visible(str(part.get("title") or name))}
    for key in ("oneOf", "anyOf"):
        if isinstance(part.get(key), list):
            shown[key] = [_said(option) if isinstance(option, Mapping) else option for option in part[key]]
    if isinstance(part.get("enum"), list):
        titles = part.get("enumNames")
        shown["enumNames"] = [
            visible(str(titles[at] if isinstance(titles, list) and at < len(titles) else value))
            for at, value in enumerate(part["enum"])
        ]
    if isinstance(part.get("items"), Mapping):
        shown["items"] = {**_shown_field("", part["items"])}
    return shown


def _said(part: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: visible(value) if key in ("title", "description") and isinstance(value, str) else value
        for key, value in part.items()
    }


def _asks_for_secret(question: Question) -> bool:
    fields = (question.schema or {}).get("properties")
    if not isinstance(fields, Mapping) or not fields:
        return False
    texts = [question.message]
    for name, part in fields.items():
        texts.append(name)
        if isinstance(part, Mapping):
            texts += [str(part.get(key, "")) for key in ("title", "description", "format")]
    return asks_for_secret(*texts)
