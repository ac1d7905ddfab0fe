"""The Server: offices, routing, refusals that answer. Names are imported when they are used: every `a2c` command passes
here, and most of them need no server.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from a2c_smcp.server.auth import (
        APIKeyAuthentication,
        AuthenticationProvider,
        Credentials,
        OpenAuthentication,
        SyncAPIKeyAuthentication,
        SyncAuthenticationProvider,
        SyncOpenAuthentication,
        load_keys,
    )
    from a2c_smcp.server.cluster.options import ClusterOptions
    from a2c_smcp.server.limits import Limits
    from a2c_smcp.server.namespace import SMCPNamespace
    from a2c_smcp.server.offices import Grant
    from a2c_smcp.server.socketio_setup import server_options, sync_server_options
    from a2c_smcp.server.sync_namespace import SyncSMCPNamespace

__all__ = [
    "APIKeyAuthentication",
    "AuthenticationProvider",
    "ClusterOptions",
    "Credentials",
    "Grant",
    "Limits",
    "OpenAuthentication",
    "SMCPNamespace",
    "SyncAPIKeyAuthentication",
    "SyncAuthenticationProvider",
    "SyncOpenAuthentication",
    "SyncSMCPNamespace",
    "load_keys",
    "server_options",
    "sync_server_options",
]

_ROOMS = {
    "APIKeyAuthentication": "a2c_smcp.server.auth",
    "AuthenticationProvider": "a2c_smcp.server.auth",
    "ClusterOptions": "a2c_smcp.server.cluster.options",
    "Credentials": "a2c_smcp.server.auth",
    "Grant": "a2c_smcp.server.offices",
    "Limits": "a2c_smcp.server.limits",
    "OpenAuthentication": "a2c_smcp.server.auth",
    "SMCPNamespace": "a2c_smcp.server.namespace",
    "SyncAPIKeyAuthentication": "a2c_smcp.server.auth",
    "SyncAuthenticationProvider": "a2c_smcp.server.auth",
    "SyncOpenAuthentication": "a2c_smcp.server.auth",
    "SyncSMCPNamespace": "a2c_smcp.server.sync_namespace",
    "load_keys": "a2c_smcp.server.auth",
    "server_options": "a2c_smcp.server.socketio_setup",
    "sync_server_options": "a2c_smcp.server.socketio_setup",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)
