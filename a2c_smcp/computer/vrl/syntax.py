"""Whether a VRL program compiles, said when a config is loaded. Runs none, and needs neither MCP nor an event loop."""

from a2c_smcp.computer.mcp_clients.model import BaseServerConfig
from a2c_smcp.computer.utils.placeholder import holds_placeholder
from a2c_smcp.errors import InvalidConfigError, Problem, VRLSyntaxError
from a2c_smcp.utils.distribution import install_command

__all__ = ["check_vrl", "check_written_vrl"]


def check_vrl(program: str, subject: str = "") -> None:
    """Refuse a program that does not compile: `VRLSyntaxError` with the compiler's own message.

    `InvalidConfigError`, naming the extra, where it is not installed. `subject` is the entry that the program is in, if
    the caller does not know it.
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
    """Refuse a config whose program does not compile, be the server disabled or not: `InvalidConfigError`.

    A program with placeholders is another one when they are rendered, and is checked then.
    """
    if config.vrl is not None and not holds_placeholder(config.vrl):
        check_vrl(config.vrl, f"server {config.name!r}")
