"""A folder of files as `dpe://` documents: `a2c docs serve` and `a2c docs check`. Built on the kit, `mcp_server`."""
