"""The MCP server of `fakes/http_server.py` behind a real issuer: without a token of that issuer it answers 401.

Usage: protected_mcp.py ISSUER. Prints its port, serves until its stdin closes.
"""

import json
import socket
import sys
from typing import Any

import httpx2
import jwt
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from tests.computer.fakes.http_server import app, serve

ISSUER = sys.argv[1]
_METADATA = "/.well-known/oauth-protected-resource"


class Protected:
    """Lets requests with a valid token through to `app`."""

    def __init__(self, app: Any, base: str) -> None:
        self.app = app
        self.base = base
        self.keys: dict[str, Any] = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = await self.refusal(Request(scope))
        await (self.app if answer is None else answer)(scope, receive, send)

    async def refusal(self, request: Request) -> Response | None:
        path = request.url.path
        if path.startswith(_METADATA):
            resource = self.base + path.removeprefix(_METADATA)
            return JSONResponse(
                {
                    "resource": resource,
                    "authorization_servers": [ISSUER],
                    "scopes_supported": ["read", "offline_access"],
                }
            )
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind == "Bearer" and await self.is_valid(token):
            return None
        of = "/mcp" if path == "/mcp" else "/sse"
        said = f'Bearer error="invalid_token", resource_metadata="{self.base}{_METADATA}{of}"'
        return Response(status_code=401, headers={"www-authenticate": said})

    async def is_valid(self, token: str) -> bool:
        try:
            kid = jwt.get_unverified_header(token)["kid"]
            if kid not in self.keys:
                async with httpx2.AsyncClient(timeout=30) as http:
                    found = (await http.get(f"{ISSUER}/jwks")).json()
                self.keys = {key["kid"]: jwt.PyJWK(key) for key in found["keys"]}
            audiences = [f"{self.base}/mcp", f"{self.base}/sse"]
            jwt.decode(token, self.keys[kid], algorithms=["RS256"], audience=audiences, issuer=ISSUER)
        except (jwt.PyJWTError, KeyError):
            return False
        return True


def main() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    serve(Protected(app(), f"http://127.0.0.1:{port}"), sock, json.dumps({"port": port}))


if __name__ == "__main__":
    main()
