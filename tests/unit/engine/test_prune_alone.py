"""Kubernixos' word `prune` on a cluster in memory: what the original deployed and a closure lacks is found, and only that is deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.cluster.live import members
from handler.config.settings import Prune
from handler.engine.planner import kubernixos_leftovers
from handler.engine.prune_alone import PruneAlone
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable
from handler.model.event import Job
from handler.model.names import IDENTITY, KUBERNIXOS, PART_OF, Identity, applyset_id, identity_of
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, state_of
from tests.unit.engine.in_memory_shop import KINDS, Body, InMemoryShop, body, path_of
from tests.unit.engine.two_targets import A, B, Bench

pytestmark = pytest.mark.slow

OLD = "0a1b2c3d" * 7 + "0a1b2c"
COMPAT: dict[str, Any] = {"compat": "kubernixos", "adopt": ("kubernixos",)}
LAST = "kubectl.kubernetes.io/last-applied-configuration"
LEFT = "ConfigMap/shop/left"


def create(server: ApiServer, document: Body, manager: str = "kubectl-create") -> None:
    path = path_of(identity_of(document)).rpartition("/")[0]
    server.must(Asked("POST", path, {"fieldManager": manager}, document, "", ""))


def by_original(server: ApiServer, *documents: dict[str, Any]) -> None:
    """Deploy as the original does: the label on each object, by kubectl apply."""
    for each in documents:
        metadata = {**each["metadata"], "labels": {**each["metadata"].get("labels", {}), KUBERNIXOS: OLD}}
        applied = json.dumps({**each, "metadata": metadata})
        annotations = {**metadata.get("annotations", {}), LAST: applied}
        create(server, {**each, "metadata": {**metadata, "annotations": annotations}}, "kubectl-client-side-apply")


def alone(handler: Handler, name: str = "shop") -> PruneAlone:
    """Prune as the word does: nothing is applied, and the setting that keeps webhooks from deleting doesn't count."""
    deps = handler.dependencies(name)
    target = replace(deps.target, prune=replace(deps.target.prune, enabled=True))
    return PruneAlone(replace(deps, target=target), Job(name, "oneoff", force=True), threading.Event())


def found(handler: Handler, name: str = "shop") -> dict[str, str]:
    """Return what would be deleted, or what keeps it."""
    return {str(each.identity): "" if each.writes else each.reason for each in alone(handler, name).look().plan.prunes}


def pruned(handler: Handler, name: str = "shop") -> set[str]:
    """Delete what is found; return what went."""
    run = alone(handler, name)
    return {str(each.identity) for each in run.carry_out(run.look()) if each.writes}


@dataclass
class Taken(InMemoryShop):
    """A cluster of the original's: `kept` is in the closure of now, `left` isn't any more."""

    server: ApiServer = field(default_factory=lambda: cluster("shop", "elsewhere", served=KINDS))

    def __post_init__(self) -> None:
        self.configure(prune=Prune(kinds=("Namespace", "PersistentVolumeClaim")), **COMPAT)
        by_original(self.server, body("kept"), body("left"))
        self.push(body("kept"))


@pytest.fixture
def taken() -> Taken:
    return Taken()


def test_a_cluster_of_the_original_is_taken_over_without_a_deletion(taken: Taken) -> None:
    left = taken.live(body("left"))
    planned = taken.run("oneoff", dry_run=True).plan
    assert planned
    assert [(str(each.identity), each.action, each.adopted) for each in planned.changes] == [("ConfigMap/shop/kept", Action.UPDATE, True)]
    assert taken.run().outcome is Outcome.APPLIED
    labels = (taken.live(body("kept")) or {})["metadata"]["labels"]
    assert (len(labels[KUBERNIXOS]), labels[PART_OF]) == (62, applyset_id("anneal-shop", "anneal-system"))
    assert labels[KUBERNIXOS] != OLD
    assert taken.run("drift").outcome is Outcome.UNCHANGED
    assert found(taken.handler) == {LEFT: ""}
    assert taken.live(body("left")) == left, "only the word deletes, and looking writes nothing"
    assert pruned(taken.handler) == {LEFT}
    assert taken.live(body("left")) is None
    assert found(taken.handler) == {}


