"""The rows of memory: all processes of an idle `anneal serve`, and its worker after thousands of small pushes.

Private and proportional: a page that several processes share counts once altogether (PSS, see proc(5)).
"""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from infra.bench.bed import Bed
from infra.bench.door_rows import Server, signed
from infra.bench.many_rows import configuration, processes
from infra.bench.rows import Row

_TARGETS, _PUSHES, _ROUNDS = 30, 3000, 6
_SETTLED = 20.0
"""Seconds after which a server without requests has come to rest."""
_LONGEST = 120.0
"""Seconds until a round of pushes must have been applied."""
_MIB = 1024.0


@dataclass(frozen=True, slots=True)
class _Repository:
    """`branch`: the file that says where it stands; `shas`: its commits, the oldest first."""

    branch: Path
    url: str
    shas: list[str]


def idle(bed: Bed) -> Iterator[Row]:
    """All processes of a server with 30 targets that have run once, and that is left alone."""
    repositories = [_repository(bed, 1) for _ in range(_TARGETS)]
    with Server(bed.directory, json.dumps(_configured(bed, repositories))) as server:
        _wait_for_runs(server, _TARGETS)
        time.sleep(_SETTLED)
        each = {f"{name} {pid}": pss(pid) for name, pid in all_of(server.pid)}
    yield Row("all processes of an idle `anneal serve`, PSS", sum(each.values()), 110, "MB", details={"processes": len(each), **each})


def pushes(bed: Bed) -> Iterator[Row]:
    """The worker after 3,000 pushes, each of one small change, of 30 targets in a repository each."""
    rounds = _PUSHES // _TARGETS
    repositories = [_repository(bed, rounds + 1) for _ in range(_TARGETS)]
    figures = {}
    with Server(bed.directory, json.dumps(_configured(bed, repositories))) as server, ThreadPoolExecutor(4) as pool:
        _wait_for_runs(server, _TARGETS)
        worker = processes(server.pid)["worker"]
        figures["MB at first"] = pss(worker)
        for turn in range(1, rounds + 1):
            list(pool.map(partial(_push, server.port, turn=turn), repositories))
            _wait_for_runs(server, _TARGETS * (turn + 1))
            if turn * _ROUNDS % rounds == 0:
                figures[f"MB after {turn * _TARGETS:,}"] = pss(worker)
    measured = figures[f"MB after {_PUSHES:,}"]
    kept = (measured - figures["MB at first"]) * _MIB / _PUSHES
    yield Row(
        f"worker after {_PUSHES:,} small pushes of {_TARGETS} targets, PSS", measured, 70, "MB", details={"kB a push": kept, **figures}
    )


def pss(pid: int) -> float:
    """Return a process's proportional set size, in MB."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1]) / _MIB


def all_of(pid: int) -> Iterator[tuple[str, int]]:
    """Yield name and id of a process and of all below it."""
    yield Path(f"/proc/{pid}/comm").read_text().strip(), pid
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        yield from all_of(int(child))


def _configured(bed: Bed, repositories: list[_Repository]) -> dict[str, Any]:
    """Return a configuration of a target for each repository. Nothing but pushes makes them run after their first run."""
    namespace = bed.namespace()
    document = configuration(bed, namespace, [each.url for each in repositories], len(repositories))
    return document | {"interval": "240h", "targets": [target | {"namespace": namespace} for target in document["targets"]]}


def _repository(bed: Bed, commits: int) -> _Repository:
    """Make a repository with a history of one ConfigMap; its branch stands at the first commit."""
    bed.count += 1
    name = f"pushed-{bed.count}"
    bare = bed.host.create(name)
    history = "".join(_commit(name, number) for number in range(commits))
    subprocess.run(["git", "-C", str(bare), "fast-import", "--quiet"], input=history, text=True, check=True)
    shas = subprocess.run(
        ["git", "-C", str(bare), "rev-list", "--reverse", "main"], capture_output=True, text=True, check=True
    ).stdout.split()
    made = _Repository(bare / "refs" / "heads" / "main", bed.host.url_of(name), shas)
    made.branch.write_text(shas[0] + "\n")
    return made


def _commit(name: str, number: int) -> str:
    """Write one commit for git-fast-import(1)."""
    document = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{number: '{number}'}}\n"
    said = f"committer Bench <bench@example.com> {1_700_000_000 + number} +0000\ndata 4\nPush\n"
    return f"commit refs/heads/main\n{said}M 100644 inline deploy/made.yaml\ndata {len(document)}\n{document}\n"


def _push(port: int, repository: _Repository, turn: int) -> None:
    """Move the branch to its next commit, and say so as GitHub does. Raises RuntimeError: it isn't taken."""
    sha = repository.shas[turn]
    repository.branch.write_text(sha + "\n")
    about = {"full_name": "bench/pushed", "clone_url": repository.url}
    body = json.dumps(
        {"ref": "refs/heads/main", "before": repository.shas[turn - 1], "after": sha, "repository": about, "commits": []}
    ).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("POST", "/webhooks/github", body, signed(body, sha))
    status = connection.getresponse().status
    connection.close()
    if status != 202:
        raise RuntimeError(f"a push was answered {status}")


def _wait_for_runs(server: Server, count: int) -> None:
    """Wait until so many runs have applied what they found. Raises RuntimeError: they don't come."""
    for _ in range(int(_LONGEST / 0.05)):
        if server.log.read_text().count('"outcome": "applied"') >= count:
            return
        time.sleep(0.05)
    raise RuntimeError(f"not {count} runs were there:\n{server.log.read_text()[-2000:]}")
