"""What a host passes on to the servers that it starts: hosts do not give them their whole environment."""

import os

NAMES = ("PATH", "HOME", "A2C_URL", "A2C_OFFICE", "A2C_API_KEY", "XDG_RUNTIME_DIR")
ENV = {name: os.environ[name] for name in NAMES if name in os.environ}
