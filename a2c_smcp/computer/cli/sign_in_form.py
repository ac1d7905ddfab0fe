"""Puts a sign-in to the person at the terminal: the address to open, and a place for the one that they ended up at."""

from urllib.parse import parse_qs, urlsplit

from a2c_smcp.computer.cli.output import Output, printable
from a2c_smcp.computer.cli.terminal import Terminal
from a2c_smcp.computer.decisions.book import Accepted, DecisionAnswer, Dismissed, MissingSignIn
from a2c_smcp.oidc.redirects import RedirectError, came_back
from a2c_smcp.terminal.form_dialogue import url_lines

__all__ = ["PASTE", "ask_to_sign_in", "check_pasted", "sign_in_lines"]

#: What a person does whose browser runs on another machine.
PASTE = "If the browser cannot come back to this computer, paste the address that it ended up at: "


async def ask_to_sign_in(terminal: Terminal, output: Output, decision: MissingSignIn) -> DecisionAnswer:
    """The address that the person pastes, asked in the caller's `turn`. Ctrl-C and Ctrl-D put the sign-in off.

    When the browser comes back to this computer by itself, this is cancelled.
    """
    output.event(
        "sign_in_request",
        "\n".join(sign_in_lines(decision)),
        decision=decision.id,
        server=decision.server,
        url=decision.url,
        scopes=list(decision.scopes),
        step_up=decision.is_step_up,
    )
    try:
        while True:
            typed = await terminal.text(PASTE)
            if not typed.strip():
                continue
            if (problem := check_pasted(decision, typed)) is None:
                return Accepted(typed)
            output.text(f"! {problem}")
    except (KeyboardInterrupt, EOFError):
        return Dismissed()


def sign_in_lines(decision: MissingSignIn) -> list[str]:
    """What the person reads: who wants it, where it leads, and which rights it gives."""
    why = "needs more rights for a call" if decision.is_step_up else "wants you to sign in"
    lines = [f"{printable(decision.server)} {why}. Open this address in a browser:", *url_lines(decision.url)]
    if decision.scopes:
        lines.append(f"  It asks for: {printable(', '.join(decision.scopes))}")
    return lines


def check_pasted(decision: MissingSignIn, typed: str) -> str | None:
    """Why this is not the address that the sign-in ended at; `None` if it is."""
    state = parse_qs(urlsplit(decision.url).query).get("state", [""])[0]
    try:
        came_back(typed, state)
    except RedirectError as error:
        return str(error)
    return None
