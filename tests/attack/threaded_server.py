"""The threaded server as a process of its own, on a port the system picks: `threaded_server.py [api-key]`.

On SIGUSR1 it says how many threads it has.
"""

import logging
import signal
import sys
import threading

import socketio
from werkzeug.serving import make_server

from a2c_smcp.server import (
    Limits,
    SyncAPIKeyAuthentication,
    SyncOpenAuthentication,
    SyncSMCPNamespace,
    sync_server_options,
)


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    auth = SyncAPIKeyAuthentication(sys.argv[1:]) if sys.argv[1:] else SyncOpenAuthentication()
    sio = socketio.Server(async_mode="threading", **sync_server_options(Limits().max_message))
    sio.register_namespace(SyncSMCPNamespace(auth))
    web = make_server("127.0.0.1", 0, socketio.WSGIApp(sio), threaded=True)
    signal.signal(signal.SIGUSR1, lambda *_: print(f"HOLDS {threading.active_count()}", flush=True))
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=web.shutdown).start())
    print(f"ready on http://127.0.0.1:{web.server_port}", flush=True)
    web.serve_forever()
    web.server_close()
    sio.shutdown()


if __name__ == "__main__":
    main()
