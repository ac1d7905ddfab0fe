"""Tool calls: how one runs, what is kept of it, what repeats of its request get, and how its progress is told."""
