"""pytest's plugin that wakes one mutant after the other, each in a process forked from one that has collected all tests.

Reads `jobs.json`: a list of a mutant's name, its tests, and whether one file that kills is enough, `[name, {file: [nodeid]}, once]`. Of
each file tests run until one fails. Appends to `killed.jsonl` a line for each mutant and file: `{"mutant", "file", "by": nodeid or ""}`.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from infra.goprogress import cores

RESULTS = Path(os.environ["ANNEAL_COST"])
SIDE_BY_SIDE = cores()
LONGEST = 240.0
"""A test that has not ended by then kills its mutant: it goes round in a circle."""
_failed: list[str] = []


@functools.cache
def _jobs() -> list[tuple[str, dict[str, list[str]], bool]]:
    return [(name, files, once) for name, files, once in json.loads((RESULTS / "jobs.json").read_text())]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files that no mutant asks for."""
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    asked = {file for _, files, _ in _jobs() for file in files}
    return None if str(collection_path.relative_to(config.rootpath)) in asked else True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note who fails."""
    if report.failed:
        _failed.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Run the tests of each mutant in a fork, several side by side."""
    items = {item.nodeid: item for item in session.items}
    running: dict[int, str] = {}
    try:
        for name, files, once in [*_jobs(), ("", {}, False)]:
            while len(running) >= SIDE_BY_SIDE or (not name and running):
                _reap(running)
            if name:
                tried = {file: [items[test] for test in tests if test in items] for file, tests in files.items()}
                sys.stdout.flush()
                child = os.fork()
                if not child:
                    _in_child(session, name, tried, once)
                running[child] = name
    finally:  # after Ctrl-C
        for child in running:
            _end(child)
    return True


def _reap(running: dict[int, str]) -> None:
    time.sleep(0.05)
    for child, name in list(running.items()):
        at = RESULTS / "now" / str(child)
        late = at.exists() and time.time() - at.stat().st_mtime > LONGEST  # written when a test begins
        if late:
            os.kill(child, signal.SIGKILL)
        if os.waitpid(child, 0 if late else os.WNOHANG)[0]:
            del running[child]
            _end(child)
            if late:
                _say(name, at.read_text().partition("\n")[0].partition("::")[0], "a test that didn't end")
            at.unlink(missing_ok=True)


def _end(child: int) -> None:
    """Kill a mutant's process and what its tests have left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)


def _in_child(session: pytest.Session, mutant: str, files: Mapping[str, Sequence[pytest.Item]], once: bool) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    probe = sys.modules["handler.mutant_probe"]
    probe.awake = mutant  # type: ignore[attr-defined]  # the copy's module of the probe
    now = RESULTS / "now" / str(os.getpid())
    code = 1
    try:
        order = [(file, list(items)) for file, items in files.items() if items]
        for index, (file, items) in enumerate(order):
            after = order[index + 1][1][0] if index + 1 < len(order) else None
            _failed.clear()
            for place, item in enumerate(items):
                now.write_text(f"{item.nodeid}\n{mutant}")
                following = items[place + 1] if place + 1 < len(items) else after
                session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if _failed:
                    break
            _say(mutant, file, _failed[0] if _failed else "")
            if _failed and once:
                break
            if _failed:
                session._setupstate.teardown_exact(after)  # noqa: SLF001 - pytest's loop does it; the one that failed expected another of its file next
        code = 0
    finally:
        os._exit(code)


def _say(mutant: str, file: str, by: str) -> None:
    with (RESULTS / "killed.jsonl").open("a") as lines:
        lines.write(json.dumps({"mutant": mutant, "file": file, "by": by}) + "\n")
