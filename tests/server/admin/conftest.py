"""The operators' page is looked at with the browser of the console's tests."""

from tests.computer.console.conftest import browser

__all__ = ["browser"]
