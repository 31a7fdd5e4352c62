"""What a sibling's manifests name in a namespace that is exclusive to another target: kept before the sibling has applied them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.plan import Action
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster
from tests.unit.engine.two_targets import Bench, X, document

pytestmark = pytest.mark.slow

MAPS = "/api/v1/namespaces/shop/configmaps"
HOOK = {"annotations": {"argocd.argoproj.io/hook": "PreSync"}}


def reader(kind: str = "Deployment", **metadata: Any) -> str:
    """Return what reads the ConfigMap `x`."""
    pod = {"containers": [{"name": "app", "image": "app:1", "envFrom": [{"configMapRef": {"name": "x"}}]}], "restartPolicy": "Never"}
    spec = {"template": {"metadata": {"labels": {"app": "reader"}}, "spec": pod}, "selector": {"matchLabels": {"app": "reader"}}}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": "reader", "namespace": "shop", **metadata}, "spec": spec})


@pytest.fixture
def seen() -> Bench:
    """Two targets of which `a` has seen that x is undeclared; its grace is over."""
    bench = Bench(server=cluster(served=WORKLOADS))
    bench.configure(a={"exclusive": ("shop",), "orphan_grace": 0.0})
    bench.push()
    bench.applied("a", "b")
    bench.server.must(Asked("POST", MAPS, {"fieldManager": "by-hand"}, json.loads(document("x")), "", ""))
    bench.applied("a", trigger="drift")
    return bench


def fate(bench: Bench) -> tuple[Action, str]:
    result = bench.run("a", "drift")
    assert result.plan, result.problems
    ((action, reason),) = [(each.action, each.reason) for each in result.plan.prunes if each.identity == X]
    return action, reason


@pytest.mark.parametrize("by", [reader(), reader("Job", **HOOK)], ids=["object", "hook"])
def test_what_a_manifest_of_a_sibling_names_and_is_not_applied_yet_stays(seen: Bench, by: str) -> None:
    seen.push(b={"reader": by})
    seen.applied("a")
    kind = json.loads(by)["kind"]
    kept = f"isn't declared in exclusive namespace shop; kept: {kind}/shop/reader of target b names it; declare it, too"
    assert fate(seen) == (Action.SKIP, kept)
    assert seen.live()
    seen.push()
    seen.applied("a", "b")
    assert (fate(seen)[0], seen.live()) == (Action.PRUNE, None)


def test_what_owns_what_a_manifest_of_a_sibling_names_stays(seen: Bench) -> None:
    top = seen.live()
    assert top
    owners = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": top["metadata"]["uid"]}]
    below = json.loads(document("y"))
    below["metadata"]["ownerReferences"] = owners
    seen.server.must(Asked("POST", MAPS, {"fieldManager": "by-hand"}, below, "", ""))
    seen.push(b={"reader": reader().replace('"name": "x"', '"name": "y"')})
    seen.applied("a")
    kept = "kept: ConfigMap/shop/y goes with it: Deployment/shop/reader of target b names it; declare it, too"
    assert fate(seen) == (Action.SKIP, f"isn't declared in exclusive namespace shop; {kept}")
    seen.push()
    seen.applied("a")
    assert (fate(seen)[0], seen.live()) == (Action.PRUNE, None)


def test_what_no_manifest_of_a_sibling_names_goes(seen: Bench) -> None:
    seen.push(b={"other": document("other")})
    seen.applied("a")
    assert (fate(seen)[0], seen.live()) == (Action.PRUNE, None)


def test_what_a_sibling_declares_and_has_not_applied_yet_is_left_to_it(seen: Bench) -> None:
    uid = seen.uid()
    seen.push(b={"x": document("x")})
    seen.applied("a")
    assert fate(seen) == (Action.SKIP, "hand over to b")
    assert seen.uid() == uid
    seen.applied("b", "a")
    assert (seen.uid(), seen.owner()) == (uid, "b")
    result = seen.run("a", "drift")
    assert result.plan
    assert result.plan.prunes == ()
