"""Packages, each made once a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.packing import host, once, package
from tests.rooms.functions.sample_config import CONFIG


@pytest.fixture(scope="session")
def arm64() -> Path:
    """The package as it is deployed, with a configuration; package.json lies beside it."""
    with once("arm64") as (place, new):
        if new:
            (place / "trust").mkdir()
            (place / "trust" / "ca.pem").write_text("an authority\n")
            (place / "mine.yaml").write_text(json.dumps(CONFIG))
            package(place / "package.zip", "--config", str(place / "mine.yaml"))
    return place / "package.zip"


@pytest.fixture(scope="session")
def task() -> Path:
    """The package for this machine, unpacked."""
    return host()[1]
