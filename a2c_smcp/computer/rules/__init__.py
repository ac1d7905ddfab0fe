"""Rules: what may run without a person, what must be asked for, and what never runs."""
