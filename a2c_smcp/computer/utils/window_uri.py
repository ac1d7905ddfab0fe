"""`window://` URIs, where the specification puts them; they are defined in `a2c_smcp.utils.window_uri`."""

from a2c_smcp.utils.window_uri import WindowURI, is_window_uri

__all__ = ["WindowURI", "is_window_uri"]
