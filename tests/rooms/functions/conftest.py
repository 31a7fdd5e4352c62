"""Packages, each made once a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packing import package, unpacked
from tests.rooms.functions.sample import CONFIG


@pytest.fixture(scope="session")
def arm64(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as it is deployed, with a configuration; package.json lies beside it."""
    place = tmp_path_factory.mktemp("arm64")
    (place / "trust").mkdir()
    (place / "trust" / "ca.pem").write_text("an authority\n")
    (place / "mine.yaml").write_text(json.dumps(CONFIG))
    return package(place / "package.zip", "--config", str(place / "mine.yaml"))


@pytest.fixture(scope="session")
def task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package for this machine, unpacked."""
    return unpacked(tmp_path_factory.mktemp("host"))
