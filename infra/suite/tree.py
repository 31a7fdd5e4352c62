"""A copy of the checkout in which each mutant sleeps behind a switch."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from infra.suite.sites import Mutant

PROBE = "handler/mutant_probe.py"


def instrument(root: Path, copy: Path, results: Path, mutants: Sequence[Mutant]) -> None:
    """Make `copy` anew: what git lists of `root`, a commit of its own, every mutant beside what it replaces.

    Args:
        root: The checkout, with its `.venv`.
        copy: The directory to make; what was there goes.
        results: Where the probe writes.
        mutants: Places that don't lie in one another.
    """
    shutil.rmtree(copy, ignore_errors=True)
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True)
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).exists():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    (copy / ".venv").symlink_to(root / ".venv")
    for path in {mutant.path for mutant in mutants}:
        (copy / path).write_bytes(_switched((copy / path).read_bytes(), [mutant for mutant in mutants if mutant.path == path]))
    (copy / PROBE).write_text((root / "infra/suite/probe.py").read_text().replace("@RESULTS@", str(results)))
    with (copy / "handler/__init__.py").open("a") as module:
        module.write("\nfrom handler import mutant_probe  # noqa: E402, F401\n")
    who = ["-c", "user.name=cost", "-c", "user.email=cost@example.com"]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], [*who, "commit", "-qm", "mutants"]):
        subprocess.run(["git", *command], cwd=copy, check=True)


def _switched(source: bytes, mutants: Sequence[Mutant]) -> bytes:
    for mutant in sorted(mutants, key=lambda mutant: mutant.span, reverse=True):
        first, end = mutant.span
        switch = f"(({mutant.changed}) if _mutant('{mutant.name}') else (".encode()
        source = source[:first] + switch + source[first:end] + b"))" + source[end:]
    return source
