"""What the original Kubernixos has deployed: taken over without a deletion; what a closure lacks is found, and only that is ever deleted.

Each way in which a wrong object could be deleted is planted, as it comes about on clusters.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.cluster.discovery import Discovery
from handler.cluster.live import members
from handler.config.settings import Prune
from handler.engine.planner import kubernixos_leftovers
from handler.engine.prune_alone import PruneAlone
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable
from handler.model.names import IDENTITY, KUBERNIXOS, PART_OF
from handler.model.plan import Action
from handler.model.result import Outcome
from tests.e2e.documents import Document, claim, config_map, definition, deployment, namespace, offer, service, stateful_set
from tests.e2e.one_target import SCOPED, Shop, told
from tests.e2e.serve_process import until
from tests.e2e.two_targets import Pair

OLD = "0a1b2c3d" * 7 + "0a1b2c"
COMPAT: dict[str, Any] = {"compat": "kubernixos", "adopt": ("kubernixos",)}
ALL = {**COMPAT, "prune": Prune(kinds=("Namespace", "CustomResourceDefinition", "PersistentVolumeClaim"))}


def by_original(shop: Shop, *documents: Document, checksum: str = OLD, server_side: bool = False) -> None:
    """Deploy as the original does: the label on each object, one List, by kubectl apply."""
    items = [labelled(each, checksum) for each in documents]
    how = ["--server-side"] if server_side else []
    shop.kubectl.run("apply", *how, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def labelled(document: Document, checksum: str = OLD, **annotations: str) -> Document:
    metadata = document["metadata"]
    more = {"annotations": {**metadata.get("annotations", {}), **annotations}} if annotations else {}
    return {**document, "metadata": {**metadata, "labels": {**metadata.get("labels", {}), KUBERNIXOS: checksum}, **more}}


def alone(shop: Shop) -> PruneAlone:
    """Prune as the word does: nothing is applied, and the setting that keeps webhooks from deleting doesn't count."""
    deps = shop.handler.dependencies(shop.name)
    target = replace(deps.target, prune=replace(deps.target.prune, enabled=True))
    return PruneAlone(replace(deps, target=target), shop.job("oneoff", force=True), threading.Event())


def found(shop: Shop) -> dict[str, str]:
    """Return what would be deleted, or what keeps it."""
    return {str(each.identity): "" if each.writes else each.reason for each in alone(shop).look().plan.prunes}


def pruned(shop: Shop) -> set[str]:
    """Delete what is found; return what went."""
    run = alone(shop)
    return {str(each.identity) for each in run.carry_out(run.look()) if each.writes}


@pytest.fixture
def taken(shop: Shop) -> Shop:
    """A cluster of the original's: `kept` is in the closure of now, `left` isn't any more."""
    shop.configure(**ALL, cluster_scoped=("Namespace",))  # not the definitions of other tests
    by_original(shop, config_map(shop.name, "kept"), config_map(shop.name, "left"))
    shop.push(config_map(shop.name, "kept"))
    return shop


def test_a_cluster_of_the_original_is_taken_over_without_a_deletion(taken: Shop) -> None:
    kept, left = config_map(taken.name, "kept"), config_map(taken.name, "left")
    before = taken.versions([left])
    planned = taken.run("oneoff", dry_run=True).plan
    assert planned
    assert [(str(each.identity), each.action, each.adopted) for each in planned.changes] == [
        (f"ConfigMap/{taken.name}/kept", Action.UPDATE, True)
    ]
    taken.applied()
    live = taken.live(kept)
    assert live
    checksum = live["metadata"]["labels"][KUBERNIXOS]
    assert (len(checksum), live["metadata"]["labels"][PART_OF]) == (62, taken.applyset)
    assert checksum != OLD
    assert taken.run("drift").outcome is Outcome.UNCHANGED
    assert taken.versions([left]) == before, "only the word deletes"
    assert found(taken) == {f"ConfigMap/{taken.name}/left": ""}
    assert taken.versions([left]) == before, "looking writes nothing"
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left"}
    assert (taken.live(left), taken.live(kept)) == (None, live)
    assert found(taken) == {}


