"""Locks on files between processes. There are none on Windows."""

from a2c_smcp.utils.system import IS_UNIX

__all__ = ["try_file_lock"]


def try_file_lock(file: int) -> bool:
    """Whether this open file is locked for this process now; always true on Windows. It stays locked until it is
    closed.
    """
    if not IS_UNIX:
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
