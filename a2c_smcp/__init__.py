"""A2C-SMCP: an agent uses the tools, the screen and the documents of many computers through one server.

Importing this package is cheap: each role is imported from its own room (`a2c_smcp.server`, `a2c_smcp.computer`,
`a2c_smcp.agent`).

PYTEST_DONT_REWRITE: a program that imports this before it runs pytest gets no warning for it.
"""

from a2c_smcp.errors import SMCPError, SmcpError
from a2c_smcp.smcp import EVENTS, PROTOCOL_VERSION, SMCP_NAMESPACE

__all__ = ["EVENTS", "PROTOCOL_VERSION", "SMCP_NAMESPACE", "SMCPError", "SmcpError", "__version__"]

__version__ = "0.2.0"
