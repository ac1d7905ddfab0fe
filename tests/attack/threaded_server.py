"""The threaded server as a process of its own, on a port the system picks.

`threaded_server.py [api-key]`, or `threaded_server.py --keys FILE`.

On SIGUSR1 it says how many threads it has.
"""

import logging
import signal
import sys
import threading
from pathlib import Path

import socketio
from werkzeug.serving import make_server

from a2c_smcp.server import (
    Limits,
    SyncAPIKeyAuthentication,
    SyncOpenAuthentication,
    SyncSMCPNamespace,
    load_keys,
    sync_server_options,
)
from a2c_smcp.server.auth import Key


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    keys: list[Key | str] = [*(load_keys(Path(sys.argv[-1])) if "--keys" in sys.argv else sys.argv[1:])]
    auth = SyncAPIKeyAuthentication(keys) if keys else SyncOpenAuthentication()
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
