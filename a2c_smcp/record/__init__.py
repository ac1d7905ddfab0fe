"""The record: what happened at a computer or at a server, in an append-only file whose rows are chained by hashes."""
