"""The files in deploy/, as they stand, with real programs."""
