"""A light MCP stdio server on the standard library with windows and documents, each read taking as long as asked.

context_mcp.py --windows 5 --documents 0 --delay 0.05 --host bench.one
"""

import argparse
import json
import sys
import threading
import time

parser = argparse.ArgumentParser()
parser.add_argument("--host", default="bench")
parser.add_argument("--windows", type=int, default=0)
parser.add_argument("--documents", type=int, default=0)
parser.add_argument("--delay", type=float, default=0.0, help="seconds that a read takes; reads run side by side")
parser.add_argument("--start-delay", type=float, default=0.0, help="seconds before the first answer")
parser.add_argument("--body", type=int, default=100, help="characters of a window")
options = parser.parse_args()
_lock = threading.Lock()

WINDOWS = [f"window://{options.host}/{n}" for n in range(options.windows)]
DOCUMENTS = {f"dpe://{options.host}/doc-{n}": n for n in range(options.documents)}
TOOL = {"name": f"touch_{options.host.replace('.', '_')}", "inputSchema": {"type": "object"}}


def send(message):
    text = json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    with _lock:
        sys.stdout.write(text)
        sys.stdout.flush()


def summary(uri, n):
    return {
        "doc_ref": f"doc-{n}",
        "uri": uri,
        "file_uri": f"file:///doc-{n}.md",
        "file_type": "md" if n % 2 else "xlsx",
        "title": f"Report {n}",
        "page_count": 3,
        "keywords": ["bench", f"topic-{n % 100}"],
        "summary": f"What happened in week {n}.",
        "last_modified": f"2026-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z",
    }


def read(request_id, uri):
    if options.delay:
        time.sleep(options.delay)
    base, _, query = uri.partition("?")
    if base in DOCUMENTS:
        text = json.dumps(summary(base, DOCUMENTS[base]))
    elif base.rstrip("/") == f"dpe://{options.host}":
        params = dict(pair.split("=") for pair in query.split("&") if pair)
        first, most = int(params.get("offset", 0)), int(params.get("limit", 20))
        page = list(DOCUMENTS.items())[first : first + most]
        text = json.dumps({"documents": [summary(*item) for item in page], "total_count": len(DOCUMENTS)})
    elif uri in WINDOWS:
        text = "x" * options.body
    else:
        send({"id": request_id, "error": {"code": -32002, "message": "Resource not found"}})
        return
    send({"id": request_id, "result": {"contents": [{"uri": uri, "mimeType": "text/plain", "text": text}]}})


def answer(request_id, method, params):
    if method == "initialize":
        return {
            "protocolVersion": params.get("protocolVersion", "2025-06-18"),
            "capabilities": {"tools": {}, "resources": {"subscribe": True, "listChanged": True}},
            "serverInfo": {"name": options.host, "version": "1"},
        }
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        uri = (params.get("arguments") or {}).get("uri")
        if uri:
            send({"method": "notifications/resources/updated", "params": {"uri": uri}})
        return {"content": []}
    if method == "resources/list":
        return {"resources": [{"uri": uri, "name": uri} for uri in (*WINDOWS, *DOCUMENTS)]}
    if method in ("ping", "resources/subscribe", "resources/unsubscribe"):
        return {}
    return None


def main():
    time.sleep(options.start_delay)
    for line in sys.stdin:
        message = json.loads(line)
        request_id, method = message.get("id"), message.get("method")
        params = message.get("params") or {}
        if request_id is None:
            continue
        if method == "resources/read":
            if options.delay:
                threading.Thread(target=read, args=(request_id, params["uri"]), daemon=True).start()
            else:
                read(request_id, params["uri"])
            continue
        result = answer(request_id, method, params)
        if result is None:
            send({"id": request_id, "error": {"code": -32601, "message": f"unknown method {method}"}})
        else:
            send({"id": request_id, "result": result})


if __name__ == "__main__":
    main()
