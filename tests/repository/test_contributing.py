"""CONTRIBUTING.md: its extension, carried out as it says on a copy of the code, works and is tested. Its layers are judged by the lint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from infra.house.pages import blocks
from infra.house.sources import ROOT
from tests.clone import clone_to

PAGE = ROOT / "CONTRIBUTING.md"
RAN = ("tests/unit/rollout/test_checks.py", "tests/unit/rollout/checks/test_address.py")


def extended(copy: Path) -> Path:
    """Take the four steps of the page in a copy of the code."""
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


def test_the_extension_passes_its_own_tests_and_those_of_all_rows_and_is_in_the_house_style(tmp_path: Path) -> None:
    copy = extended(clone_to(tmp_path / "clone"))
    style = "handler/rollout/checks", "tests/unit/rollout/checks"
    for command in (
        ["pytest", "-q", "-p", "no:cacheprovider", *RAN],  # one of them asks for a sample of each row
        ["ruff", "check", *style],
        ["ruff", "format", "--check", *style],
    ):
        done = subprocess.run([sys.executable, "-m", *command], cwd=copy, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]
