"""The rows measured against kubectl on the same API server: first apply, no change, one change, prune; and kube-prometheus."""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from handler.config.settings import HoldAbove, Prune
from infra.bench.bed import Bed, Shop
from infra.bench.objects import Body, mixed
from infra.bench.rows import Row, median, timed
from infra.controlplane import controlplane

COUNT = 500
_ROUNDS = 3
_APPLYSET = {"KUBECTL_APPLYSET": "true"}


def first_apply(bed: Bed) -> Iterator[Row]:
    """All 500 objects are new: with and without validation, in turn with kubectl."""
    times: dict[str, list[float]] = {"kubectl": [], "server": [], "none": []}
    for _ in range(_ROUNDS):
        times["kubectl"].append(_kubectl_apply(bed, bed.namespace()))
        for validate in ("server", "none"):
            shop = bed.shop(mixed(COUNT, bed.namespace()), validate=validate)
            shop.handler()
            times[validate].append(timed(shop.run)[0])
    kubectl, server, none = (statistics.median(times[key]) for key in ("kubectl", "server", "none"))
    yield Row("first apply, everything validated first", kubectl / server, 0.85, "x kubectl", "higher", {"s": server, "kubectl s": kubectl})
    yield Row("first apply, validate: none", kubectl / none, 1.5, "x kubectl", "higher", {"s": none, "kubectl s": kubectl})


def _kubectl_apply(bed: Bed, namespace: str) -> float:
    """Time `kubectl apply --server-side --prune --applyset` of a file."""
    files = bed.files(mixed(COUNT, namespace))
    return timed(lambda: _apply(bed, files, namespace))[0]


def _apply(bed: Bed, files: Path, namespace: str) -> None:
    bed.kubectl("apply", "--server-side", "--prune", "--applyset", "set", "-n", namespace, "-f", str(files), **_APPLYSET)


def unchanged(bed: Bed) -> Iterator[Row]:
    """Nothing changed: a drift run with and without its render, a push, their requests; then one object changes."""
    namespace = bed.namespace()
    bodies = mixed(COUNT, namespace)
    shop = bed.shop(bodies)
    shop.run()
    shop.run("drift")
    other = bed.namespace()
    files = bed.files(mixed(COUNT, other))
    _apply(bed, files, other)
    kubectl = median(lambda: _apply(bed, files, other))
    cached = median(lambda: shop.run("drift"))
    cold = median(lambda: _without_render(shop))
    yield Row("drift run, nothing changed, render cached", kubectl / cached, 12, "x kubectl", "higher", {"s": cached, "kubectl s": kubectl})
    yield Row("drift run, nothing changed, rendered anew", kubectl / cold, 5, "x kubectl", "higher", {"s": cold, "kubectl s": kubectl})
    yield from _requests(shop, bodies)
    yield from _one_changed(shop, bodies, kubectl)


def _without_render(shop: Shop) -> None:
    """Forget what was rendered; the tree is still here."""
    shop.handler().dependencies(shop.target.name).preparer.forget()
    shop.run("drift")


def _requests(shop: Shop, bodies: list[Body]) -> Iterator[Row]:
    before = shop.requests()
    shop.run("drift")
    kinds = len({body["kind"] for body in bodies})
    yield Row("drift run, requests", shop.requests() - before, kinds + 4, "requests")
    before = shop.requests()
    shop.run()
    yield Row("push without change, requests", shop.requests() - before, 1, "requests")


def _one_changed(shop: Shop, bodies: list[Body], kubectl: float) -> Iterator[Row]:
    """One object changes in git: all of it from the push on, then only from the fetched tree to the record."""
    taken: list[float] = []
    fetched: list[float] = []
    for number in range(10):
        changed = copy.deepcopy(bodies)
        changed[0]["data"]["key-0"] = f"changed {number}"
        sha = shop.write(changed)
        if number % 2:
            shop.handler().dependencies(shop.target.name).preparer.tree(sha)
        (fetched if number % 2 else taken).append(timed(shop.run)[0])
    yield Row("one object changed, push to recorded", statistics.median(taken), 0.6, "s")
    ours = statistics.median(fetched)
    yield Row("one object changed, fetched tree to record", kubectl / ours, 10, "x kubectl", "higher", {"s": ours, "kubectl s": kubectl})


def prune(bed: Bed, *, quick: bool) -> Iterator[Row]:
    """490 of 500 go, approved, gone confirmed; kubectl's own time is throttled by its client."""
    namespace = bed.namespace()
    bodies = mixed(COUNT, namespace)
    shop = bed.shop(bodies, prune=Prune(hold_above=HoldAbove(10, 0.3)))
    shop.run()
    shop.write(bodies[:10])
    held = shop.run().plan
    assert held is not None  # noqa: S101 - a held run has a plan
    assert held.hold is not None  # noqa: S101 - 490 of 500 are held
    ours, _ = timed(lambda: shop.run("replay", approve=held.hold.id if held.hold else "", actor="bench"))
    gone = COUNT - 10 if not quick else 60
    kubectl = _kubectl_prune(bed, gone) * (COUNT - 10) / gone
    yield Row("490 of 500 pruned, approved", kubectl / ours, 50, "x kubectl", "higher", {"s": ours, "kubectl s": kubectl})


def _kubectl_prune(bed: Bed, gone: int) -> float:
    """Time kubectl's prune of so many objects."""
    namespace = bed.namespace()
    bodies = mixed(gone + 10, namespace)
    _apply(bed, bed.files(bodies), namespace)
    rest = bed.files(bodies[:10])
    return timed(lambda: _apply(bed, rest, namespace))[0]


def kube_prometheus(bed: Bed, data: Path) -> Iterator[Row]:
    """131 objects with ten CRDs: with validation and CRD waits. Absent data, no row."""
    manifests = data / "kube-prometheus" / "manifests"
    if not manifests.is_dir():
        return
    shop = bed.shop([])
    for file in sorted(manifests.rglob("*.yaml")):
        shop.work.write(f"deploy/{file.relative_to(manifests)}", file.read_bytes())
    shop.work.commit("kube-prometheus")
    shop.work.push()
    shop.handler()
    time.sleep(1)
    taken, result = timed(shop.run)
    kubectl = _kubectl_kube_prometheus(bed, manifests)
    details = {"objects": result.counts.get("created", 0), "kubectl s": kubectl, "x kubectl": kubectl / taken}
    yield Row("kube-prometheus, first apply", taken, 3.5, "s", details=details)


def _kubectl_kube_prometheus(bed: Bed, manifests: Path) -> float:
    """Time the way its README gives, on a control plane of its own: set up, wait until the CRDs are Established, apply the rest."""
    place = bed.directory / "kubectl-plane"
    other = replace(bed, kubeconfig=controlplane.up(place), directory=bed.directory / "kubectl-files")
    try:
        time.sleep(1)
        return timed(lambda: _set_up(other, manifests))[0]
    finally:
        controlplane.down(place)


def _set_up(bed: Bed, manifests: Path) -> None:
    bed.kubectl("apply", "--server-side", "-f", str(manifests / "setup"))
    bed.kubectl("wait", "--for", "condition=Established", "--all", "CustomResourceDefinition")
    bed.kubectl("apply", "--server-side", "-f", str(manifests))
