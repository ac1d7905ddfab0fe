"""The plugin for pytest: fixtures with an office. pytest loads it in every project of the environment, so it imports
nothing of ours until a test asks for a fixture.

    @pytest.mark.a2c_office(mcp_servers=[add])
    async def test_sums(a2c_lab):
        assert text_of(await a2c_lab.agent.call_tool("pc", "add", {"a": 1, "b": 2})) == "3"
"""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from a2c_smcp.testing import BlockingLab, Lab

__all__ = ["a2c_blocking_lab", "a2c_lab"]

_MARKER = "a2c_office"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{_MARKER}(mcp_servers, ...): how the office of a2c_lab is made; the arguments of office()"
    )


def _arguments(request: pytest.FixtureRequest) -> tuple[tuple[Any, ...], dict[str, Any]]:
    marker = request.node.get_closest_marker(_MARKER)
    return (marker.args, dict(marker.kwargs)) if marker is not None else ((), {})


@pytest.fixture
async def a2c_lab(request: pytest.FixtureRequest) -> "AsyncIterator[Lab]":
    """An office for an async test, made as the marker `a2c_office` says. Needs anyio's plugin, or pytest-asyncio in its
    mode `auto`.
    """
    from a2c_smcp.testing import office

    args, options = _arguments(request)
    async with office(*args, **options) as lab:
        yield lab


@pytest.fixture
def a2c_blocking_lab(request: pytest.FixtureRequest) -> "Iterator[BlockingLab]":
    """An office for a test that is not async, made as the marker `a2c_office` says."""
    from a2c_smcp.testing import blocking_office

    args, options = _arguments(request)
    with blocking_office(*args, **options) as lab:
        yield lab
