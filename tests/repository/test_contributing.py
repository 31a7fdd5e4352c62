"""CONTRIBUTING.md: its layers are the law's, and its extension, carried out as it says on a copy of the code, works and is tested."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from handler.rollout.checks import CHECKS
from tests.clone import clone_to
from tests.layers import LAYERS, PURE
from tests.repository.pages import ROOT, blocks

PAGE = ROOT / "CONTRIBUTING.md"
CHECK = "addressAssigned"


def test_the_layers_are_those_of_the_law() -> None:
    _, _, after = PAGE.read_text().partition("<!-- layers -->\n\n```text\n")
    assert tuple(set(line.split(", ")) for line in after.partition("```")[0].splitlines()) == LAYERS
    assert {"model", "health", "rollout", "plan"} == PURE


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code after the four steps."""
    copy = clone_to(tmp_path_factory.mktemp("contributing") / "clone")
    file, row, test = blocks(PAGE, "python")
    (sample,) = blocks(PAGE, "yaml")
    checks, tests = copy / "handler" / "rollout" / "checks", copy / "tests" / "unit" / "rollout" / "checks"
    (checks / "address.py").write_text(file)
    table = checks / "__init__.py"
    imported, _, added = row.partition("\n\n")
    first = "from handler.rollout.checks.fields"
    assert first in table.read_text()
    table.write_text(table.read_text().replace(first, f"{imported}\n{first}").replace("= {\n", f"= {{\n{added}", 1))
    (tests / "samples.yaml").write_text((tests / "samples.yaml").read_text() + sample)
    (tests / "test_address.py").write_text(test)
    return copy


def test_the_extension_of_the_page_is_not_there_yet() -> None:
    assert CHECK not in CHECKS


def test_the_extension_passes_its_own_tests_and_those_of_all_rows(extended: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "tests/unit/rollout", "-k", f"{CHECK} or test_address"]
    done = subprocess.run(command, cwd=extended, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    passed = [line for line in done.stdout.splitlines() if " PASSED" in line]
    assert any("test_address.py::" in line for line in passed)
    assert any(f"test_a_sample_passes_and_another_object_waits[{CHECK}]" in line for line in passed)


@pytest.mark.parametrize("step", [("check",), ("format", "--check")])
def test_the_extension_is_in_the_house_style(step: tuple[str, ...], extended: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *step, "handler/rollout", "tests/unit/rollout"], cwd=extended, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stdout.decode()
