"""What keeps a process from tracing."""

__all__ = ["TracingProblem"]


class TracingProblem(ValueError):  # noqa: N818 - what the person at the terminal reads
    """Tracing was asked for and cannot work. The text says what to do."""
