"""`dpe://` URIs, where the specification puts them; they are defined in `a2c_smcp.utils.dpe_uri`."""

from a2c_smcp.utils.dpe_uri import *  # noqa: F403
from a2c_smcp.utils.dpe_uri import __all__ as __all__
