"""A folder for PYTHONPATH: a Python that starts with it lacks what Windows lacks."""
