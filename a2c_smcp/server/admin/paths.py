"""The names that both sides of the operators' door use."""

from typing import Final

__all__ = ["API_PATH", "KEY_HEADER"]

#: Below this path are the operations.
API_PATH: Final = "/admin/api/"
#: The header with the admin key. A browser asks us before it lets a page of another origin send it.
KEY_HEADER: Final = "x-a2c-admin-key"
