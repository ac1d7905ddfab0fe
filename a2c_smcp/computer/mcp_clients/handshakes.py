"""Which handshake of MCP a server is started with. Pure.

MCP has two eras: since 2026-07-28 a client probes a server (`auto`), before that it sends `initialize` (`legacy`).
"""

from dataclasses import dataclass, replace
from typing import Final

from a2c_smcp.computer.mcp_clients.model import MCPServerConfig, SSEServerConfig

__all__ = ["AUTO", "LEGACY", "Handshake"]

AUTO: Final = "auto"
LEGACY: Final = "legacy"


@dataclass(frozen=True, slots=True)
class Handshake:
    """The mode of the next start, by the config of a server and by what its earlier starts showed."""

    fixed: str | None = None
    """The mode that the config names, or that its transport needs."""
    is_old: bool = False
    """Whether to start with `legacy`: the last successful start used it, or a tool could not ask the person without
    it.
    """
    is_fallback: bool = False
    """Whether `legacy` was chosen because a tool could not ask the person. The server may not start with it at all."""
    is_modern_only: bool = False
    """Whether the server has refused `legacy`."""

    @classmethod
    def of(cls, config: MCPServerConfig, *, is_old: bool = False) -> "Handshake":
        """The first handshake with a server. `is_old` says that an earlier connection fell back to `legacy`."""
        fixed = None if config.protocol in (None, AUTO) else config.protocol
        if fixed is None and isinstance(config, SSEServerConfig):
            fixed = LEGACY  # SSE is a transport of the old era only
        return cls(fixed, is_old=is_old, is_fallback=is_old)

    @property
    def mode(self) -> str:
        return self.fixed or (LEGACY if self.is_old else AUTO)

    @property
    def may_fall_back(self) -> bool:
        """Whether `legacy` may be tried because a tool could not ask the person."""
        return self.fixed is None and not self.is_modern_only

    def fallen_back(self) -> "Handshake":
        return replace(self, is_old=True, is_fallback=True)

    def succeeded(self, mode: str) -> "Handshake":
        """The next handshake after a successful start in this mode."""
        return replace(self, is_old=mode == LEGACY)

    def refused(self) -> "Handshake":
        """The next handshake after `legacy` was tried for a tool, and the server did not start."""
        return replace(self, is_old=False, is_fallback=False, is_modern_only=True)
