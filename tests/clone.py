"""A copy of this checkout without what a checkout collects."""

from __future__ import annotations

from pathlib import Path

from infra.release.source import committed, exported


def clone_to(place: Path) -> Path:
    """Copy the files that git has of this checkout, as a clone of its next commit would have them; return the place."""
    return exported(place, committed())
