"""Certificates and keys that a kubeconfig holds as data: in memory, not in files of /tmp, where the vendor's loader leaves them.

Law: such a file lies in a directory of its load, which nobody else may read, and is gone before the load's result is used. What a
kubeconfig names as a file is left to be read at each connection, so that a renewed certificate counts.
"""

from __future__ import annotations

import os
import shutil
import ssl
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes.config import kube_config
from urllib3.util.ssl_ import create_urllib3_context

_vendor: Any = kube_config  # it carries no types
_vendors_own = _vendor._create_temp_file_with_content  # noqa: SLF001 - it has no public way to say where, nor for how long
_here = threading.local()


class Directory:
    """Where the files of one load lie, from the first one on."""

    def __init__(self) -> None:
        self._path = ""

    def write(self, content: bytes) -> str:
        """Write a file. Returns its path."""
        self._path = self._path or tempfile.mkdtemp(prefix="anneal-keys-")  # made with mode 0700
        descriptor, name = tempfile.mkstemp(dir=self._path)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        return name

    def has(self, file: str | None) -> bool:
        """Whether a file lies here."""
        return bool(file and self._path) and str(Path(str(file)).parent) == self._path

    def remove(self) -> None:
        """Remove it and what is in it."""
        if self._path:
            shutil.rmtree(self._path, ignore_errors=True)


@contextmanager
def passing() -> Iterator[Directory]:
    """Have what this thread loads write its files into a directory that is removed at the end."""
    before = getattr(_here, "directory", None)
    _here.directory = Directory()
    try:
        yield _here.directory
    finally:
        _here.directory.remove()
        _here.directory = before


def _written(content: str | bytes, temp_file_path: str | None = None, force_recreate: bool = False) -> str:
    """Write what the vendor's loader wants to have in a file. The vendor's own way remembers files by content, for all loads together."""
    directory: Directory | None = getattr(_here, "directory", None)
    if directory is None:
        return str(_vendors_own(content, temp_file_path, force_recreate))
    return directory.write(content.encode() if isinstance(content, str) else content)


_vendor._create_temp_file_with_content = _written  # noqa: SLF001 - see above


def in_memory(configuration: Any, directory: Directory) -> Mapping[str, Any]:
    """Return what a pool gets instead of the files in this directory; they are read here. Raises OSError (ssl.SSLError), ValueError."""
    given: dict[str, Any] = {}
    if directory.has(configuration.ssl_ca_cert):
        given |= {"ca_certs": None, "ca_cert_data": Path(configuration.ssl_ca_cert).read_text()}
    if directory.has(configuration.cert_file) or directory.has(configuration.key_file):
        context = create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if configuration.verify_ssl else ssl.CERT_NONE)
        context.load_cert_chain(configuration.cert_file, configuration.key_file, password="")
        given |= {"cert_file": None, "key_file": None, "ssl_context": context}
    return given
