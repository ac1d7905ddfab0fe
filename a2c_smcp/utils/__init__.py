"""Values that more than one role needs."""

from a2c_smcp.utils.lazy_names import old_names

__getattr__ = old_names(
    __name__,
    {"WindowURI": "utils.window_uri.WindowURI", "is_window_uri": "utils.window_uri.is_window_uri"},
)
