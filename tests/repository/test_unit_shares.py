"""`scripts/test unit`: its shares hold every file once, and a process that fails, or is killed, fails the whole."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "_unit.py"
shares = runpy.run_path(str(SCRIPT))["shares"]


def test_shares_are_about_equal_and_lose_no_file() -> None:
    made = shares([("a", 5), ("b", 1), ("c", 3), ("d", 1)], 2)
    assert made == [["a"], ["c", "b", "d"]]
    assert shares([("a", 5)], 4) == [["a"]]


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("assert True", 0, "1 passed"),
        ("assert False", 1, "1 failed"),
        ("os.kill(os.getpid(), 9)", 1, "was ended by signal 9"),
    ],
)
def test_a_share_that_fails_or_is_killed_fails_the_whole(tmp_path: Path, body: str, code: int, said: str) -> None:
    tests = tmp_path / "tests" / "unit"
    tests.mkdir(parents=True)
    (tests / "test_good.py").write_text("def test_good():\n    pass\n" + "# long\n" * 20)
    (tests / "test_other.py").write_text(f"import os\n\n\ndef test_other():\n    {body}\n")
    environ = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run([sys.executable, SCRIPT], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    assert (done.returncode, said in done.stdout) == (code, True), done.stdout
