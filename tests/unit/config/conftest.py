"""What the tests of the configuration share: patience on a busy machine."""

from __future__ import annotations

import pytest

from handler.config.remote_secrets import RemoteSecrets


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer of a store that doesn't hang is waited for, however long its thread takes to come to its turn."""
    monkeypatch.setattr(RemoteSecrets.renew, "__defaults__", (60.0,))
