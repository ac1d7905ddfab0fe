"""Checks that a VRL program compiles, when a config is loaded. Runs no program; needs no MCP and no event loop."""

from a2c_smcp.computer.mcp_clients.model import BaseServerConfig
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.errors import InvalidConfigError, Problem, VRLSyntaxError
from a2c_smcp.utils.distribution import install_command

__all__ = ["check_vrl", "check_written_vrl"]


def check_vrl(program: str, subject: str = "") -> None:
    """Raise `VRLSyntaxError` with the compiler's message if a program does not compile.

    Raises `InvalidConfigError` if the extra `vrl` is not installed. `subject` names the config in these errors.
    """
    try:
        from vrl_python import VRLRuntime
    except ImportError:
        missing = f"vrl needs an extra that is not installed: {install_command('vrl')}"
        raise InvalidConfigError([Problem(missing, "vrl", subject)]) from None
    diagnostic = VRLRuntime.check_syntax(program)
    if diagnostic is not None:
        raise VRLSyntaxError(diagnostic.formatted_message.strip(), subject)


def check_written_vrl(config: BaseServerConfig) -> None:
    """Raise `InvalidConfigError` if the program of a config does not compile, even if the server is disabled.

    A program with placeholders is checked when they are rendered.
    """
    if config.vrl is not None and not holds_placeholder(config.vrl):
        check_vrl(config.vrl, f"server {config.name!r}")