def test_without_adopt_nothing_of_the_originals_is_touched(taken: Taken) -> None:
    taken.configure(adopt="unowned")
    refused = taken.run()
    assert refused.outcome in (Outcome.REFUSED, Outcome.FAILED)
    assert "belongs to Kubernixos checksum" in str(refused.problems[0])
    taken.push(body("new"))
    assert taken.run().outcome is Outcome.APPLIED
    assert set(found(taken.handler).values()) == {f"belongs to Kubernixos checksum {OLD}"}
    assert pruned(taken.handler) == set()


def test_a_prune_without_an_apply_deletes_nothing_that_is_declared(taken: Taken) -> None:
    """Upstream compares checksums alone: before an apply of the closure of now it would delete all of it."""
    kept = taken.live(body("kept"))
    assert pruned(taken.handler) == {LEFT}
    assert taken.live(body("kept")) == kept, "nor is anything applied"


def test_what_is_declared_and_left_out_because_its_version_isnt_served_stays(taken: Taken) -> None:
    by_original(taken.server, body("one", "Offer", "acme.io/v1"))
    rests = {"annotations": {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}}
    taken.push(body("kept"), body("one", "Offer", "acme.io/v0", metadata=rests))
    assert "Offer/shop/one" not in found(taken.handler)
    taken.push(body("kept"))
    assert found(taken.handler)["Offer/shop/one"] == ""


def test_a_copied_label_deletes_nothing(taken: Taken) -> None:
    create(taken.server, body("other", metadata={"labels": {KUBERNIXOS: OLD}}))
    assert found(taken.handler)["ConfigMap/shop/other"] == "kubectl apply hasn't put the label on it: something has copied it"
    assert pruned(taken.handler) == {LEFT}


@pytest.mark.parametrize(
    "annotation",
    [{"anneal.dev/prune": "disabled"}, {"argocd.argoproj.io/sync-options": "Prune=false"}, {"helm.sh/resource-policy": "keep"}],
    ids=str,
)
def test_what_is_protected_is_kept(annotation: dict[str, str], taken: Taken) -> None:
    by_original(taken.server, body("safe", metadata={"annotations": annotation}))
    assert found(taken.handler)["ConfigMap/shop/safe"].startswith("protected by ")
    assert pruned(taken.handler) == {LEFT}


