"""The server: offices and routing. Its names are imported when they are used: every `a2c` command imports this package,
and most commands need no server.
"""

from typing import TYPE_CHECKING

from a2c_smcp.utils.lazy_names import lazy_names

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
    from a2c_smcp.server.token_auth import OidcAuthentication, SyncOidcAuthentication

__all__ = [
    "APIKeyAuthentication",
    "AuthenticationProvider",
    "ClusterOptions",
    "Credentials",
    "Grant",
    "Limits",
    "OidcAuthentication",
    "OpenAuthentication",
    "SMCPNamespace",
    "SyncAPIKeyAuthentication",
    "SyncAuthenticationProvider",
    "SyncOidcAuthentication",
    "SyncOpenAuthentication",
    "SyncSMCPNamespace",
    "load_keys",
    "server_options",
    "sync_server_options",
]

_ROOMS = {
    "auth": (
        "APIKeyAuthentication",
        "AuthenticationProvider",
        "Credentials",
        "OpenAuthentication",
        "SyncAPIKeyAuthentication",
        "SyncAuthenticationProvider",
        "SyncOpenAuthentication",
        "load_keys",
    ),
    "cluster.options": ("ClusterOptions",),
    "limits": ("Limits",),
    "namespace": ("SMCPNamespace",),
    "offices": ("Grant",),
    "socketio_setup": ("server_options", "sync_server_options"),
    "sync_namespace": ("SyncSMCPNamespace",),
    "token_auth": ("OidcAuthentication", "SyncOidcAuthentication"),
}
__getattr__ = lazy_names(__name__, {name: f"server.{room}" for room, names in _ROOMS.items() for name in names})
