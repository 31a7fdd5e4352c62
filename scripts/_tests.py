"""Run a tier of the tests: those that wait on several workers, those of tests/unit beside them in plain processes. Standard library only.

    gate      what a merge must pass: no folder called `nightly`; every branch of the pure rooms
    all       everything
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

CORES = os.cpu_count() or 1
UNIT, NIGHT = Path("tests/unit"), "nightly"
PURE = ("plan", "triggers")
"""The rooms of which every branch is promised."""
EVERY_TIER = ("-o", "norecursedirs=.* __pycache__")
WORKERS = ("-n", str(3 * CORES), "--dist", "loadfile", "--no-loadscope-reorder")
"""More than cores, for most of the time tests of the whole wait; those come first, so that small files fill the end."""
TRACED = ("coverage", "run", "--source=" + ",".join(f"handler/{room}" for room in PURE), "-m")


def commands(tier: str) -> list[list[str]]:
    """Return what to run side by side, as words behind `python -m`; the first one shows what it does."""
    if tier == "unit":
        return [["pytest", "-q", "-m", "not slow", *share] for share in shares(unit_files(tier), 2 * CORES)]
    every = EVERY_TIER if tier == "all" else ()
    pure = [str(UNIT / room) for room in PURE]
    return [
        ["pytest", *WORKERS, *every, "--durations=15", "--durations-min=1", f"--ignore={UNIT}"],
        [*TRACED, "pytest", "-q", *every, *pure],
        *(["pytest", "-q", *every, *share] for share in shares([file for file in unit_files(tier) if file.parts[2] not in PURE], CORES)),
    ]


def unit_files(tier: str) -> list[Path]:
    """Return the tier's files of tests/unit."""
    return [path for path in UNIT.rglob("test_*.py") if tier == "all" or NIGHT not in path.parts]


def shares(files: Sequence[Path], count: int) -> list[list[str]]:
    """Return files in lists of about the same number of bytes: the largest go first, to the emptiest."""
    made: list[tuple[int, list[str]]] = [(0, []) for _ in range(count)]
    for path in sorted(files, key=lambda path: -path.stat().st_size):
        index = min(range(count), key=lambda place: made[place][0])
        made[index] = (made[index][0] + path.stat().st_size, [*made[index][1], str(path)])
    return [sorted(share) for _, share in made if share]


def counted(reports: Sequence[Path]) -> dict[str, int]:
    """Return how many have passed, failed and been skipped, by what pytest has written; one that has written nothing has failed."""
    found = {"passed": 0, "failed": 0, "skipped": 0}
    for report in reports:
        suite = next(ElementTree.parse(report).iter("testsuite")).attrib if report.exists() else {"errors": "1", "tests": "1"}  # noqa: S314 - pytest's own
        failed, skipped = int(suite.get("failures", 0)) + int(suite["errors"]), int(suite.get("skipped", 0))
        found["failed"] += failed
        found["skipped"] += skipped
        found["passed"] += max(int(suite["tests"]) - failed - skipped, 0)
    return found


def main(tier: str) -> int:
    """Run the tier; return 0 if all has passed, 130 after Ctrl-C."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as place:
        work = Path(place)
        reports, logs, running = [], [], []
        for number, command in enumerate(commands(tier)):
            reports.append(work / f"{number}.xml")
            logs.append(work / f"{number}.log")
            line = [sys.executable, "-m", *command, f"--junitxml={reports[-1]}"]
            with logs[-1].open("wb") as log:
                output = None if number == 0 and tier != "unit" else log
                running.append(
                    subprocess.Popen(line, stdout=output, stderr=output, env={**os.environ, "COVERAGE_FILE": str(work / "coverage")})
                )
        signal.signal(signal.SIGTERM, lambda *_: _interrupt(running))
        codes = _ended(running, logs)
        if 130 in codes or -signal.SIGINT in codes:
            return 130
        failed = [code for code in codes if code]
        if tier != "unit" and not failed:
            failed += [code for code in _covered(work) if code]
        found = counted(reports)
        print(", ".join(f"{count} {what}" for what, count in found.items()) + f", {time.monotonic() - began:.0f} s")
        return 1 if failed or found["failed"] else 0


def _interrupt(running: Sequence[subprocess.Popen[bytes]]) -> None:
    """Have all end as after Ctrl-C: they stop the servers that they have started."""
    for process in running:
        process.send_signal(signal.SIGINT)


def _ended(running: Sequence[subprocess.Popen[bytes]], logs: Sequence[Path]) -> list[int]:
    """Wait for all and print what each has said; one that a signal has ended is named."""
    codes = []
    for process, log in zip(running, logs, strict=True):
        try:
            codes.append(process.wait())
        except KeyboardInterrupt:  # the terminal has sent it to them, too
            return [130 for other in running if other.wait() or True]
        sys.stdout.write(log.read_text())
        sys.stdout.flush()
        if codes[-1] < 0:
            print(f"a process of the tests, whose output is above, was ended by signal {-codes[-1]}")
    return codes


def _covered(work: Path) -> list[int]:
    """Let coverage judge the pure rooms: it names each line and branch that no test runs."""
    environ = {**os.environ, "COVERAGE_FILE": str(work / "coverage")}
    coverage = [sys.executable, "-m", "coverage"]
    subprocess.run([*coverage, "combine", "-q"], env=environ, check=True)
    return [subprocess.run([*coverage, "report", "-m", "--skip-covered", "--fail-under=100"], env=environ, check=False).returncode]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
