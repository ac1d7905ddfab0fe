"""What people decide: what they are asked, what they are shown, and who can answer."""

from a2c_smcp.utils.lazy_names import moved_names

# They were here before `book.py` was, and answer here until version 0.4.0.
__getattr__ = moved_names(__name__, "computer.decisions.book")
