"""`dpe://` URIs, where the specification puts them; they are defined in `a2c_smcp.utils.dpe_uri`."""

from a2c_smcp.utils.dpe_uri import (
    CATEGORIES,
    ParsedDPEUri,
    build_dpe_uri,
    document_ref,
    document_uri,
    element_uri,
    is_dpe_uri,
    is_valid_dpe_uri,
    page_uri,
    parse_dpe_uri,
    try_parse_dpe_uri,
    with_params,
)

__all__ = [
    "CATEGORIES",
    "ParsedDPEUri",
    "build_dpe_uri",
    "document_ref",
    "document_uri",
    "element_uri",
    "is_dpe_uri",
    "is_valid_dpe_uri",
    "page_uri",
    "parse_dpe_uri",
    "try_parse_dpe_uri",
    "with_params",
]
