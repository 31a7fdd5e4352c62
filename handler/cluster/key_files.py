"""Certificates and keys that a kubeconfig or a plugin holds as data: in memory, not in files of /tmp.

Law: a file that a TLS library needs lies in a private directory, which is removed before the load's result is used. A file that a
kubeconfig names is read at each connection, so that a renewed certificate counts.
"""

from __future__ import annotations

import ssl
import tempfile
from pathlib import Path
from typing import Any

from urllib3.util.ssl_ import create_urllib3_context

Content = bytes | str
"""Bytes that are the PEM itself, or the path of its file; empty: there is none."""


def pooled(authority: Content, certificate: Content, key: Content, *, verify: bool) -> dict[str, Any]:
    """Return a pool's TLS arguments. Raises OSError (ssl.SSLError), ValueError, TypeError: the content can't be used."""
    given: dict[str, Any] = {
        "cert_reqs": ssl.CERT_REQUIRED if verify else ssl.CERT_NONE,
        "ca_certs": authority or None if isinstance(authority, str) else None,
        "ca_cert_data": authority.decode() or None if isinstance(authority, bytes) else None,
    }
    if _held(certificate) or _held(key):
        return {**given, "cert_file": None, "key_file": None, "ssl_context": _context(certificate, key, given["cert_reqs"])}
    return {**given, "cert_file": certificate or None, "key_file": key or None}


def _held(content: Content) -> bool:
    return isinstance(content, bytes) and bool(content)


def _context(certificate: Content, key: Content, verify: ssl.VerifyMode) -> ssl.SSLContext:
    context = create_urllib3_context(cert_reqs=verify)
    with tempfile.TemporaryDirectory(prefix="anneal-keys-", ignore_cleanup_errors=True) as directory:  # made with mode 0700
        files = [_file(content, Path(directory) / name) for name, content in (("certificate", certificate), ("key", key))]
        context.load_cert_chain(files[0], files[1], password="")  # type: ignore[arg-type]  # without a certificate this raises TypeError
    return context


def _file(content: Content, place: Path) -> str | None:
    """Return the path of a content; bytes are written to `place` first."""
    if isinstance(content, str):
        return content or None
    if not content:
        return None
    place.touch(mode=0o600)
    place.write_bytes(content)
    return str(place)
