"""The Server: offices, routing, refusals that answer."""

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
