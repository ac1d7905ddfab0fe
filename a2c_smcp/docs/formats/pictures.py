"""Pictures as PNG files of a bounded size. Knows nothing of documents."""

import io
from typing import Final

from PIL import Image as Picture

__all__ = ["MOST_PIXELS", "png_within"]

MOST_PIXELS: Final = 40_000_000
"""A picture with more pixels is not unpacked: it would not fit into the memory of a worker."""
_MOST_BYTES: Final = 4 * 2**20


def png_within(picture: Picture.Image, longest: int, most_bytes: int = _MOST_BYTES) -> bytes:
    """A PNG whose longest side has at most so many pixels, made smaller until it has at most so many bytes."""
    if picture.mode not in ("1", "L", "LA", "RGB", "RGBA"):
        picture = picture.convert("RGBA" if "transparency" in picture.info or picture.mode == "PA" else "RGB")
    side = min(longest, max(picture.size))
    while True:
        if max(picture.size) > side:
            ratio = side / max(picture.size)
            size = max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio))
            picture = picture.resize(
                size, Picture.Resampling.LANCZOS if picture.mode != "1" else Picture.Resampling.BOX
            )
        out = io.BytesIO()
        picture.save(out, "PNG", compress_level=6)
        if out.tell() <= most_bytes or side <= 1:
            return out.getvalue()
        # The number of bytes grows with the number of pixels, which is the square of the side.
        side = max(1, int(side * min(0.9, (most_bytes / out.tell()) ** 0.5)))
