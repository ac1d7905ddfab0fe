"""Tool calls: how one runs, what repeats of it get, what is kept of it, and how its progress is told."""
