"""The wheel and the sdist: named as on the index, with all that is needed and nothing else."""

from __future__ import annotations

import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import handler
from infra.release.build import absolute

ROOT = Path(__file__).resolve().parents[3]
NAME = f"anneal_gitops-{handler.__version__}"
INFO = f"{NAME}.dist-info"
BESIDE = {"PKG-INFO", "pyproject.toml", "setup.cfg", "requirements.txt", "LICENSE", "README.md"}
"""What an sdist has beside the code: what it is built from, and what says what it is."""


@pytest.fixture(scope="module")
def packed(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def metadata(packed: dict[str, bytes]) -> Message:
    return Parser().parsestr(packed[f"{INFO}/METADATA"].decode())


def code() -> set[str]:
    """Return every file of the code."""
    found = (path for path in (ROOT / "handler").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in found}


def test_the_wheel_holds_the_code_and_the_licence_alone(packed: dict[str, bytes]) -> None:
    ours = {name for name in packed if not name.startswith(f"{INFO}/")}
    assert ours == code()
    assert {"handler/config/schema.json", "handler/web/openapi.yaml", "handler/py.typed"} <= ours
    beside = {name.removeprefix(f"{INFO}/") for name in set(packed) - ours}
    assert beside == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "top_level.txt", "licenses/LICENSE"}


def test_the_sdist_holds_what_the_wheel_is_built_from_alone(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.removeprefix(f"{NAME}/") for member in archive if member.isfile()}
    assert {name for name in names if not name.startswith("anneal_gitops.egg-info/")} == code() | BESIDE


def test_the_command_keeps_its_name(packed: dict[str, bytes]) -> None:
    assert packed[f"{INFO}/entry_points.txt"].decode().split() == ["[console_scripts]", "anneal", "=", "handler.cli:main"]


def test_the_index_is_shown_what_a_stranger_asks_for(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("anneal-gitops", handler.__version__)
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    home = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    assert metadata.get_payload() == absolute((ROOT / "README.md").read_text(), home)
    assert metadata["Description-Content-Type"] == "text/markdown"
    chart = yaml.safe_load((ROOT / "infra" / "kubernetes" / "chart" / "Chart.yaml").read_text())
    assert metadata["Summary"] == chart["description"]
    labels = {url.partition(", ")[0] for url in metadata.get_all("Project-URL", [])}
    assert labels == {"Repository", "Documentation", "Changelog", "Issues", "Security"}


def test_links_and_pictures_of_the_index_lead_to_the_tag() -> None:
    given = '[a](docs/a.md#b) [b](#install) [c](https://example.com/) [![d](docs/d.svg)](docs/d.txt) <img src="docs/e.svg"> <a href="https://x">'
    home = "https://git.example.org/teams/anneal"
    blob, raw = f"{home}/blob/v{handler.__version__}/docs", f"{home}/raw/v{handler.__version__}/docs"
    wanted = f'[a]({blob}/a.md#b) [b](#install) [c](https://example.com/) [![d]({raw}/d.svg)]({blob}/d.txt) <img src="{raw}/e.svg"> <a href="https://x">'
    assert absolute(given, home) == wanted


def test_the_wheel_asks_for_what_requirements_ask_for(metadata: Message) -> None:
    lines = (line.partition("#")[0].strip() for line in (ROOT / "requirements.txt").read_text().splitlines())
    asked = {str(Requirement(line)) for line in lines if line}
    assert {str(Requirement(each)) for each in metadata.get_all("Requires-Dist", [])} == asked
