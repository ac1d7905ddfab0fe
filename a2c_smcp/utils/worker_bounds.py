"""What a worker process may take of its machine. Called by the worker itself, before it works."""

from contextlib import suppress

__all__ = ["bound_memory"]


def bound_memory(most: int) -> None:
    """Let this process have so many bytes of address space, where the system can: then `MemoryError` is raised, or a
    library aborts. No core is dumped.
    """
    try:
        import resource
    except ImportError:  # on Windows
        return
    with suppress(ValueError, OSError):  # not every system lets a process limit itself
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
