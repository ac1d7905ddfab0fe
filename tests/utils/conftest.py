"""What tests of several modules need."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def _own_handlers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("a2c_smcp")
    levels = root.level, ours.level
    with monkeypatch.context() as patch:
        patch.setattr(root, "handlers", [])  # or pytest's would be closed
        yield
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
