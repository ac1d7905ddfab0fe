"""A link as a QR code, for a page and for a terminal."""

from typing import Final

__all__ = ["qr_image", "qr_text"]

#: The character for two modules, one above the other, by whether each is drawn.
_HALVES: Final = {(True, True): "█", (True, False): "▀", (False, True): "▄", (False, False): " "}


def qr_image(link: str) -> str:
    """The code as a `data:` URI of an SVG, dark on white in any colour scheme."""
    import segno

    return segno.make_qr(link, error="m").svg_data_uri(border=4, light="white", scale=4, omitsize=True)


def qr_text(link: str) -> str:
    """The code as lines of half blocks. The light modules are drawn, for terminals with a dark background."""
    import segno

    rows = [[not module for module in row] for row in segno.make_qr(link, error="m").matrix_iter(border=4)]
    below = [*rows[1:], [False] * len(rows[0])]
    return "\n".join(
        "".join(_HALVES[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], below[::2], strict=True)
    )
