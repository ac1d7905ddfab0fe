"""Values that more than one role needs."""
