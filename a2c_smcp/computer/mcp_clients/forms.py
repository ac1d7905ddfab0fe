"""The names of `utils/forms.py` were here. They answer here, with a warning, until version 0.4.0."""

from a2c_smcp.utils.lazy_names import moved_names

__getattr__ = moved_names(__name__, "utils.forms")
