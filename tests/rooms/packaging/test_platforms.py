"""Where it is installed besides this machine: every locked version has a wheel there, so that nothing is compiled."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.uv import uv

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("lock", "platform", "python"),
    [
        ("requirements.lock", "aarch64-manylinux_2_36", "3.11"),  # the image's second architecture
        ("requirements-test.lock", "aarch64-apple-darwin", "3.11"),  # the workflow's macOS
        ("requirements-test.lock", "aarch64-apple-darwin", "3.13"),
    ],
)
def test_every_locked_version_has_a_wheel(lock: str, platform: str, python: str, tmp_path: Path) -> None:
    there = ["--dry-run", "--target", str(tmp_path), "--python-platform", platform, "--python-version", python]
    command = [uv(), "pip", "install", *there, "--only-binary", ":all:", "--no-deps", "--require-hashes", "-r", str(ROOT / lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Would install" in done.stderr
