"""What an operator sees of a running server, and what he does to it: over a local socket, or over HTTP with a key."""
