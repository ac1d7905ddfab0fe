"""The offices of the computers' tests, for the kit's servers."""

from tests.computer.conftest import hub

__all__ = ["hub"]
