"""Where a secret value stands: in an environment variable, a regular file, or a store. One function a place."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from handler.config.git_settings import SecretRef
from handler.config.remote_secrets import Fetch, text_of


def read_regular(path: str | os.PathLike[str], most: int) -> bytes:
    """Return at most `most` bytes of a regular file, at the end of its links. Raises OSError for anything else; waits for no pipe."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read(most)
    finally:
        os.close(handle)


LARGEST = 65_536  # bytes that a value may have; AWS Secrets Manager's own limit


def found(ref: SecretRef, environ: Mapping[str, str], fetch: Fetch) -> tuple[str, str]:
    """Return a reference's value, or what is wrong with its place. Raises SecretUnavailable when a store says so itself."""
    if ref.remote:
        return _in_store(ref, fetch)
    return _in_environment(ref.env, environ) if ref.env else _in_file(Path(ref.file))


def _in_store(ref: SecretRef, fetch: Fetch) -> tuple[str, str]:
    text = text_of(ref, fetch)
    if text is None:
        return "", "has no such version"
    return ("", f"is larger than {LARGEST} bytes") if len(text.encode()) > LARGEST else (text, "")


def _in_environment(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    value = environ.get(name)
    if value is None:
        return "", "is not set"
    return ("", "is not UTF-8 text") if any("\ud800" <= char <= "\udfff" for char in value) else (value, "")


def _in_file(path: Path) -> tuple[str, str]:
    try:
        if not path.is_file():
            return "", "is not a file" if path.exists() else "doesn't exist"
        raw = read_regular(path, LARGEST + 1)
    except OSError as error:
        return "", f"can't be read: {error.strerror}"
    if len(raw) > LARGEST:
        return "", f"is larger than {LARGEST} bytes"
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r"), ""
    except UnicodeDecodeError:  # no `raise` here: the error holds the secret's bytes and would be chained
        return "", "is not UTF-8 text"
