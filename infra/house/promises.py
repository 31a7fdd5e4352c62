"""Which test guards which sentence: `tests/promises.yaml` names pages, sentences and tests that are there."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from infra.house.sources import ROOT, Fault

TABLE = "tests/promises.yaml"
LINT = "scripts/lint"
"""Guards what a rule of this package guards."""


def of_table() -> Iterator[Fault]:
    """Yield the rows whose sentence or test isn't there any more, or whose test runs at night only."""
    pages: dict[str, str] = {}
    tests: dict[str, set[str]] = {LINT: {""}}
    table = (ROOT / TABLE).read_text()
    lines = (line for line, text in enumerate(table.splitlines(), 1) if text.startswith("- "))
    for line, (page, says, test) in zip(lines, yaml.load(table, yaml.CSafeLoader), strict=True):
        if page not in pages:
            pages[page] = " ".join((ROOT / page).read_text().split())
        if says not in pages[page]:
            yield Fault(TABLE, line, f"{page} doesn't say so any more: {says}: write what it says now, or drop the row with the promise")
        file, _, function = test.partition("::")
        if "/nightly/" in file:
            yield Fault(TABLE, line, f"{test} runs at night: a promise has a test in the gate; name that")
        if file not in tests:
            tests[file] = {*re.findall(r"^def (test_\w+)\(", (ROOT / file).read_text(), re.MULTILINE)} if (ROOT / file).exists() else set()
        if function not in tests[file]:
            yield Fault(TABLE, line, f"{test} isn't there: name the test that fails when the sentence is wrong, or write it")
