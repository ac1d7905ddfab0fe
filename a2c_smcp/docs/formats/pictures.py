"""Pictures as PNG files of a bounded size. Knows nothing of documents."""

import io
from typing import BinaryIO, Final

from PIL import Image as Picture
from PIL import ImageOps, UnidentifiedImageError

from a2c_smcp.docs.limits import Unreadable

__all__ = ["png_of", "png_within"]

_MOST_PIXELS: Final = 40_000_000
"""A picture with more pixels is not unpacked: it would not fit into the memory of a worker."""
_MOST_BYTES: Final = 4 * 2**20
#: Formats that Pillow unpacks by itself. For others it would start another program, such as Ghostscript.
_UNPACKED: Final = frozenset(
    ("PNG", "JPEG", "MPO", "JPEG2000", "GIF", "WEBP", "AVIF", "BMP", "DIB", "TIFF", "ICO", "PCX", "PPM", "TGA")
)


def png_of(file: BinaryIO, longest: int) -> bytes | None:
    """A PNG of the image in a file, as `png_within` makes it. `None` if the format is unknown or has no pixels. Raises
    `Unreadable` if the image has too many pixels, and `OSError` if it is broken.
    """
    # The pixels are counted below, before anything is unpacked.
    Picture.MAX_IMAGE_PIXELS = None
    try:
        picture = Picture.open(file)
    except UnidentifiedImageError:
        return None
    with picture:
        if picture.format not in _UNPACKED:
            return None
        picture.draft("RGB", (longest, longest))  # a JPEG is unpacked to a smaller one at once
        if picture.width * picture.height > _MOST_PIXELS:
            raise Unreadable(f"it has {picture.width} × {picture.height} pixels", 413)
        # A photograph says how it was held.
        return png_within(ImageOps.exif_transpose(picture), longest)


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
