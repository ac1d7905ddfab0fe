"""What tests of several modules need."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def _own_handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", [])  # or pytest's would be closed
        yield
