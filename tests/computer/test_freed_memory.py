import asyncio

import pytest

from a2c_smcp.computer.calls import freed_memory
from a2c_smcp.computer.calls.freed_memory import FreedMemory


async def test_memory_is_given_back_once_in_a_pause_and_only_if_it_is_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = asyncio.Event()
    times: list[int] = []

    def trim(pad: int) -> None:
        times.append(pad)
        trimmed.set()

    monkeypatch.setattr(freed_memory, "_trim", lambda: trim)
    loop = asyncio.get_running_loop()
    freed = FreedMemory(quiet=0.01, worth=1000)
    freed.forgot(999, loop.time())
    await asyncio.sleep(0.05)
    assert times == []
    for _ in range(3):
        freed.forgot(1000, loop.time())
    await asyncio.wait_for(trimmed.wait(), 20)
    freed.forgot(999, loop.time())
    await asyncio.sleep(0.05)
    assert times == [0]


async def test_nothing_is_given_back_while_calls_come(monkeypatch: pytest.MonkeyPatch) -> None:
    trimmed = asyncio.Event()
    monkeypatch.setattr(freed_memory, "_trim", lambda: lambda _: trimmed.set())
    freed = FreedMemory(quiet=0.01)
    later = asyncio.get_running_loop().time() + 0.2  # a call that ends then
    freed.forgot(2**30, later)
    await asyncio.sleep(0.05)
    assert not trimmed.is_set()
    await asyncio.wait_for(trimmed.wait(), 20)
    assert asyncio.get_running_loop().time() >= later
