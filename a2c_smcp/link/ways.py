"""The ways to a server: which transports are tried in which order, and what the failure of one means.

Knows aiohttp's exceptions. Opens nothing.
"""

import ssl
from dataclasses import dataclass
from typing import Final

import aiohttp
import socketio

from a2c_smcp.errors import ConnectionLostError, NoTlsError, ProxyError, UntrustedCertificateError
from a2c_smcp.link.proxies import Proxy
from a2c_smcp.link.server_urls import speaks_no_tls
from a2c_smcp.link.transports import Transport
from a2c_smcp.utils.engineio_internals import NO_GREETING
from a2c_smcp.utils.lazy_names import moved_names
from a2c_smcp.utils.text import on_one_line

__all__ = ["ElsewhereError", "Failure", "attempts", "explain", "unreachable"]

# `Way` was here.
__getattr__ = moved_names(__name__, "link.transports")

_ATTEMPTS: Final[dict[Transport, tuple[tuple[str, ...], ...]]] = {
    # With both names Engine.IO polls first, and moves to a websocket if it can.
    "auto": (("websocket",), ("polling", "websocket")),
    "websocket": (("websocket",),),
    "polling": (("polling",),),
}
_PROXY_ADVICE: Final = "correct --proxy or the variable HTTPS_PROXY, HTTP_PROXY or ALL_PROXY"
#: The HTTP status of a server, or of a proxy before it, that takes no clients now.
_LATER: Final = 503
#: How the answer of a server of ours begins that takes no clients now. What others say is not shown.
_NOT_READY: Final = "not ready: "
_NOT_GREETED: Final = "it opens, but no Socket.IO server answers"


class ElsewhereError(aiohttp.ClientError):
    """The server sends its client to another address, which must not get what is for this one."""

    def __init__(self, place: str) -> None:
        super().__init__(f"it sends us to another address, {place}, which gets no key: connect to that if you trust it")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an attempt did not connect."""

    why: str
    transport_only: bool = True
    """Whether another transport may get through."""
    error: ConnectionLostError | None = None
    """An error that says what to do, if something can be done."""
    passes: bool = False
    """Whether the server says that it takes clients later."""


def attempts(transport: Transport, *, websockets_are_cut: bool = False) -> tuple[tuple[str, ...], ...]:
    """The transports to try, one list after the other. If websockets are cut soon after they connect, polling is
    first.
    """
    if transport == "auto" and websockets_are_cut:
        return (("polling",), ("websocket",))
    return _ATTEMPTS[transport]


def unreachable(url: str, failures: list[Failure]) -> ConnectionLostError:
    """The error after all attempts have failed."""
    if (error := failures[-1].error) is not None:
        return error
    why = "; ".join(dict.fromkeys(failure.why for failure in failures))
    details = {"why": why, "passes": True} if failures[-1].passes else {"why": why}
    return ConnectionLostError(f"cannot connect to {url}: {why}", details)


def explain(error: Exception, url: str, proxy: Proxy | None) -> Failure:
    """What an error of a library means, in words that have neither a password nor a query in them."""
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return _certificate(error, url)
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError() if not proxy and speaks_no_tls(error):
            return _no_tls(url)
        case aiohttp.ClientConnectorSSLError() | ssl.SSLError():
            return Failure("what answers there does not speak TLS as this client does", transport_only=False)
        case aiohttp.ClientProxyConnectionError():
            return _proxy(f"the proxy {proxy} does not answer", _PROXY_ADVICE, url)
        case aiohttp.ClientConnectorDNSError() if proxy:  # the proxy itself looks up the name of the server
            return _proxy(f"the proxy {proxy} is not found: no such name", _PROXY_ADVICE, url)
        case aiohttp.ClientResponseError() if proxy and error.status == 407:
            said = "refuses the name and the password" if proxy.user else "wants a name and a password"
            return _proxy(f"the proxy {proxy} {said}", "give them in its URL: http://NAME:PASSWORD@HOST:PORT", url)
        case aiohttp.ClientHttpProxyError():
            return _proxy(
                f"the proxy {proxy} refuses to connect: HTTP status {error.status}",
                "ask its administrator to allow that address",
                url,
            )
        case aiohttp.WSServerHandshakeError():
            text = f"the websocket is refused with HTTP status {error.status}"
            return Failure(text, passes=error.status == _LATER)
        case aiohttp.ClientResponseError() if error.status == _LATER and error.message.startswith(_NOT_READY):
            return Failure(f"it is {on_one_line(error.message.strip())}", passes=True)
        case aiohttp.ClientResponseError():
            return Failure(f"it answers with HTTP status {error.status}", passes=error.status == _LATER)
        case aiohttp.ClientConnectorError():
            return Failure(str(error.os_error), transport_only=False)
        case ElsewhereError():
            return Failure(on_one_line(error), transport_only=False)
        case TimeoutError():
            return Failure("no answer in time")
        case aiohttp.ClientConnectionError() | OSError():
            return Failure("the connection was cut")
        case _ if "://" in str(error):
            # aiohttp's text is the whole URL, with its secrets.
            return Failure("the URL is not valid", transport_only=False)
        case socketio.exceptions.ConnectionError() | ValueError():
            return Failure(_NOT_GREETED if NO_GREETING in str(error) else str(error))
        case _:
            return Failure(f"what answers there is not a Socket.IO server ({type(error).__name__})")


def _certificate(error: aiohttp.ClientConnectorCertificateError, url: str) -> Failure:
    cause = error.certificate_error
    said = getattr(cause, "verify_message", "") or type(cause).__name__
    code = getattr(cause, "verify_code", None)
    if code in (9, 10):  # of OpenSSL: not yet valid, expired
        problem, advice = "is not valid at this time", "check this machine's clock, and ask the server's administrator"
    elif code in (62, 64):  # of OpenSSL: another host name, another address
        problem, advice = "was made for another name", "use the name that it was made for"
    else:
        problem = "is not trusted"
        advice = (
            "if it is the right one, name a file with the certificate of its issuer: --ca FILE, LinkOptions(ca=…) in "
            "a program, or the variable SSL_CERT_FILE"
        )
    found = UntrustedCertificateError(
        f"cannot connect to {url}: the certificate of {error.host} {problem} ({said})", advice
    )
    return Failure(said, transport_only=False, error=found)


def _no_tls(url: str) -> Failure:
    problem = "what answers there does not speak TLS"
    advice = f"if the server has no certificate, its URL begins with http://: {url.replace('https://', 'http://', 1)}"
    return Failure(problem, transport_only=False, error=NoTlsError(f"cannot connect to {url}: {problem}", advice))


def _proxy(problem: str, advice: str, url: str) -> Failure:
    found = ProxyError(f"cannot connect to {url}: {problem}", advice)
    return Failure(problem, transport_only=False, error=found)
