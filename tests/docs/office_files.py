"""Office files that are written here, part by part, so that a test shows the XML which it is about."""

import io
import zipfile
from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

__all__ = ["archive", "odf_file", "slides_file", "text_shape", "word_file"]

_OFFICE = "http://schemas.openxmlformats.org"
_RELATIONS = f"{_OFFICE}/officeDocument/2006/relationships"
NAMESPACES = " ".join(
    f'xmlns:{prefix}="{address}"'
    for prefix, address in {
        "w": f"{_OFFICE}/wordprocessingml/2006/main",
        "p": f"{_OFFICE}/presentationml/2006/main",
        "a": f"{_OFFICE}/drawingml/2006/main",
        "c": f"{_OFFICE}/drawingml/2006/chart",
        "dgm": f"{_OFFICE}/drawingml/2006/diagram",
        "wp": f"{_OFFICE}/drawingml/2006/wordprocessingDrawing",
        "pic": f"{_OFFICE}/drawingml/2006/picture",
        "m": f"{_OFFICE}/officeDocument/2006/math",
        "r": _RELATIONS,
        "mc": f"{_OFFICE}/markup-compatibility/2006",
        "v": "urn:schemas-microsoft-com:vml",
        "o": "urn:schemas-microsoft-com:office:office",
        "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
        "a14": "http://schemas.microsoft.com/office/drawing/2010/main",
    }.items()
)
_ODF = " ".join(
    f'xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
    for prefix, name in {
        **{name: name for name in ("office", "style", "text", "table", "presentation", "meta", "chart")},
        "draw": "drawing",
        "svg": "svg-compatible",
    }.items()
)
ODF_NAMESPACES = f'{_ODF} xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xlink="http://www.w3.org/1999/xlink"'


def archive(parts: Mapping[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as made:
        for name, data in parts.items():
            # The same bytes every time.
            made.writestr(zipfile.ZipInfo(name, (2025, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _relationships(targets: Mapping[str, tuple[str, str]]) -> str:
    """By id: the kind, and what it points at. An address is outside of the file."""
    lines = (
        f'<Relationship Id="{each}" Type="{_RELATIONS}/{kind}" Target="{escape(target)}" '
        + ('TargetMode="External"/>' if "://" in target else "/>")
        for each, (kind, target) in targets.items()
    )
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{"".join(lines)}</Relationships>'


def _core(title: str, keywords: str) -> str:
    return (
        f'<cp:coreProperties xmlns:cp="{_OFFICE}/package/2006/metadata/core-properties" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title>'
        f"<cp:keywords>{escape(keywords)}</cp:keywords></cp:coreProperties>"
    )


def word_file(
    body: str,
    parts: Mapping[str, str] | None = None,
    *,
    links: Mapping[str, tuple[str, str]] | None = None,
    title: str = "",
    keywords: str = "",
) -> bytes:
    """A Word file. Parts are given by their kind, as `styles` or `header`, with their XML; a number may follow it."""
    parts = parts or {}
    targets = {name: (name.rstrip("0123456789"), f"{name}.xml") for name in parts}
    return archive(
        {
            "_rels/.rels": _relationships({"main": ("officeDocument", "word/document.xml")}),
            "docProps/core.xml": _core(title, keywords),
            "word/document.xml": f"<w:document {NAMESPACES}><w:body>{body}</w:body></w:document>",
            "word/_rels/document.xml.rels": _relationships({**targets, **(links or {})}),
            **{f"word/{name}.xml": _named(xml) for name, xml in parts.items()},
        }
    )


def _named(xml: str) -> str:
    """XML with the namespaces at its first tag."""
    tag, rest = xml.split(">", 1) if not xml.split(">", 1)[0].endswith("/") else (xml, "")
    return f"{tag} {NAMESPACES}>{rest}"


def text_shape(text: str, kind: str = "", settings: str = "") -> str:
    """A shape with a paragraph for each line."""
    place = f'<p:ph type="{kind}"/>' if kind else ""
    lines = "".join(f"<a:p>{settings}<a:r><a:t>{escape(line)}</a:t></a:r></a:p>" for line in text.split("\n"))
    return (
        f'<p:sp><p:nvSpPr><p:cNvPr id="1" name="a shape"/><p:nvPr>{place}</p:nvPr></p:nvSpPr>'
        f"<p:txBody>{lines}</p:txBody></p:sp>"
    )


def slides_file(
    slides: Sequence[str],
    parts: Sequence[Mapping[str, str]] = (),
    *,
    links: Mapping[str, tuple[str, str]] | None = None,
    hidden: Sequence[int] = (),
    title: str = "",
) -> bytes:
    """A PowerPoint file. Each slide is given by its shapes, and by the parts that it points at by their names."""
    ids = [f"slide{number}" for number in range(1, len(slides) + 1)]
    listed = "".join(f'<p:sldId r:id="{each}"/>' for each in ids)
    made: dict[str, str] = {
        "_rels/.rels": _relationships({"main": ("officeDocument", "ppt/presentation.xml")}),
        "docProps/core.xml": _core(title, ""),
        "ppt/presentation.xml": f"<p:presentation {NAMESPACES}><p:sldIdLst>{listed}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": _relationships({each: ("slide", f"slides/{each}.xml") for each in ids}),
        **{f"ppt/{name}.xml": _named(xml) for own in parts for name, xml in own.items()},
    }
    for number, (each, shapes) in enumerate(zip(ids, slides, strict=True)):
        own = parts[number] if number < len(parts) else {}
        targets = {name: (name.rstrip("0123456789"), f"../{name}.xml") for name in own} | dict(links or {})
        show = ' show="0"' if number in hidden else ""
        tree = f"<p:cSld><p:spTree>{shapes}</p:spTree></p:cSld>"
        made[f"ppt/slides/{each}.xml"] = f"<p:sld {NAMESPACES}{show}>{tree}</p:sld>"
        made[f"ppt/slides/_rels/{each}.xml.rels"] = _relationships(targets)
    return archive(made)


def odf_file(kind: str, body: str, *, automatic: str = "", styles: str = "", meta: str = "", **more: str) -> bytes:
    """An OpenDocument file whose body is a `text` or a `presentation`."""
    inside = {
        "content.xml": f"<office:automatic-styles>{automatic}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body>",
        "styles.xml": styles,
        "meta.xml": f"<office:meta>{meta}</office:meta>",
    }
    made = {
        name: f"<office:document-content {ODF_NAMESPACES}>{xml}</office:document-content>"
        for name, xml in inside.items()
    }
    return archive({**made, **{name.replace("__", "/") + ".xml": xml for name, xml in more.items()}})
