"""Enforce the coverage that the tests promise: all lines together, and every branch of the pure rooms.

Reads the report of `coverage json`. A room that isn't there yet promises nothing.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

LINES = 90.0
EVERY_BRANCH = ("handler/plan/", "handler/triggers/")


def failures(report: dict[str, Any]) -> list[str]:
    """Return what falls short: the total of lines in percent, and each place of the pure rooms that no test reaches."""
    found = []
    covered = percent_of_lines(report)
    if covered < LINES:
        found.append(f"coverage: {covered:.1f} % of lines, at least {LINES:.0f} % are promised")
    for path, measured in sorted(report["files"].items()):
        if not path.startswith(EVERY_BRANCH):
            continue
        found += [f"{path}:{line}: no test runs this line" for line in measured["missing_lines"]]
        found += [
            f"{path}:{start}: no test goes from here to {'the end' if end < 0 else f'line {end}'}"
            for start, end in measured["missing_branches"]
        ]
    return found


def percent_of_lines(report: dict[str, Any]) -> float:
    """Return the share of executed lines."""
    totals = report["totals"]
    return 100.0 * int(totals["covered_lines"]) / max(int(totals["num_statements"]), 1)


def worst(report: dict[str, Any], count: int = 8) -> list[str]:
    """Return the files with the most lines that no test runs."""
    files = sorted(report["files"].items(), key=lambda item: -len(item[1]["missing_lines"]))
    return [f"  {len(measured['missing_lines']):4} lines missed  {path}" for path, measured in files[:count] if measured["missing_lines"]]


def main(path: str) -> int:
    """Print the verdict; 1 when a promise is broken."""
    report = json.loads(Path(path).read_text())
    found = failures(report)
    print(f"coverage: {percent_of_lines(report):.1f} % of lines", *worst(report), *found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
