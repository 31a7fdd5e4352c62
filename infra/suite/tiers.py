"""Run a tier of the tests: those that wait on several workers, those of tests/unit beside them in plain processes. Standard library only.

    gate      what a merge must pass: no folder called `nightly`; every branch of the covered rooms
    all       everything
    nightly   what only `all` runs
    unit      what is quick of the gate's tests/unit, a share of the files for each of a few processes

The last line says what passed, failed and was skipped, and how long it took. Handing out single tests costs more than most unit tests take.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

from infra.goprogress import cores

CORES = cores()
UNIT, NIGHT = Path("tests/unit"), "nightly"
COVERED = ("plan", "triggers")
"""The rooms of which every branch is promised."""
SLOW = "\npytestmark = pytest.mark.slow\n"
EVERY_TIER = ("-o", "norecursedirs=.* __pycache__")
WORKERS = ("-n", str(3 * CORES), "--dist", "loadfile", "--no-loadscope-reorder")
"""More than cores, for most of the time tests of the whole wait; those come first, so that small files fill the end."""
TRACED = ("coverage", "run", "--source=" + ",".join(f"handler/{room}" for room in COVERED), "-m")


def commands(tier: str) -> list[list[str]]:
    """Return what to run side by side, as words behind `python -m`; the first one shows what it does."""
    if tier == "unit":
        return [["pytest", "-q", "-m", "not slow", *share] for share in shares(unit_files(tier), 2 * CORES)]
    if tier == NIGHT:
        return [["pytest", *WORKERS, *EVERY_TIER, "--durations=15", "--durations-min=1", *sorted(map(str, Path("tests").rglob(NIGHT)))]]
    every = EVERY_TIER if tier == "all" else ()
    covered = [str(UNIT / room) for room in COVERED]
    return [
        ["pytest", *WORKERS, *every, "--durations=15", "--durations-min=1", f"--ignore={UNIT}"],
        [*TRACED, "pytest", "-q", *every, *covered],
        *(["pytest", "-q", *every, *share] for share in shares([file for file in unit_files(tier) if file.parts[2] not in COVERED], CORES)),
    ]


def unit_files(tier: str) -> list[Path]:
    """Return the tier's files of tests/unit; of the quick ones those that aren't slow as a whole, for importing takes time, too."""
    found = (path for path in UNIT.rglob("test_*.py") if tier == "all" or NIGHT not in path.parts)
    return [path for path in found if tier != "unit" or SLOW not in path.read_text()]


def shares(files: Sequence[Path], count: int) -> list[list[str]]:
    """Return files in lists of about the same number of bytes: the largest go first, to the emptiest."""
    made: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for path in sorted(files, key=lambda path: -path.stat().st_size):
        index = min(range(count), key=lambda place: made[place][0])
        made[index] = (made[index][0] + path.stat().st_size, [*made[index][1], str(path)])
    return [sorted(share) for _, share in made if share]


def counted(reports: Sequence[Path], codes: Sequence[int]) -> dict[str, int]:
    """Return how many have passed, failed and been skipped, by pytest's reports; a process that failed without a failed test is one."""
    found = {"passed": 0, "failed": 0, "skipped": 0}
    for report, code in zip(reports, codes, strict=True):
        suite = next(ElementTree.parse(report).iter("testsuite")).attrib if report.exists() else {"tests": "0"}  # noqa: S314 - pytest's own
        failed, skipped = int(suite.get("failures", 0)) + int(suite.get("errors", 0)), int(suite.get("skipped", 0))
        found["failed"] += failed or bool(code)
        found["skipped"] += skipped
        found["passed"] += max(int(suite["tests"]) - failed - skipped, 0)
    return found


def main(tier: str, before: str = "0") -> int:
    """Run the tier; return 0 if all has passed, 130 after Ctrl-C. `before`: the seconds that lint and builds have taken already."""
    began = time.monotonic() - float(before)
    with tempfile.TemporaryDirectory() as place:
        work, ordered = Path(place), commands(tier)
        reports, logs = ([work / f"{number}.{kind}" for number in range(len(ordered))] for kind in ("xml", "log"))
        running: list[subprocess.Popen[bytes]] = []
        signal.signal(signal.SIGTERM, lambda *_: interrupt(running))
        try:
            for command, report, path in zip(ordered, reports, logs, strict=True):
                line = [sys.executable, "-m", *command, f"--junitxml={report}"]
                with path.open("wb") as log:
                    output = log if running or tier == "unit" else None
                    running.append(subprocess.Popen(line, stdout=output, stderr=output, env=_environ(work)))
            codes = [_ended(process, log) for process, log in zip(running, logs, strict=True)]
        except KeyboardInterrupt:
            for process in running:
                process.wait()
            return 130
        found = counted(reports, codes)
        if tier in ("gate", "all") and not found["failed"]:
            found["failed"] += not _is_covered(work)
        print(", ".join(f"{count} {what}" for what, count in found.items()) + f", {time.monotonic() - began:.0f} s")
        return 1 if found["failed"] else 0


def _environ(work: Path) -> dict[str, str]:
    return {**os.environ, "COVERAGE_FILE": str(work / "coverage")}


def interrupt(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Do as after Ctrl-C, which a terminal sends to all: they stop the servers that they have started."""
    for process in running:
        process.send_signal(signal.SIGINT)
    raise KeyboardInterrupt


def _ended(process: subprocess.Popen[bytes], log: Path) -> int:
    """Wait for a process and print what it has said; one that a signal has ended is named."""
    code = process.wait()
    sys.stdout.write(log.read_text())
    sys.stdout.flush()
    if code < 0:
        print(f"a process of the tests, whose output is above, was ended by signal {-code}")
    return code


def _is_covered(work: Path) -> bool:
    """Let coverage judge the covered rooms: it names each line and branch that no test runs."""
    coverage = [sys.executable, "-m", "coverage"]
    steps = (["combine", "-q"], ["report", "-m", "--skip-covered", "--fail-under=100"])
    return all(subprocess.run([*coverage, *step], env=_environ(work), check=False).returncode == 0 for step in steps)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