def test_without_adopt_nothing_of_the_originals_is_touched(taken: Shop) -> None:
    taken.configure(adopt="unowned")
    left = config_map(taken.name, "left")
    refused = taken.run()
    assert refused.outcome in (Outcome.REFUSED, Outcome.FAILED), told(refused)
    assert "belongs to Kubernixos checksum" in str(refused.problems[0])
    taken.push(config_map(taken.name, "new"))
    taken.applied()
    assert set(found(taken).values()) == {f"belongs to Kubernixos checksum {OLD}"}
    assert pruned(taken) == set()
    assert taken.live(left)


def test_a_prune_without_an_apply_deletes_nothing_that_is_declared(taken: Shop) -> None:
    """Upstream compares checksums alone: before an apply of the closure of now it would delete all of it."""
    before = taken.versions([config_map(taken.name, "kept")])
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left"}
    assert taken.versions([config_map(taken.name, "kept")]) == before, "nor is anything applied"


def test_a_declared_object_in_another_api_group_is_the_same_object(taken: Shop) -> None:
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": taken.name},
        "regarding": {"kind": "Namespace", "name": taken.name, "namespace": taken.name},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "a",
        "reportingInstance": "b",
        "reason": "c",
        "action": "d",
        "type": "Normal",
    }
    by_original(taken, event)
    taken.push(config_map(taken.name, "kept"), event)
    assert found(taken) == {f"ConfigMap/{taken.name}/left": ""}


def test_what_is_declared_and_left_out_because_its_version_isnt_served_stays(taken: Shop) -> None:
    taken.configure(cluster_scoped=SCOPED)
    crd = definition(taken.group)
    by_original(taken, crd)
    taken.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{taken.group}")
    by_original(taken, offer(taken.group, taken.name, "one"))
    left_out = offer(taken.group, taken.name, "one")
    left_out["apiVersion"] = f"{taken.group}/v0"
    left_out["metadata"]["annotations"] = {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}
    taken.push(config_map(taken.name, "kept"), left_out)
    assert f"Offer/{taken.name}/one" not in found(taken)
    taken.push(config_map(taken.name, "kept"))
    assert found(taken)[f"Offer/{taken.name}/one"] == ""


COPIES: dict[str, Callable[[Shop], Document]] = {
    "by create, as operators do": lambda shop: labelled(config_map(shop.name, "other")),
    "with the annotation of what it was copied from": lambda shop: labelled(
        config_map(shop.name, "other"),
        **{"kubectl.kubernetes.io/last-applied-configuration": json.dumps(labelled(config_map(shop.name, "left")))},
    ),
    "with an annotation that can't be read": lambda shop: labelled(
        config_map(shop.name, "other"), **{"kubectl.kubernetes.io/last-applied-configuration": "[" * 5}
    ),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copied_label_deletes_nothing(way: str, taken: Shop) -> None:
    taken.kubectl.run("create", "-f", "-", given=json.dumps(COPIES[way](taken)))
    assert found(taken)[f"ConfigMap/{taken.name}/other"] == "kubectl apply hasn't put the label on it: something has copied it"
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left"}
    assert taken.live(config_map(taken.name, "other"))


def test_what_kubectl_label_has_marked_is_kept(taken: Shop) -> None:
    taken.kubectl.run("create", "configmap", "own", "-n", taken.name)
    taken.kubectl.run("label", "configmap", "own", "-n", taken.name, f"{KUBERNIXOS}={OLD}")
    assert "own" in next(name for name, why in found(taken).items() if "copied" in why)


@pytest.mark.parametrize("server_side", [False, True])
def test_what_the_original_deployed_is_found_however_kubectl_applied_it(server_side: bool, taken: Shop) -> None:
    by_original(taken, config_map(taken.name, "more"), server_side=server_side)
    taken.kubectl.run("annotate", "configmap", "more", "-n", taken.name, "kubectl.kubernetes.io/last-applied-configuration-")
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left", f"ConfigMap/{taken.name}/more"}


def test_children_of_labelled_objects_are_left_to_their_controllers(taken: Shop) -> None:
    by_original(taken, service(taken.name, "web"))
    left = taken.live(config_map(taken.name, "left"))
    assert left
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "left", "uid": left["metadata"]["uid"]}
    owned = labelled(config_map(taken.name, "child"))
    owned["metadata"]["ownerReferences"] = [owner]
    mirrored = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "headless", "namespace": taken.name}, "subsets": []}
    taken.kubectl.run("apply", "-f", "-", given=json.dumps(owned))
    taken.kubectl.run("create", "-f", "-", given=json.dumps(labelled(mirrored)))
    why = found(taken)
    assert why[f"ConfigMap/{taken.name}/child"] == "owned by ConfigMap left"
    assert "copied" in why[f"Endpoints/{taken.name}/headless"]
    going = {name for name, reason in why.items() if not reason}
    assert going == {f"ConfigMap/{taken.name}/left", f"Service/{taken.name}/web"}


