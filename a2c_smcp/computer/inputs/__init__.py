"""Inputs: values that a config leaves open. Each is asked for once, when it is needed."""

from a2c_smcp.computer.inputs.base import BaseInputResolver, InputFailedError
from a2c_smcp.computer.inputs.command import CommandInputResolver
from a2c_smcp.computer.inputs.env import EnvInputResolver
from a2c_smcp.computer.inputs.render import ConfigRender, servers_referencing
from a2c_smcp.computer.inputs.resolver import CacheInputResolver, CompositeResolver, InputResolver
from a2c_smcp.computer.inputs.store import InputStore

__all__ = [
    "BaseInputResolver",
    "CacheInputResolver",
    "CommandInputResolver",
    "CompositeResolver",
    "ConfigRender",
    "EnvInputResolver",
    "InputFailedError",
    "InputResolver",
    "InputStore",
    "servers_referencing",
]
