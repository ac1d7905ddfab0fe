"""Config files: how they are read, described, and changed without touching what is beside the change."""
