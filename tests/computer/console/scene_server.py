"""An MCP server for pictures of the console: mail, a calendar, a chart."""

import asyncio
import base64
import io
import sys
from typing import Literal

from mcp_types import CallToolResult, ImageContent, TextContent
from PIL import Image, ImageDraw
from pydantic import BaseModel, Field

from a2c_smcp.mcp_server import ContextServer, ToolCall, Window

server = ContextServer("mail", host="mail.example")

server.windows["inbox"] = Window(
    "Inbox (3 unread)\n\n"
    "● Grace Hopper      Compiler notes for Thursday          09:41\n"
    "● Alan Turing       Re: halting, again                   09:12\n"
    "● Katherine Johnson Trajectories, checked by hand        08:55\n"
    "  Ada Lovelace      Sketch of the engine                 yesterday",
    priority=80,
)
server.windows["calendar"] = Window(
    "Thursday, 14 May\n\n  10:00  Stand-up\n  11:30  Flight to Bergen, gate B12\n  15:00  Review with Grace",
    priority=40,
)


class Person(BaseModel):
    name: str
    address: str = Field(description="where the mail goes")


class Attachment(BaseModel):
    file: str
    pages: int = Field(default=1, ge=1)


@server.tool
async def send_mail(
    to: list[Person],
    subject: str,
    body: str,
    priority: Literal["normal", "high"] = "normal",
    attachment: Attachment | None = None,
) -> str:
    """Sends a mail in your name."""
    return f"sent “{subject}” to {', '.join(person.name for person in to)}"


@server.tool
async def search_mail(words: str, limit: int = 20) -> str:
    """Finds mails that hold all of the words."""
    return f"3 mails with {words!r}"


@server.tool
async def chart(title: str) -> CallToolResult:
    """Draws how many mails came on each day."""
    picture = Image.new("RGB", (520, 220), "#ffffff")
    draw = ImageDraw.Draw(picture)
    for place, height in enumerate((60, 95, 40, 130, 160, 30, 20)):
        left = 24 + place * 70
        draw.rounded_rectangle((left, 190 - height, left + 44, 190), 8, fill="#4250d6" if place != 4 else "#15b8a6")
    draw.line((16, 192, 504, 192), fill="#c9d0dc", width=2)
    file = io.BytesIO()
    picture.save(file, "PNG")
    image = ImageContent(data=base64.b64encode(file.getvalue()).decode(), mime_type="image/png")
    return CallToolResult(content=[TextContent(text=title), image])


@server.tool
async def archive(call: ToolCall, folder: str) -> str:
    """Moves old mails to the archive."""
    await call.progress(340, 1200, "340 of 1,200 mails")
    await asyncio.sleep(600)
    return "done"


if __name__ == "__main__":
    print("imap: connected to mail.example\nimap: 4 folders, 1,212 mails\nsmtp: ready", file=sys.stderr, flush=True)
    server.run()
