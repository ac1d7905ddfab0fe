"""Values of the Computer's own."""
