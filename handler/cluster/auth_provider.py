"""Users with an `auth-provider` (oidc, gcp): signed in by `kubernetes`' loader, imported only for them: it takes 0.3 s."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from kubernetes.config import ConfigException, kube_config

from handler.cluster.kubeconfig_context import Malformed

_vendor: Any = kube_config  # it carries no types
_vendors_own = _vendor._create_temp_file_with_content  # noqa: SLF001 - it has no public way to say where, nor for how long
_here = threading.local()


class Provider:
    """A context's user with its auth-provider. `files`: of the kubeconfig; empty: `document` holds it."""

    def __init__(self, files: str, document: Any, context: str) -> None:
        """Find the context. Raises Malformed."""
        merger = _vendor.KubeConfigMerger(files) if files else None
        with _translated():
            self._loader = _vendor.KubeConfigLoader(
                config_dict=merger.config if merger else document,
                active_context=context or None,
                config_base_path=None if merger else "",
                config_persister=merger.save_changes if merger else None,
            )

    def token(self) -> tuple[str, datetime | None]:
        """Return the token, renewed where it has expired (empty: none), and its expiry. Raises Malformed, OSError."""
        with _translated(), _passing():
            found = self._loader._load_auth_provider_token()  # noqa: SLF001 - the vendor offers all of a sign-in, or nothing
        expiry = getattr(self._loader, "expiry", None)
        return str(found or "").removeprefix("Bearer "), expiry.astimezone(UTC) if expiry else None


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ConfigException:  # its text may quote an answer to a client secret or a refresh token
        raise Malformed("its auth-provider can't be used: a field is missing, or the provider refuses to renew its token") from None


@contextmanager
def _passing() -> Iterator[None]:
    before = getattr(_here, "directory", "")
    _here.directory = tempfile.mkdtemp(prefix="anneal-keys-")  # made with mode 0700
    try:
        yield
    finally:
        shutil.rmtree(_here.directory, ignore_errors=True)
        _here.directory = before


def _written(content: str | bytes, temp_file_path: str | None = None, force_recreate: bool = False) -> str:
    """Write a file for the loader, whose own function caches files by content across loads."""
    directory = getattr(_here, "directory", "")
    if not directory:
        return str(_vendors_own(content, temp_file_path, force_recreate))
    descriptor, name = tempfile.mkstemp(dir=directory)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return name


_vendor._create_temp_file_with_content = _written  # noqa: SLF001 - see above
