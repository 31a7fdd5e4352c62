"""The rows of single processes: memory of a worker, import of the door, depth-1 fetch against git, the render child."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from handler.config.git_settings import Repository
from handler.source.git_host import GitHost
from infra.bench.bed import Bed, Shop
from infra.bench.objects import mixed
from infra.bench.rows import Row, timed
from infra.githost import Work

_OBJECTS, _FILES = 5000, 5000
_HEAVY = ("kubernetes", "dulwich", "handler.render", "handler.cluster", "handler.source")


def memory(bed: Bed) -> Iterator[Row]:
    """Peak memory of a process that finds nothing changed among 1,000 and 5,000 objects: small, and linear."""
    peaks = {}
    for count in (1000, _OBJECTS):
        shop = bed.shop(mixed(count, bed.namespace()))
        shop.run()
        shop.run("drift")
        peaks[count] = peak(bed, shop)
    per_object = (peaks[_OBJECTS] - peaks[1000]) * 1024 / (_OBJECTS - 1000)
    yield Row(
        "5,000 objects, nothing changed, peak RSS", peaks[_OBJECTS], 150, "MB", details={"1,000": peaks[1000], "kB an object": per_object}
    )


def peak(bed: Bed, shop: Shop, exclusive: str = "", undeclared: int = 0) -> float:
    """Run two drift runs in a process of their own and return its peak resident memory, in MB.

    `exclusive`: a namespace, in which so many objects are `undeclared`.
    """
    place = {"kubeconfig": str(bed.kubeconfig), "name": shop.target.name, "url": shop.target.repository.url}
    facts = {**place, "exclusive": exclusive, "undeclared": undeclared}
    done = subprocess.run(
        [sys.executable, "-m", "infra.bench.measured", json.dumps(facts)], check=True, capture_output=True, text=True, cwd=_root()
    )
    return float(done.stdout.split()[-1])


def _root() -> Path:
    return Path(__file__).resolve().parents[2]


def door_import() -> Iterator[Row]:
    """Import of the webhook entry point, and what it must not bring."""
    heavy = f"print([name for name in {_HEAVY!r} if name in sys.modules])"
    code = f"import time, sys; since = time.perf_counter(); import handler.wsgi; print(time.perf_counter() - since); {heavy}"
    runs = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=_root()).stdout for _ in range(5)]
    times = [float(run.split()[0]) for run in runs]
    yield Row("import of the webhook entry point", statistics.median(times), 0.5, "s", details={"heavy modules": runs[0].split("\n")[1]})


def fetch(bed: Bed) -> Iterator[Row]:
    """Depth-1 fetch of 5,000 files in memory, in turn with git's own clone; then one directory of many."""
    work = Work.of(bed.host, "files")
    for number in range(_FILES):
        work.write(f"dir-{number % 100}/file-{number}.yaml", f"kind: ConfigMap\nmetadata: {{name: c{number}}}\ndata: {{a: '{number}'}}\n")
    sha = work.commit("Files")
    work.push()
    url = bed.host.url_of("files")
    git, ours, one = [], [], []
    for number in range(7):
        clone = str(bed.directory / f"clone-{number}")
        git.append(timed(partial(subprocess.run, ["git", "clone", "-q", "--depth", "1", "--bare", url, clone], check=True))[0])
        ours.append(timed(lambda: _fetched(url, sha, ""))[0])
        one.append(timed(lambda: _fetched(url, sha, "dir-7"))[0])
    clone_time = statistics.median(git)
    figures = {"s": statistics.median(ours), "git s": clone_time}
    yield Row("depth-1 fetch of 5,000 files", statistics.median(ours) / clone_time, 2.2, "x git", details=figures)
    path_ratio = statistics.median(one) / clone_time
    yield Row("depth-1 fetch, one directory of 100", path_ratio, 2.2, "x git", details={"s": statistics.median(one)})


def _fetched(url: str, sha: str, path: str) -> int:
    """Fetch and read every blob."""
    host = GitHost(Repository(url=url))
    tree = host.fetch(sha, path)
    found = tree.blobs([entry.oid for entry in tree.walk(path)])
    host.close()
    return len(found)


def render(bed: Bed) -> Iterator[Row]:
    """The render child: the first render of a new fork server, then warm ones, of a small repository."""
    shop = bed.shop(mixed(5, "bench"))
    preparer = shop.handler().dependencies(shop.target.name).preparer
    tree = preparer.tree(preparer.head().commit)
    request = preparer.request()
    first, _ = timed(lambda: preparer.render(tree, request))
    warm = statistics.median(timed(lambda: preparer.render(tree, request))[0] for _ in range(20))
    yield Row("render child, warm", warm * 1000, 25, "ms", details={"first ms": first * 1000})