@pytest.mark.parametrize(
    "annotation",
    [{"anneal.dev/prune": "disabled"}, {"argocd.argoproj.io/sync-options": "Prune=false"}, {"helm.sh/resource-policy": "keep"}],
)
def test_what_is_protected_is_kept(annotation: dict[str, str], taken: Shop) -> None:
    by_original(taken, labelled(config_map(taken.name, "safe"), **annotation))
    assert found(taken)[f"ConfigMap/{taken.name}/safe"].startswith("protected by ")
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left"}


def test_what_another_target_or_tool_has_is_kept(taken: Shop) -> None:
    member, handed, released = (config_map(taken.name, name) for name in ("member", "handed", "released"))
    member["metadata"] |= {"labels": {PART_OF: "applyset-other-v1"}, "annotations": {IDENTITY: f"other:/ConfigMap:{taken.name}/member"}}
    handed["metadata"] |= {"annotations": {IDENTITY: f"other:/ConfigMap:{taken.name}/handed"}}
    released["metadata"] |= {"labels": {"kustomize.toolkit.fluxcd.io/name": "a", "kustomize.toolkit.fluxcd.io/namespace": "b"}}
    by_original(taken, member, handed, released)
    assert found(taken) == {
        f"ConfigMap/{taken.name}/left": "",
        f"ConfigMap/{taken.name}/handed": "is on its way from one target to another",
        f"ConfigMap/{taken.name}/released": "belongs to Flux Kustomization a",
    }


def test_holders_go_only_with_nothing_in_them(taken: Shop) -> None:
    space, crd, held = taken.create_namespace(f"{taken.name}-jobs"), definition(taken.group), claim(taken.name, "data")
    by_original(taken, namespace(space), crd, held)
    taken.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{taken.group}")
    taken.kubectl.run("create", "-f", "-", given=json.dumps(offer(taken.group, taken.name, "one")))
    taken.kubectl.run("create", "configmap", "inside", "-n", space)
    taken.configure(cluster_scoped=SCOPED)
    why = found(taken)
    assert why[f"Namespace/{space}"].startswith("still holds ConfigMap/")
    assert why[f"CustomResourceDefinition/offers.{taken.group}"].startswith("still has instances (1)")
    taken.configure(**COMPAT, prune=Prune())
    assert "prune.kinds" in found(taken)[f"PersistentVolumeClaim/{taken.name}/data"]
    assert f"PersistentVolumeClaim/{taken.name}/data" not in pruned(taken)
    assert taken.live(held)


