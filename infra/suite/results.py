"""What was measured, kept from day to day: a mutant is tried again on a file of tests when one of the two has changed."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from infra.suite.choice import TestFile
from infra.suite.sites import Mutant

MOST = 40
"""So many tests of a file are tried on a mutant, evenly of those that reach it; a file that kills does it with one of the first."""
LONGEST = 20.0
"""Seconds in the record: a test that took longer is tried on no mutant, for it looks like one that goes round in a circle."""
NOTHING = "nothing"
"""The mutant that changes nothing: a file that fails with it, in the order in which mutants are tried, proves nothing."""


class Results:
    """The directory of one checkout's results."""

    def __init__(self, directory: Path, root: Path) -> None:
        self.directory = directory
        self.root = root
        self._digests: dict[str, str] = {}

    def costs(self) -> dict[str, dict[str, Any]]:
        """Return what the recorder has seen, by file that is still there."""
        found: dict[str, dict[str, Any]] = {}
        for report in sorted(self.directory.glob("cost-*.json")):
            for file, cost in json.loads(report.read_text()).items():
                if not (self.root / file).exists():
                    continue
                known = found.setdefault(file, cost)
                if known is not cost:  # every worker has imported it, one has run it
                    found[file] = (cost if cost["tests"] else known) | {"importing": min(cost["importing"], known["importing"])}
        return found

    def reached(self) -> dict[str, dict[str, list[str]]]:
        """Return, by mutant, which tests of which files reach it, in the order of the record; what fails without a mutant is left out.

        What a started process reaches may be asked for by another test of its file than the one that started it: then all of them count.
        """
        costs = self.costs()
        found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        for line in (self.directory / "reached.tsv").read_text().splitlines():
            mutant, _, test = line.partition("\t")
            file = test.lstrip("*").partition("::")[0]
            tests = costs.get(file, {}).get("seconds", {})
            found[mutant][file].update(tests if test.startswith("*") else {test} & tests.keys())
        return {
            mutant: {file: _some([test for test in usable(costs[file]) if test in tests]) for file, tests in files.items() if file in costs}
            for mutant, files in found.items()
        }

    def tried(self) -> dict[tuple[str, str], str]:
        """Return, by mutant and file, the test that killed it, or nothing; what has changed since is not among them."""
        lines = self.directory / "tried.jsonl"
        if not lines.exists():
            return {}
        rows = [json.loads(line) for line in lines.read_text().splitlines()]
        return {(row["mutant"], row["file"]): row["by"] for row in rows if row["digest"] == self.digest(row["file"], row["path"])}

    def keep(self, mutants: Mapping[str, Mutant]) -> None:
        """Add what a run of `killing` has left, but for files that fail with `NOTHING`, too."""
        left, measured = self.directory / "killed.jsonl", json.loads((self.directory / "digests.json").read_text())
        with (self.directory / "tried.jsonl").open("a") as lines:
            rows = [json.loads(line) for line in left.read_text().splitlines()] if left.exists() else []
            false = {row["file"] for row in rows if row["mutant"] == NOTHING and row["by"]}
            for row in rows:
                if row["mutant"] == NOTHING or row["file"] in false:
                    continue
                path = mutants[row["mutant"]].path
                lines.write(json.dumps(row | {"path": path, "digest": _digest(measured, self.root, row["file"], path)}) + "\n")
        left.unlink(missing_ok=True)

    def digest(self, file: str, path: str) -> str:
        """Return a digest of a file of tests and a file of the product, as they are in the checkout."""
        return _digest(self._digests, self.root, file, path)

    def begin(self, files: Iterable[str]) -> None:
        """Remember how these files of the checkout are: what is measured in its copy is of them, whatever happens meanwhile."""
        known: dict[str, str] = {}
        for file in files:
            _digest(known, self.root, file, file)
        (self.directory / "digests.json").write_text(json.dumps(known))

    def changed(self) -> list[str]:
        """Return the files of tests that have changed since they were recorded, or are gone."""
        measured: dict[str, str] = json.loads((self.directory / "digests.json").read_text())
        now: dict[str, str] = {}
        for file in measured:
            _digest(now, self.root, file)
        return [file for file, digest in measured.items() if file.startswith("tests/") and digest != now[file]]

    def alone(self) -> dict[str, int]:
        """Return, by file of tests, how many lines and branches of the product no other file runs; it must have been measured."""
        data = self.directory / "coverage.json"
        if not data.exists():
            sys.exit("lines and branches haven't been counted: scripts/test --cost coverage table")
        counted: dict[str, int] = json.loads(data.read_text())
        return counted

    def files(self, promises: Mapping[str, str]) -> list[TestFile]:
        """Return every file with what was measured of it; `promises` are sentences with the test of each."""
        alone = self.alone()
        made = {
            file: TestFile(file, cost["cpu"] + cost["importing"], cost["wall"], cost["tests"], alone.get(file, 0))
            for file, cost in self.costs().items()
            if cost["tests"]
        }
        for (mutant, file), by in self.tried().items():
            if by and file in made:
                made[file].kills.add(mutant)
        for promise, test in promises.items():
            file = test.partition("::")[0]
            if file in made:
                made[file].kills.add(promise)
        return list(made.values())


def _digest(known: dict[str, str], root: Path, *paths: str) -> str:
    for path in paths:
        if path not in known:
            known[path] = hashlib.sha256((root / path).read_bytes()).hexdigest() if (root / path).exists() else ""
    return hashlib.sha256("".join(known[path] for path in paths).encode()).hexdigest()[:16]


def usable(cost: Mapping[str, Any]) -> list[str]:
    """Return the tests of a recorded file that may judge a mutant, in the order in which they ran."""
    return [test for test, seconds in cost["seconds"].items() if test not in cost["failed"] and seconds <= LONGEST]


def _some(tests: list[str]) -> list[str]:
    return [tests[index * len(tests) // min(len(tests), MOST)] for index in range(min(len(tests), MOST))]
