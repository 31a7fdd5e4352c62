"""The rows of the command line, as whole processes from their start to their end: help, and `apply -f` beside kubectl, and beside kapp.

Bytecode is compiled by the first process of each kind, which isn't counted, as on a used machine.
"""

from __future__ import annotations

import copy
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from handler.cli.group import COMMANDS
from infra.bench.bed import Bed
from infra.bench.objects import as_files, mixed
from infra.bench.rows import Row, median, timed
from infra.peers import build

COUNT = 500
_ROUNDS, _TIMES = 3, 7
_ROOT = Path(__file__).resolve().parents[2]
_SHOWN = (("--help",), ("--version",), ("completion", "bash"), *((name, "--help") for name in COMMANDS))


@dataclass(slots=True)
class _Tool:
    """One tool that applies a directory. `apply(directory, namespace)`; `times`: what it took, by what was asked of it."""

    apply: Callable[[Path, str], object]
    times: dict[str, list[float]] = field(default_factory=dict)

    def measure(self, what: str, directory: Path, namespace: str) -> None:
        """Apply, and note how long it took."""
        self.times.setdefault(what, []).append(timed(lambda: self.apply(directory, namespace))[0])

    def took(self, what: str) -> float:
        """Return the median, in seconds."""
        return statistics.median(self.times[what])


def cli(bed: Bed, *, peers: bool) -> Iterator[Row]:
    """Help of every command; then 500 objects for the first time, unchanged, and with one changed. `peers`: beside kapp, too."""
    yield _shown(bed)
    tools = {"anneal": _Tool(partial(_anneal, bed)), "kubectl": _Tool(partial(_kubectl, bed))}
    if peers:
        tools["kapp"] = _Tool(partial(_kapp, bed, build.kapp()))
    for _ in range(_ROUNDS):
        for tool in tools.values():
            _rounds(bed, tool)
    yield _row(tools, "nothing changed", 0.6)
    yield _row(tools, "one changed", 0.65)
    yield from _first(tools)


def _shown(bed: Bed) -> Row:
    """Show every command, and find the slowest."""
    _run("--help")
    times = {" ".join(arguments): median(partial(_run, *arguments), 3) for arguments in _SHOWN}
    slowest = max(times, key=lambda each: times[each])
    kubectl = median(partial(bed.kubectl, "apply", "--help"), 3)
    details = {"slowest": slowest, "apply --help s": times["apply --help"], "kubectl apply --help s": kubectl}
    return Row("help, version and completion, the slowest whole process", times[slowest], 0.2, "s", details=details)


def _rounds(bed: Bed, tool: _Tool) -> None:
    """Apply a directory of its own for the first time, unchanged, and with one object changed."""
    namespace = bed.namespace()
    bodies = mixed(COUNT, namespace)
    directory = bed.files(bodies)
    tool.measure("first", directory, namespace)
    tool.apply(directory, namespace)
    for number in range(_TIMES):
        tool.measure("nothing changed", directory, namespace)
        changed = copy.deepcopy(bodies[0])
        changed["data"]["key-0"] = f"changed {number}"
        for name, text in as_files([changed]).items():
            (directory / name).write_text(text)
        tool.measure("one changed", directory, namespace)


def _row(tools: dict[str, _Tool], what: str, budget: float) -> Row:
    details = {f"{name} s": tool.took(what) for name, tool in tools.items() if name != "anneal"}
    return Row(f"apply -f of {COUNT} objects as a whole process, {what}", tools["anneal"].took(what), budget, "s", details=details)


def _first(tools: dict[str, _Tool]) -> Iterator[Row]:
    """The first apply beside each other tool: none of them validates first, so Anneal doesn't, either."""
    ours = tools["anneal"].took("first")
    for name in tools.keys() - {"anneal"}:
        theirs = tools[name].took("first")
        what = f"first apply -f of {COUNT} objects as a whole process, validate: none"
        yield Row(what, ours / theirs, 1.0, f"x {name}'s time", details={"s": ours, f"{name} s": theirs})


def _anneal(bed: Bed, directory: Path, namespace: str) -> None:
    flags = ("--kubeconfig", str(bed.kubeconfig), "--name", namespace, "-n", namespace, "--validate", "none", "-y")
    _run("apply", "-f", str(directory), *flags)


def _run(*arguments: str) -> None:
    """Run `anneal` as `scripts/anneal` does."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-P", "-m", "handler", *arguments]
    subprocess.run(command, check=True, capture_output=True, env={**environment, "PYTHONPATH": str(_ROOT)})


def _kubectl(bed: Bed, directory: Path, namespace: str) -> None:
    bed.kubectl("apply", "--server-side", "-n", namespace, "-f", str(directory))


def _kapp(bed: Bed, program: Path, directory: Path, namespace: str) -> None:
    """Deploy by kapp, which waits for nothing here, as the others don't."""
    flags = ("--kubeconfig", str(bed.kubeconfig), "--yes", "--wait=false")
    subprocess.run([str(program), "deploy", "-a", "bench", "-n", namespace, "-f", str(directory), *flags], check=True, capture_output=True)
