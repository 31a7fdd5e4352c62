"""Files whose place the operator names and whose content somebody else may replace at any time: read without ever waiting for them."""

from __future__ import annotations

import errno
import os
import stat


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Return at most `most` bytes of a regular file, at the end of its links.

    Raises:
        OSError: it can't be opened, or is a pipe, device or directory: opening a pipe would wait for its writer for ever.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(handle)
