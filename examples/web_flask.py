"""A web service on Flask, with the blocking agent: any number of threads may use one.

A2C_URL=http://127.0.0.1:7000 A2C_OFFICE=lab flask --app examples/web_flask run
"""

import os
from typing import Any

from flask import Flask, request

from a2c_smcp import SMCPError
from a2c_smcp.agent import SMCPAgentClient, text_of


def create_app(agent: SMCPAgentClient | None = None) -> Flask:
    app = Flask(__name__)
    if agent is None:
        agent = SMCPAgentClient(os.environ["A2C_URL"], name="web", api_key=os.environ.get("A2C_API_KEY"))
        agent.attend(os.environ["A2C_OFFICE"])  # it keeps trying: the server may start later
    office = agent

    @app.get("/computers")
    def computers() -> dict[str, list[str]]:
        return {name: [tool["name"] for tool in view.tools or ()] for name, view in office.computers.items()}

    @app.post("/computers/<computer>/tools/<tool>")
    def call(computer: str, tool: str) -> tuple[dict[str, Any], int]:
        try:
            result = office.call_tool(computer, tool, request.get_json(), timeout=30)
        except SMCPError as error:
            return {"error": str(error)}, 404 if error.code == 404 else 502
        return {"ok": not result.is_error, "text": text_of(result, budget=10_000), "meta": result.meta}, 200

    return app
