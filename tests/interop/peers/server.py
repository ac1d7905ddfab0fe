"""Runs in .venv-interop: the existing server, asyncio or threaded, on a port the system picks; stops when stdin
closes.
"""

import sys
import threading

import socketio
from a2c_smcp.server import AuthenticationProvider, SMCPNamespace, SyncAuthenticationProvider, SyncSMCPNamespace


class Open(AuthenticationProvider):
    """Its default key check refuses every key over real HTTP."""

    async def authenticate(self, sio, environ, auth, headers):
        return True


class SyncOpen(SyncAuthenticationProvider):
    def authenticate(self, sio, environ, auth, headers):
        return True


def serve_async():
    import socket

    import uvicorn

    sio = socketio.AsyncServer(async_mode="asgi")
    sio.register_namespace(SMCPNamespace(Open()))
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(socketio.ASGIApp(sio), log_config=None, lifespan="off"))
    threading.Thread(target=lambda: (sys.stdin.read(), setattr(server, "should_exit", True)), daemon=True).start()
    print(f"READY http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    server.run([listener])


def serve_sync():
    from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
    from socketserver import ThreadingMixIn

    class Server(ThreadingMixIn, WSGIServer):
        daemon_threads = True

    class Quiet(WSGIRequestHandler):
        def log_message(self, *args):
            pass

    sio = socketio.Server(async_mode="threading")
    sio.register_namespace(SyncSMCPNamespace(SyncOpen()))
    web = make_server("127.0.0.1", 0, socketio.WSGIApp(sio), server_class=Server, handler_class=Quiet)
    threading.Thread(target=lambda: (sys.stdin.read(), web.shutdown()), daemon=True).start()
    print(f"READY http://127.0.0.1:{web.server_port}", flush=True)
    web.serve_forever()


serve_async() if sys.argv[1] == "async" else serve_sync()
