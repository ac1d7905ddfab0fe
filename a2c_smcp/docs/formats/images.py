"""Pictures: one page with their dimensions, for which only the header is read. They are unpacked to be looked at."""

from typing import BinaryIO

from PIL import Image as Picture
from PIL import UnidentifiedImageError

from a2c_smcp.docs.formats import Properties
from a2c_smcp.docs.formats.pictures import png_of
from a2c_smcp.docs.limits import DocumentLimits, Unreadable
from a2c_smcp.mcp_server.documents import Page
from a2c_smcp.mcp_server.elements import Element, Image

__all__ = ["open_document"]


class ImageDocument:
    page_count = 1

    def __init__(self, file: BinaryIO, image: Image, properties: Properties) -> None:
        self._file = file
        self._image = image
        self.properties = properties

    def page(self, index: int) -> Page:
        return Page("Image", [self._image])

    def picture(self, index: int, element: Element | None, longest: int) -> bytes | None:
        self._file.seek(0)
        return png_of(self._file, longest)


def open_document(file: BinaryIO, name: str, limits: DocumentLimits) -> ImageDocument:
    # Nothing is unpacked here, so that a picture which would be too large to unpack is no danger.
    Picture.MAX_IMAGE_PIXELS = None
    try:
        with Picture.open(file) as picture:
            width, height = picture.size
            kind, mode = picture.format or "", picture.mode
            told = picture.info.get("Description") or picture.info.get("comment") or ""
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError) as error:
        raise Unreadable(f"it is not an image: {' '.join(str(error).split())[:100]}") from None
    description = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
    facts = f"{kind} image, {width} × {height} pixels"
    image = Image(
        alt=name.rpartition("/")[2],
        description=f"{description} ({facts})" if description else facts,
        width=width,
        height=height,
        metadata={"mode": mode},
    )
    return ImageDocument(file, image, Properties(summary=image.description))
