"""Runs in .venv-interop04: the existing server of release 0.4.2, on a port the system picks or the given one. It stops
when stdin closes. The second argument is the version of the protocol that it claims to have.
"""

import socket
import sys
import threading

import socketio
import uvicorn
from a2c_smcp.server import A2CProtocolVersionASGIMiddleware, AuthenticationProvider, SMCPNamespace


class Open(AuthenticationProvider):
    async def authenticate(self, *args, **kwargs):
        return True


sio = socketio.AsyncServer(async_mode="asgi")
sio.register_namespace(SMCPNamespace(Open()))
version = sys.argv[2] if len(sys.argv) > 2 else "0.4.0"
app = A2CProtocolVersionASGIMiddleware(socketio.ASGIApp(sio), server_version=version)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0))
server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
print(f"READY http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
server.run([listener])
