"""How much of the windows a whole desktop shows."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import BlobResourceContents, ReadResourceResult, Resource, TextResourceContents

from a2c_smcp.computer.desktop import organize_desktop, reading
from a2c_smcp.computer.desktop.cutting import DesktopLimits, Room, cut_window, text_bytes, windows_within
from a2c_smcp.computer.desktop.reading import read_desktop
from a2c_smcp.errors import PayloadTooLargeError, SMCPError
from a2c_smcp.wire import codec, size_of

URI = "window://a/1"


def window(*texts: str | bytes) -> ReadResourceResult:
    return ReadResourceResult(
        contents=[
            TextResourceContents(uri=URI, text=text)
            if isinstance(text, str)
            else BlobResourceContents(uri=URI, blob=text.decode())
            for text in texts
        ]
    )


def shown(result: ReadResourceResult) -> str:
    [desktop] = organize_desktop([("a", Resource(uri=URI, name="1"), result)], None, [])
    return desktop


def test_a_window_that_fits_stays_as_it_is() -> None:
    assert cut_window(window("abc", "", "é"), 5) == window("abc", "", "é")
    assert shown(cut_window(window("", ""), 5)) == URI


def test_a_large_window_is_cut_with_a_mark_that_says_how_much_is_missing() -> None:
    mark = "[cut: 5 of 10 bytes are shown; ask for this window alone to have it whole]"
    assert shown(cut_window(window("0123456789"), 5)) == f"{URI}\n\n01234\n\n{mark}"
    assert shown(cut_window(window("0123", "456789"), 5)) == f"{URI}\n\n0123\n\n4\n\n{mark}"


def test_a_character_is_shown_whole_or_not_at_all() -> None:
    assert shown(cut_window(window("中中中"), 5)).startswith(f"{URI}\n\n中\n\n[cut")


def test_a_blob_is_still_there_but_takes_no_room() -> None:
    cut = cut_window(window(b"eHh4", "abc"), 2)
    assert isinstance(cut.contents[0], BlobResourceContents)
    assert text_bytes(cut_window(window(b"eHh4"), 2)) == 0
    assert organize_desktop([("a", Resource(uri=URI, name="1"), cut_window(window(b"eHh4"), 2))], None, []) == []


@given(st.lists(st.text(max_size=30), min_size=1, max_size=4), st.integers(1, 60))
def test_what_is_shown_is_the_beginning_and_no_longer(texts: list[str], most: int) -> None:
    cut = cut_window(window(*texts), most)
    kept = [content.text for content in cut.contents if isinstance(content, TextResourceContents)]
    if sum(map(size_of, texts)) <= most:
        assert kept == texts
    else:
        *kept, mark = kept
        assert mark.startswith("[cut")
        assert "".join(texts).startswith("".join(kept))
        assert sum(map(size_of, kept)) <= most


@given(st.lists(st.text(), max_size=8), st.integers(0, 200))
def test_what_fits_is_the_most_important_and_as_much_as_goes(desktops: list[str], most: int) -> None:
    fit = windows_within(desktops, most)
    assert fit == desktops[: len(fit)]
    assert size_of(codec.dumps(fit)) <= max(most, 2)
    if len(fit) < len(desktops):
        assert size_of(codec.dumps(desktops[: len(fit) + 1])) > most


@given(st.permutations(range(6)), st.lists(st.integers(0, 10), min_size=6, max_size=6), st.integers(0, 40))
def test_whatever_comes_first_the_most_important_stay(order: list[int], sizes: list[int], most: int) -> None:
    """What is kept while reading has all that fits in the end, and nothing that makes it exceed the room."""
    room, kept = Room(most), set()
    for rank in order:
        if room.takes(rank):
            kept.add(rank)
            kept -= set(room.keep(rank, sizes[rank]))
            assert sum(sizes[rank] for rank in kept) <= most
    fits = [rank for rank, total in enumerate(itertools.accumulate(sizes)) if total <= most]
    assert set(fits) <= kept


async def read(
    texts: dict[str, str | SMCPError], limits: DesktopLimits, one: str | None = None
) -> tuple[list[str], list[str]]:
    asked = []

    async def read_window(server: str, uri: str) -> ReadResourceResult:
        asked.append(uri)
        if isinstance(text := texts[uri], SMCPError):
            raise text
        return window(text)

    resources = {"a": [Resource(uri=uri, name="w") for uri in texts]}
    return await read_desktop(resources, read_window, None, one, [], limits), asked


async def test_windows_that_do_not_fit_any_more_are_left_out_and_not_even_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    texts: dict[str, str | SMCPError] = {f"window://a/{n}?priority={n % 100}": "x" * 1000 for n in range(200)}
    desktops, asked = await read(texts, DesktopLimits(window=500, message=8000))
    assert 10 < len(desktops) < 15
    assert all(f"priority={99 - n // 2}" in desktop for n, desktop in enumerate(desktops))
    assert all("[cut: 500 of 1000 bytes" in desktop for desktop in desktops)
    assert size_of(codec.dumps(desktops)) <= 8000
    assert len(asked) < 60
    assert f"{200 - len(desktops)} least important windows are left out" in caplog.text


async def test_one_window_alone_is_whole_or_413() -> None:
    texts: dict[str, str | SMCPError] = {URI: "x" * 10_000, "window://a/2": PayloadTooLargeError("too large")}
    limits = DesktopLimits(window=500, message=8000)
    desktops, _ = await read(texts, limits, URI)
    assert desktops == [f"{URI}\n\n" + "x" * 10_000]
    with pytest.raises(PayloadTooLargeError):
        await read(texts, limits, "window://a/2")
    desktops, _ = await read(texts, limits)
    assert len(desktops) == 1


async def test_a_thousand_windows_that_cannot_be_read_are_a_few_log_lines(caplog: pytest.LogCaptureFixture) -> None:
    texts: dict[str, str | SMCPError] = {f"window://a/{n}": SMCPError(500, "no") for n in range(1000)}
    assert (await read(texts, DesktopLimits()))[0] == []
    # Not those of a test before this one, whose threads may still have something to say.
    assert len([record for record in caplog.records if record.name == reading.logger.name]) == 11
    assert "1000 windows could not be read" in caplog.text
