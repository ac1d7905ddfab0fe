"""A web service on FastAPI: GET /computers, POST /computers/{computer}/tools/{tool}. One agent for all requests.

A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab uvicorn --app-dir examples web_fastapi:app
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request

from a2c_smcp import SMCPError
from a2c_smcp.agent import AsyncSMCPAgentClient, LinkOptions, text_of


def create_app(url: str | LinkOptions, office: str) -> FastAPI:
    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        agent = AsyncSMCPAgentClient(url, name="web", api_key=os.environ.get("A2C_API_KEY"))
        agent.attend(office)  # it keeps trying: the server may start later
        app.state.agent = agent
        yield
        await agent.close()

    app = FastAPI(lifespan=lifespan)

    @app.get("/computers")
    async def computers(request: Request) -> dict[str, list[str]]:
        view = request.app.state.agent.computers
        return {name: [tool["name"] for tool in each.tools or ()] for name, each in view.items()}

    @app.post("/computers/{computer}/tools/{tool}")
    async def call(request: Request, computer: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            result = await request.app.state.agent.call_tool(computer, tool, arguments, timeout=30)
        except SMCPError as error:
            raise HTTPException(404 if error.code == 404 else 502, str(error)) from None
        return {"ok": not result.is_error, "text": text_of(result, budget=10_000), "meta": result.meta}

    return app


if "A2C_URL" in os.environ:
    app = create_app(os.environ["A2C_URL"], os.environ["A2C_OFFICE"])
