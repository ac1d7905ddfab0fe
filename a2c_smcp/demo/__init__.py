"""The guided tour that `a2c demo` runs."""
