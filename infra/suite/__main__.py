"""Measure the tests and print the table: `scripts/test --cost [PHASE...]`. All phases take hours; without one they run in this order.

A file of tests/unit or tests/repository is tried on every mutant, another one on those that no cheaper kind of file kills.

- record: one run of everything in a copy with sleeping mutants, on an idle machine: seconds by file, mutants by test
- pure: mutants against tests/unit and tests/repository
- rooms: the mutants that nothing pure has killed against the rest but tests/e2e
- e2e: the mutants that nothing else has killed against thirty files of tests/e2e each
- coverage: lines and branches by file
- table: what was measured, printed; seconds
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import coverage
import yaml

from infra.controlplane.build import cache
from infra.suite.choice import cheapest, killed, table
from infra.suite.results import LONGEST, NOTHING, Results, usable
from infra.suite.sites import chosen
from infra.suite.tiers import EVERY_TIER, WORKERS, interrupt
from infra.suite.tree import instrument

ROOT = Path(__file__).resolve().parents[2]
PROMISES = ROOT / "tests" / "promises.yaml"
E2E_FILES, E2E_TESTS = 30, 3
"""So many files of tests/e2e are tried on a mutant, and so many tests of each."""
PURE = ("tests/unit/", "tests/repository/")
WHOLE = ["-q", *EVERY_TIER]


class Measurement:
    """One checkout, its mutants and where results are."""

    def __init__(self, directory: Path) -> None:
        self.tree = directory / "tree"
        self.results = Results(directory / "results", ROOT)
        (self.results.directory / "now").mkdir(parents=True, exist_ok=True)
        self.mutants = {mutant.name: mutant for mutant in chosen(ROOT)}

    def record(self) -> None:
        """Run everything once."""
        for old in [*self.results.directory.glob("cost-*.json"), self.results.directory / "reached.tsv"]:
            old.unlink(missing_ok=True)
        self._instrument()
        self._pytest(self.tree, "infra.suite.recorder", [*WHOLE, *WORKERS, "tests"])

    def pure(self) -> None:
        """Try every mutant on the tests that need nothing but Python."""
        self._try(self.mutants, lambda file: file.startswith(PURE))

    def rooms(self) -> None:
        """Try what nothing pure kills on the tests of rooms, pages and the model: these cost more, so the gate needs none for the rest."""
        self._try(self._alive(PURE), lambda file: not file.startswith((*PURE, "tests/e2e/")))

    def e2e(self) -> None:
        """Try what nothing else kills on the whole handler: on the cheapest files that reach it, until one kills."""
        self._try(self._alive(("tests/",)), lambda file: file.startswith("tests/e2e/"), once=True)

    def coverage(self) -> None:
        """Count what only one file covers."""
        directory = self.results.directory / "coverage"
        shutil.rmtree(directory, ignore_errors=True)  # `combine` takes all that it finds
        directory.mkdir()
        data = directory / "data"
        self._pytest(
            ROOT, "infra.suite.coverage_by_file", [*WHOLE, *WORKERS, "tests"], by=["coverage", "run", "-m"], COVERAGE_FILE=str(data)
        )
        combine = [sys.executable, "-m", "coverage", "combine", "-q"]
        subprocess.run(combine, cwd=ROOT, env={**os.environ, "COVERAGE_FILE": str(data)}, check=True)
        (self.results.directory / "coverage.json").write_text(json.dumps(_alone(data)))

    def table(self) -> None:
        """Print what was measured, and the cheapest gate."""
        promises = {f"{page}: {says}": test for page, says, test in yaml.load(PROMISES.read_text(), yaml.CSafeLoader)}
        files = self.results.files(promises)
        dead = {name: str(mutant) for name, mutant in self.mutants.items() if name in killed(files)}
        kept = promises.keys() & killed(files)
        print(table(files, cheapest(files, set(dead), kept), dead, kept))
        reached, tried = self.results.reached(), {name for name, _ in self.results.tried()}
        survived = sorted(tried & self.mutants.keys() - dead.keys())
        missed = len(self.mutants.keys() - reached.keys())
        changed = self.results.changed()
        if changed:
            print(f"{len(changed)} files of tests have changed, moved or gone since they were recorded; anew: scripts/test --cost record")
        print(f"{len(self.mutants)} mutants: {len(dead)} killed, {len(survived)} survived, {missed} not reached")
        print(*(f"survived: {self.mutants[name]}" for name in survived), sep="\n")

    def _instrument(self) -> None:
        instrument(ROOT, self.tree, self.results.directory, list(self.mutants.values()))
        tests = (str(file.relative_to(ROOT)) for file in (ROOT / "tests").rglob("test_*.py"))
        self.results.begin([*tests, *(mutant.path for mutant in self.mutants.values())])

    def _alive(self, killers: tuple[str, ...]) -> list[str]:
        dead = {mutant for (mutant, file), by in self.results.tried().items() if by and file.startswith(killers)}
        return [name for name in self.mutants if name not in dead]

    def _try(self, mutants: Iterable[str], wanted: Callable[[str], bool], *, once: bool = False) -> None:
        tried, reached, costs = self.results.tried(), self.results.reached(), self.results.costs()
        jobs: list[tuple[str, dict[str, list[str]], bool]] = []
        for name in mutants:
            files = {file: tests for file, tests in reached.get(name, {}).items() if wanted(file) and tests}
            if once:
                cheap = sorted(files, key=lambda file: costs[file]["cpu"])[:E2E_FILES]
                files = {file: files[file][:E2E_TESTS] for file in cheap}
            files = {file: tests for file, tests in files.items() if (name, file) not in tried}
            if files:
                jobs.append((name, files, once))
        if not jobs:
            return
        asked: dict[str, set[str]] = {}
        for _, files, _ in jobs:
            for file, tests in files.items():
                asked.setdefault(file, set()).update(tests)
        controls = [(NOTHING, {file: [test for test in usable(costs[file]) if test in tests]}, False) for file, tests in asked.items()]
        # Controls first: Ctrl-C leaves no kill without its own.
        (self.results.directory / "jobs.json").write_text(json.dumps(controls + jobs))
        try:
            self._pytest(self.tree, "infra.suite.killing", [*WHOLE, f"--timeout={3 * LONGEST}", "tests"])
        finally:  # Ctrl-C too: the next time goes on from here
            self.results.keep(self.mutants)

    def _pytest(self, where: Path, plugin: str, options: list[str], *, by: Sequence[str] = (), **environ: str) -> None:
        command = [sys.executable, "-m", *by, "pytest", "-p", plugin, *options]
        process = subprocess.Popen(command, cwd=where, env={**os.environ, "ANNEAL_COST": str(self.results.directory), **environ})
        signal.signal(signal.SIGTERM, lambda *_: interrupt([process]))
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()
            raise SystemExit(130) from None
        if code not in (0, 1):  # tests that fail are left out
            sys.exit(f"{plugin}: pytest ended with {code}, so nothing is known of the rest; what was measured is kept: run it once more")


def _alone(data: Path) -> dict[str, int]:
    measured = coverage.CoverageData(str(data))
    measured.read()
    found: dict[str, int] = {}
    for file in measured.measured_files():
        by_arc: dict[tuple[int, int], set[str]] = {}
        for context in measured.measured_contexts() - {""}:
            measured.set_query_context(context)
            for arc in measured.arcs(file) or ():
                by_arc.setdefault(arc, set()).add(context)
        for contexts in by_arc.values():
            if len(contexts) == 1:
                only = next(iter(contexts))
                found[only] = found.get(only, 0) + 1
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the phases that were asked for, in order; print the table."""
    parser = argparse.ArgumentParser(prog="scripts/test --cost", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    phases = ("record", "pure", "rooms", "e2e", "coverage", "table")
    parser.add_argument("phase", nargs="*", choices=[*phases, []], metavar="PHASE", help="which to run; without one, all")
    asked = parser.parse_args(arguments).phase or phases
    measurement = Measurement(cache().parent / "cost" / hashlib.sha256(str(ROOT).encode()).hexdigest()[:8])
    with (measurement.results.directory / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sys.exit("this checkout is being measured already")
        for phase in phases:
            if phase in asked:
                getattr(measurement, phase)()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
