"""Programs to read and to copy; README.md lists them."""