def test_what_another_target_or_tool_or_object_has_is_kept(taken: Taken) -> None:
    uid = (taken.live(body("left")) or {})["metadata"]["uid"]
    of_left = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "left", "uid": uid}]
    by_original(
        taken.server,
        body("member", metadata={"labels": {PART_OF: "applyset-other-v1"}, "annotations": {IDENTITY: "other:/ConfigMap:shop/member"}}),
        body("handed", metadata={"annotations": {IDENTITY: "other:/ConfigMap:shop/handed"}}),
        body("released", metadata={"labels": {"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}}),
        body("child", metadata={"ownerReferences": of_left}),
    )
    assert found(taken.handler) == {
        LEFT: "",
        "ConfigMap/shop/handed": "is on its way from one target to another",
        "ConfigMap/shop/released": "belongs to Flux Kustomization a",
        "ConfigMap/shop/child": "owned by ConfigMap left",
    }


def test_a_namespace_goes_only_with_nothing_in_it_and_a_claim_where_its_kind_is_named(taken: Taken) -> None:
    taken.configure(namespaces=("shop", "jobs"))
    by_original(taken.server, body("jobs", "Namespace", space=""), body("data", "PersistentVolumeClaim"))
    create(taken.server, body("inside", space="jobs"))
    assert found(taken.handler)["Namespace/jobs"].startswith("still holds ConfigMap/")
    taken.configure(prune=Prune())
    assert "prune.kinds" in found(taken.handler)["PersistentVolumeClaim/shop/data"]
    assert pruned(taken.handler) == {LEFT}


@pytest.mark.parametrize("first", [True, False])
def test_a_namespace_that_another_group_serves_too_has_its_guards(first: bool, taken: Taken, monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenShift does: one uid is a Project and a Namespace; deleting either deletes all in it."""

    def twice(*args: Any, **more: Any) -> Iterator[dict[str, Any]]:
        for live in list(members(*args, **more)):
            twin = [{**live, "apiVersion": "project.openshift.io/v1", "kind": "Project"}] if live["kind"] == "Namespace" else []
            yield from (*twin, live) if first else (live, *twin)

    monkeypatch.setattr(kubernixos_leftovers, "members", twice)
    taken.configure(namespaces=("shop", "jobs"), cluster_scoped=("Namespace", "Project.project.openshift.io"))
    by_original(taken.server, body("jobs", "Namespace", space=""))
    create(taken.server, body("inside", space="jobs"))
    why = found(taken.handler)
    assert why["Namespace/jobs"].startswith("still holds ConfigMap/")
    assert "Project/jobs" not in why


def test_compat_that_is_turned_off_and_on_again_deletes_nothing(taken: Taken) -> None:
    assert taken.run().outcome is Outcome.APPLIED
    uid = (taken.live(body("kept")) or {})["metadata"]["uid"]
    taken.configure(compat="none")
    assert taken.run("drift").outcome is Outcome.APPLIED
    assert KUBERNIXOS not in (taken.live(body("kept")) or {})["metadata"]["labels"]
    assert found(taken.handler) == {}, "without compat nothing is searched"
    taken.configure(compat="kubernixos")
    assert taken.run("drift").outcome is Outcome.APPLIED
    live = (taken.live(body("kept")) or {})["metadata"]
    assert (live["uid"], len(live["labels"][KUBERNIXOS])) == (uid, 62)
    assert found(taken.handler) == {LEFT: ""}


def test_the_whitelist_bounds_the_search(taken: Taken) -> None:
    by_original(taken.server, body("left", space="elsewhere"), body("other", "Namespace", space=""))
    assert found(taken.handler) == {LEFT: ""}


def test_what_changed_since_it_was_shown_is_judged_again(taken: Taken) -> None:
    by_original(taken.server, *(body(name) for name in ("moved", "safe", "made")))
    run = alone(taken.handler)
    shown = run.look()
    taken.annotate(body("moved"), a="b")
    taken.annotate(body("safe"), **{"anneal.dev/prune": "disabled"})
    taken.delete(body("made"))
    by_original(taken.server, body("made"), body("new"))
    went = {str(each.identity) for each in run.carry_out(shown) if each.writes}
    assert went == {LEFT, "ConfigMap/shop/moved"}, "neither what is protected now nor what wasn't shown"
    assert all(taken.live(body(name)) for name in ("safe", "made", "new"))


def test_what_becomes_declared_after_it_was_shown_stays(taken: Taken) -> None:
    run = alone(taken.handler)
    shown = run.look()
    taken.push(body("kept"), body("left"))
    assert list(run.carry_out(shown)) == []
    assert taken.live(body("left"))


def test_what_would_take_along_more_than_was_shown_stays(taken: Taken) -> None:
    by_original(taken.server, body("db", "StatefulSet", "apps/v1", spec={}))
    uid = (taken.live(body("db", "StatefulSet", "apps/v1")) or {})["metadata"]["uid"]
    owner = [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": uid}]
    create(taken.server, body("data-0", "PersistentVolumeClaim", metadata={"ownerReferences": owner}))
    run = alone(taken.handler)
    shown = run.look()
    assert {str(gone.identity) for change in shown.plan.prunes for gone in change.takes if gone.counted} == {
        "PersistentVolumeClaim/shop/data-0"
    }
    create(taken.server, body("data-1", "PersistentVolumeClaim", metadata={"ownerReferences": owner}))
    assert {str(each.identity) for each in run.carry_out(shown) if each.writes} == {LEFT}
    assert pruned(taken.handler) == {"StatefulSet/shop/db"}


def test_own_members_that_arent_declared_any_more_go_with_the_rest(taken: Taken) -> None:
    taken.push(body("kept"), body("mine"))
    assert taken.run().outcome is Outcome.APPLIED
    taken.push(body("kept"))
    assert taken.run(prune=False).outcome is Outcome.APPLIED
    assert [str(each.identity) for each in state_of(taken.handler).orphans] == ["ConfigMap/shop/mine"]
    assert pruned(taken.handler) == {LEFT, "ConfigMap/shop/mine"}
    assert state_of(taken.handler).orphans == ()
    assert taken.run("drift").outcome is Outcome.UNCHANGED


def forbidden(call: Call, do: Callable[[], Reply]) -> Reply:
    cannot = 'secrets is forbidden: User "shop" cannot list resource "secrets" in API group "" in the namespace "shop"'
    said = {"kind": "Status", "status": "Failure", "code": 403, "reason": "Forbidden", "message": cannot}
    searched = call.asked.query.get("labelSelector") == KUBERNIXOS and call.asked.path.endswith("/secrets")
    return (403, said, {}) if searched else do()


def stale(call: Call, do: Callable[[], Reply]) -> Reply:
    status, answer, more = do()
    if call.asked.path == "/apis":
        answer["items"].append({"metadata": {"name": "acme.io"}, "versions": [{"version": "v1", "freshness": "Stale"}]})
    return status, answer, more


@pytest.mark.parametrize(
    ("way", "error", "told"), [(forbidden, AccessDenied, "list Secret"), (stale, ClusterUnavailable, "nothing is pruned on doubt")]
)
def test_what_can_not_be_listed_stops_the_prune(way: Way, error: type[AnnealError], told: str, taken: Taken) -> None:
    taken.meet = way
    with pytest.raises(error, match=told):
        pruned(taken.handler)
    assert taken.live(body("left"))


def test_a_closure_of_which_nothing_lives_prunes_nothing(taken: Taken) -> None:
    """Of another environment's closure all lacks that lives here: upstream would delete it."""
    taken.push(body("elsewhere"))
    assert found(taken.handler) == {LEFT: "", "ConfigMap/shop/kept": ""}
    with pytest.raises(AnnealError, match="nothing that it declares lives here, so this may be another cluster"):
        pruned(taken.handler)
    assert taken.live(body("left"))


def test_nothing_is_pruned_after_an_apply_that_failed(taken: Taken) -> None:
    taken.push(body("kept"), body("web", space="absent"))
    taken.configure(namespaces=("shop", "absent"), validate="none")
    assert taken.run().outcome is Outcome.FAILED
    with pytest.raises(AnnealError):
        pruned(taken.handler)
    assert taken.live(body("left"))


def test_two_targets_with_the_label_leave_each_other_alone() -> None:
    bench = Bench((replace(A, **COMPAT), replace(B, **COMPAT)))
    by_original(bench.server, body("from-a"), body("from-b"), body("left"))
    declared = {name: {"x": json.dumps(body(f"from-{name}"))} for name in "ab"}
    bench.push(**declared)
    assert found(bench.handler, "a")["ConfigMap/shop/from-b"].startswith("hand over to"), "b declares it, and hasn't taken it over yet"
    bench.applied("a", "b")
    lives = [bench.live(Identity("", "ConfigMap", "shop", f"from-{name}")) or {} for name in "ab"]
    assert len({each["metadata"]["labels"][KUBERNIXOS] for each in lives}) == 2
    assert found(bench.handler, "a") == found(bench.handler, "b") == {LEFT: ""}
    bench.push(b=declared["b"])
    assert pruned(bench.handler, "a") == {LEFT, "ConfigMap/shop/from-a"}
    bench.applied("a", "b")
    assert bench.live(Identity("", "ConfigMap", "shop", "from-b"))
