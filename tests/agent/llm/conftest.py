"""A service of models on loopback, and the real SDKs as clients of it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from tests.models.service import ModelService, serving

#: What a result may hold beside text: a PNG of one pixel, and a PDF that is not one.
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
PDF = "JVBERi0xLjQK"


@pytest.fixture(scope="session")
def running_service() -> Iterator[ModelService]:
    with serving(ModelService()) as service:
        yield service


@pytest.fixture
def service(running_service: ModelService) -> Iterator[ModelService]:
    """The service, without what other tests left. No request of a test may break a rule of an API."""
    running_service.requests, running_service.broken, running_service._turns = [], [], []
    yield running_service
    assert running_service.broken == []


@pytest.fixture
async def sdk(service: ModelService) -> AsyncIterator[Any]:
    """Makes the client of a style."""
    async with AsyncExitStack() as stack:

        def make(style: str) -> Any:
            client = make_client(style, service.url)
            stack.push_async_callback(client.aio.aclose if style == "gemini" else client.close)
            return client

        yield make


def make_client(style: str, url: str) -> Any:
    if style == "anthropic":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(api_key="made up", base_url=url, max_retries=0)
    if style == "gemini":
        from google import genai

        return genai.Client(api_key="made up", http_options={"base_url": url})
    from openai import AsyncOpenAI

    return AsyncOpenAI(api_key="made up", base_url=f"{url}/v1", max_retries=0)
