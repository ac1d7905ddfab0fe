"""The options of `a2c chat`. The conversation itself is in `chat.py`, which is imported when the command runs."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from a2c_smcp.agent.cli import NameOption, OfficeOption
from a2c_smcp.terminal.options import OptionGroup, link_from_options
from a2c_smcp.terminal.traces import OtelOption, traced
from a2c_smcp.utils.logs import configure_logging

if TYPE_CHECKING:
    from a2c_smcp.link.interface import LinkOptions

__all__ = ["chat"]


def chat(
    *,
    office: OfficeOption,
    model: Annotated[str, typer.Option(envvar="A2C_CHAT_MODEL", help="The model, as its service calls it.")],
    endpoint: Annotated[
        str | None,
        typer.Option(
            envvar="A2C_CHAT_ENDPOINT",
            metavar="URL",
            help="The address of the service, such as http://127.0.0.1:11434/v1.",
            show_default="OpenAI's or Anthropic's, or OPENAI_BASE_URL, ANTHROPIC_BASE_URL",
        ),
    ] = None,
    service: Annotated[
        Literal["auto", "openai", "anthropic"],
        typer.Option(help="The API that the service speaks. auto: anthropic for models called claude…, else openai."),
    ] = "auto",
    timeout: Annotated[int, typer.Option(min=1, help="How many seconds a tool may take.")] = 300,
    approval_timeout: Annotated[
        int, typer.Option(min=1, help="How many seconds a person at a computer may take to agree to a call.")
    ] = 600,
    images: Annotated[bool, typer.Option(help="Whether the model takes images and PDFs; some take text only.")] = True,
    link: Annotated["LinkOptions", OptionGroup(link_from_options)],
    name: NameOption = "a2c-chat",
    otel: OtelOption = False,
) -> None:
    """Talk with a model that uses the computers of an office.

    It works with any service that speaks OpenAI's chat completions, and with Anthropic's. The key of the service is in
    OPENAI_API_KEY or ANTHROPIC_API_KEY. Over a pipe it answers once: echo "…" | a2c chat.

    Ctrl-C stops the model's turn and cancels the tools. /help shows what you can ask for without the model.
    """
    from a2c_smcp.agent import chat as program

    configure_logging("error")
    options = program.ChatOptions(link, office, name, model, service, endpoint, timeout, approval_timeout, images)
    with traced("a2c-chat", wanted=otel):
        raise typer.Exit(program.chat(options))