@pytest.mark.parametrize("first", [True, False])
def test_a_namespace_that_another_group_serves_too_has_its_guards(first: bool, taken: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """As OpenShift does: one uid is a Project and a Namespace; deleting either deletes all in it."""

    def twice(*args: Any, **more: Any) -> Iterator[Document]:
        for live in list(members(*args, **more)):
            twin = [{**live, "apiVersion": "project.openshift.io/v1", "kind": "Project"}] if live["kind"] == "Namespace" else []
            yield from (*twin, live) if first else (live, *twin)

    monkeypatch.setattr(kubernixos_leftovers, "members", twice)
    taken.configure(cluster_scoped=("Namespace", "Project.project.openshift.io"))
    space = taken.create_namespace(f"{taken.name}-jobs")
    by_original(taken, namespace(space))
    taken.kubectl.run("create", "configmap", "inside", "-n", space)
    why = found(taken)
    assert why[f"Namespace/{space}"].startswith("still holds ConfigMap/")
    assert f"Project/{space}" not in why


def test_compat_that_is_turned_off_and_on_again_deletes_nothing(taken: Shop) -> None:
    kept = config_map(taken.name, "kept")
    taken.applied()
    uid = (taken.live(kept) or {})["metadata"]["uid"]
    taken.configure(**{**ALL, "compat": "none"}, cluster_scoped=("Namespace",))
    assert taken.run("drift").outcome is Outcome.APPLIED
    live = taken.live(kept)
    assert live
    assert KUBERNIXOS not in live["metadata"]["labels"]
    assert found(taken) == {}, "without compat nothing is searched"
    taken.configure(**ALL, cluster_scoped=("Namespace",))
    assert taken.run("drift").outcome is Outcome.APPLIED
    live = taken.live(kept)
    assert live
    assert (live["metadata"]["uid"], len(live["metadata"]["labels"][KUBERNIXOS])) == (uid, 62)
    assert found(taken) == {f"ConfigMap/{taken.name}/left": ""}


def test_the_whitelist_bounds_the_search(taken: Shop) -> None:
    outside = taken.create_namespace(f"{taken.name}-elsewhere")
    by_original(taken, config_map(outside, "left"), namespace(outside))
    assert found(taken) == {f"ConfigMap/{taken.name}/left": ""}


def test_what_changed_since_it_was_shown_is_judged_again(taken: Shop) -> None:
    by_original(taken, *(config_map(taken.name, name) for name in ("moved", "safe", "made")))
    run = alone(taken)
    shown = run.look()
    taken.kubectl.run("annotate", "configmap", "moved", "-n", taken.name, "a=b")
    taken.kubectl.run("annotate", "configmap", "safe", "-n", taken.name, "anneal.dev/prune=disabled")
    taken.kubectl.run("delete", "configmap", "made", "-n", taken.name)
    by_original(taken, config_map(taken.name, "made"), config_map(taken.name, "new"))
    went = {str(each.identity) for each in run.carry_out(shown) if each.writes}
    assert went == {f"ConfigMap/{taken.name}/left", f"ConfigMap/{taken.name}/moved"}, "neither what is protected now nor what wasn't shown"
    assert all(taken.live(config_map(taken.name, name)) for name in ("safe", "made", "new"))


def test_what_becomes_declared_after_it_was_shown_stays(taken: Shop) -> None:
    run = alone(taken)
    shown = run.look()
    taken.push(config_map(taken.name, "kept"), config_map(taken.name, "left"))
    assert list(run.carry_out(shown)) == []
    assert taken.live(config_map(taken.name, "left"))


def test_own_members_that_arent_declared_any_more_go_with_the_rest(taken: Shop) -> None:
    taken.push(config_map(taken.name, "kept"), config_map(taken.name, "mine"))
    taken.applied()
    taken.push(config_map(taken.name, "kept"))
    assert taken.run(prune=False).outcome is Outcome.APPLIED
    assert [str(each.identity) for each in taken.state().orphans] == [f"ConfigMap/{taken.name}/mine"]
    assert pruned(taken) == {f"ConfigMap/{taken.name}/left", f"ConfigMap/{taken.name}/mine"}
    assert taken.state().orphans == ()
    assert taken.run("drift").outcome is Outcome.UNCHANGED


def test_nothing_is_pruned_after_an_apply_that_failed(taken: Shop) -> None:
    taken.push(config_map(taken.name, "kept"), deployment(f"{taken.name}-absent", "web"))
    taken.configure(namespaces=(*taken.target.namespaces, f"{taken.name}-absent"), validate="none")
    assert taken.run().outcome is Outcome.FAILED
    with pytest.raises(AnnealError):
        pruned(taken)
    assert taken.live(config_map(taken.name, "left"))


def test_a_group_that_doesnt_answer_stops_the_prune(taken: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Discovery, "stale", property(lambda _: frozenset({"metrics.k8s.io"})))
    with pytest.raises(ClusterUnavailable, match="nothing is pruned on doubt"):
        pruned(taken)
    assert taken.live(config_map(taken.name, "left"))


def test_a_kind_that_may_not_be_read_stops_the_prune(taken: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    planner = taken.handler.dependencies(taken.name).planner
    expect = planner.api.expect

    def denied(request: Any) -> Any:
        if request.query and request.query.get("labelSelector") == KUBERNIXOS and request.path.endswith("/secrets"):
            raise AccessDenied.of("list Secret", "is forbidden")
        return expect(request)

    monkeypatch.setattr(planner.api, "expect", denied)
    with pytest.raises(AccessDenied, match="list Secret"):
        pruned(taken)
    assert taken.live(config_map(taken.name, "left"))


def test_two_targets_with_the_label_leave_each_other_alone(pair: Pair) -> None:
    a, b = (config_map(pair.space, name) for name in ("from-a", "from-b"))
    pair.configure(a=dict(COMPAT), b=dict(COMPAT))
    by_original(pair.a, a, b, config_map(pair.space, "left"))
    pair.push((a,), (b,))
    assert found(pair.a)[f"ConfigMap/{pair.space}/from-b"].startswith("hand over to"), "b declares it, and hasn't taken it over yet"
    pair.applied(pair.a, pair.b)
    marks = [(pair.a.live(each) or {})["metadata"]["labels"] for each in (a, b)]
    assert marks[0][KUBERNIXOS] != marks[1][KUBERNIXOS]
    assert found(pair.a) == found(pair.b) == {f"ConfigMap/{pair.space}/left": ""}
    pair.push((), (b,))
    assert pruned(pair.a) == {f"ConfigMap/{pair.space}/left", f"ConfigMap/{pair.space}/from-a"}
    pair.applied(pair.a, pair.b)
    assert pair.owners(b) == {pair.b.name}


def test_what_would_take_along_more_than_was_shown_stays(taken: Shop) -> None:
    made = stateful_set(taken.name, "db")
    policy = {"whenDeleted": "Delete", "whenScaled": "Retain"}
    made["spec"] |= {"replicas": 1, "podManagementPolicy": "Parallel", "persistentVolumeClaimRetentionPolicy": policy}
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    made["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": wanted}]
    by_original(taken, made)
    claims = [claim(taken.name, f"data-db-{number}") for number in range(2)]
    until(lambda: taken.live(claims[0]))
    run = alone(taken)
    shown = run.look()
    assert {str(gone.identity) for change in shown.plan.prunes for gone in change.takes if gone.counted} == {
        f"PersistentVolumeClaim/{taken.name}/data-db-0"
    }
    taken.kubectl.run("scale", "statefulset", "db", "-n", taken.name, "--replicas=2", "--current-replicas=1")
    until(lambda: taken.live(claims[1]))
    assert {str(each.identity) for each in run.carry_out(shown) if each.writes} == {f"ConfigMap/{taken.name}/left"}
    assert all(map(taken.live, (made, *claims)))
    assert pruned(taken) == {f"StatefulSet/{taken.name}/db"}
    until(lambda: not any(map(taken.live, claims)))
