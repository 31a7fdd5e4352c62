"""Whether a tag may be released: code, chart and changelog have its version, and the pages name the repository that it is released from."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from handler import __version__
from infra.release.source import ROOT

EXAMPLE = "git.example.com/tools/anneal"
"""Stands for the repository's home until a maintainer fills it in (CONTRIBUTING.md, Releasing)."""
_HEADING = r"^## \[{version}\](?: - (?P<day>\d{{4}}-\d\d-\d\d))?\n(?P<text>.*?)(?=^## \[|\Z)"


def section(version: str, root: Path = ROOT) -> tuple[str, str]:
    """Return the day and the text of a version's section of the changelog; empty: there is none."""
    changelog = (root / "CHANGELOG.md").read_text()
    found = re.search(_HEADING.format(version=re.escape(version)), changelog, re.MULTILINE | re.DOTALL)
    return (found["day"] or "", found["text"].strip()) if found else ("", "")


def disagreements(tag: str, home: str = "", root: Path = ROOT) -> Iterator[str]:
    """Yield what keeps a tag from being released. `home`: the address of the repository that releases it; empty: it isn't looked at."""
    version = tag.removeprefix("v")
    if tag != f"v{__version__}":
        yield f"the tag is {tag}, handler.__version__ is {__version__}: tag v{__version__}, or change handler/__init__.py"
    chart: dict[str, Any] = yaml.safe_load((root / "infra" / "kubernetes" / "chart" / "Chart.yaml").read_text())
    for field in ("version", "appVersion"):
        if str(chart[field]) != version:
            yield f"infra/kubernetes/chart/Chart.yaml: {field} is {chart[field]}, the tag is {tag}"
    day, text = section(version, root)
    if not day or not text:
        yield f"CHANGELOG.md: no section `## [{version}] - YYYY-MM-DD` with text: name [Unreleased] so, and begin a new one"
    if home:
        yield from _elsewhere(home, root)


def _elsewhere(home: str, root: Path) -> Iterator[str]:
    named: str = tomllib.loads((root / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    if named.rstrip("/").lower() != home.rstrip("/").lower():
        yield f"pyproject.toml: the repository is {named}, this release comes from {home} (CONTRIBUTING.md, Releasing)"
    places = subprocess.run(
        ["git", "grep", "-l", EXAMPLE, "--", ":!tests", ":!infra/release", ":!CONTRIBUTING.md"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.split()
    for place in places:
        yield f"{place}: names {EXAMPLE}, which only stands for the repository's home"


def uncommitted(root: Path = ROOT) -> list[str]:
    """Return what a checkout has beside its commit."""
    found = subprocess.run(["git", "status", "--porcelain"], cwd=root, check=True, capture_output=True, text=True).stdout
    return found.splitlines()
