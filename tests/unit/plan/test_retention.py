"""What goes by a policy because of a write or a deletion, by what lives and what will."""

from __future__ import annotations

from typing import Any

import pytest

from handler.config.settings import Prune
from handler.model.manifest import Manifest
from handler.model.names import Identity, identity_of
from handler.model.plan import Action, Change, FieldChange, Gone
from handler.plan.prune import PruneFacts, judge
from handler.plan.retention import (
    backing,
    goes_along,
    kept_by_claims,
    leaves_pods,
    lost_by_write,
    pod_of,
    reduced,
    refers,
    scaled_by,
    scales,
    unopened,
)
from tests.unit.plan.samples import document, target

Body = dict[str, Any]
CLAIMS = Prune(kinds=("PersistentVolumeClaim",))


def stateful(replicas: int | None = 1, scaled: str = "", deleted: str = "", start: int = 0, pods: int = 0, **spec: Any) -> Body:
    policy = {key: value for key, value in (("whenScaled", scaled), ("whenDeleted", deleted)) if value}
    fields: Body = {"ordinals": {"start": start}, "volumeClaimTemplates": [{"metadata": {"name": "data"}}], **spec}
    fields |= {"persistentVolumeClaimRetentionPolicy": policy} if policy else {}
    fields |= {"replicas": replicas} if replicas is not None else {}
    found = document("StatefulSet", "db", "apps/v1", spec=fields, status={"replicas": pods})
    found["metadata"] |= {"namespace": "shop", "uid": "u", "resourceVersion": "7"}
    return found


def lost(live: Body, wanted: Body) -> list[str]:
    return [gone.identity.name for gone in lost_by_write(live, wanted)]


@pytest.mark.parametrize(
    ("live", "wanted", "gone"),
    [
        (stateful(3), stateful(1), []),
        (stateful(3, "Delete"), stateful(1, "Delete"), ["data-db-1", "data-db-2"]),
        (stateful(3), stateful(1, "Delete"), ["data-db-1", "data-db-2"]),
        (stateful(3, "Delete"), stateful(1, "Retain"), []),
        (stateful(2, "Delete"), stateful(None, "Delete"), ["data-db-1"]),
        (stateful(1, "Delete"), stateful(0, "Delete"), ["data-db-0"]),
        (stateful(3, "Delete"), stateful(3, "Delete"), []),
        (stateful(1), stateful(3, "Delete"), []),
        (stateful(2, "Delete"), stateful(2, "Delete", start=1), ["data-db-0"]),
        (stateful(2, "Delete", start=3), stateful(2, "Delete"), ["data-db-3", "data-db-4"]),
        (stateful(1, "Delete", pods=3), stateful(1, "Delete"), []),
        (stateful(1, pods=3), stateful(1, "Delete"), ["data-db-1", "data-db-2"]),
    ],
)
def test_claims_go_by_the_policy_that_a_write_leaves(live: Body, wanted: Body, gone: list[str]) -> None:
    assert lost(live, wanted) == gone


def volume(policy: str, phase: str = "", claimed: str = "") -> Body:
    spec: Body = {"persistentVolumeReclaimPolicy": policy} | ({"claimRef": {"name": "data", "uid": claimed}} if claimed else {})
    found = document("PersistentVolume", "v", spec=spec, status={"phase": phase})
    found["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    return found


@pytest.mark.parametrize(
    ("phase", "before", "after", "goes"),
    [
        ("Released", "Retain", "Delete", True),
        ("Failed", "Retain", "Delete", True),
        ("Bound", "Retain", "Delete", False),
        ("Available", "Retain", "Delete", False),
        ("Released", "Delete", "Delete", False),
        ("Released", "Delete", "Retain", False),
        ("Released", "Retain", "Recycle", True),
    ],
)
def test_a_volume_that_its_claim_has_left_goes_once_it_gets_the_policy_delete(phase: str, before: str, after: str, goes: bool) -> None:
    assert bool(lost_by_write(volume(before, phase), volume(after))) is goes
    assert bool(lost_by_write(slim(volume(before, phase)), volume(after))) is goes, "a hook's object is kept so"


@pytest.mark.parametrize(
    ("policy", "before", "after", "goes"),
    [("Delete", "", "of-before", True), ("Delete", "now", "of-before", True), ("Retain", "", "x", False), ("Delete", "now", "now", False)],
)
def test_a_volume_that_git_gives_to_another_claim_by_its_uid_goes(policy: str, before: str, after: str, goes: bool) -> None:
    assert bool(lost_by_write(volume(policy, "Available", before), volume(policy, claimed=after))) is goes
    other = volume(policy, claimed="now")
    other["spec"]["claimRef"]["name"] = "other"
    assert bool(lost_by_write(volume(policy, "Bound", "now"), other)) is (policy == "Delete"), "a claim of another name has another uid"


def test_what_is_being_deleted_goes_with_the_last_finalizer_that_git_drops() -> None:
    metadata = {"name": "m", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/a"]}
    going = document("ConfigMap", "m", metadata=metadata)
    without = document("ConfigMap", "m", metadata={key: value for key, value in metadata.items() if key != "finalizers"})
    assert [gone.identity.name for gone in lost_by_write(going, without)] == ["m"]
    assert lost_by_write(going, going) == ()
    assert (
        lost_by_write(document("ConfigMap", "m", metadata={"uid": "u", "finalizers": ["example.com/a"]}), document("ConfigMap", "m")) == ()
    )


def test_a_finished_job_that_gets_a_time_to_live_goes_and_is_not_counted() -> None:
    live = document("Job", "j", "batch/v1", spec={}, status={"conditions": [{"type": "Complete", "status": "True"}]})
    live["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    wanted = {**live, "spec": {"ttlSecondsAfterFinished": 0}}
    assert [(gone.identity.name, gone.counted) for gone in lost_by_write(live, wanted)] == [("j", False)]
    assert (lost_by_write(wanted, wanted), lost_by_write({**live, "status": {}}, wanted)) == ((), ())
    assert lost_by_write({**live, "spec": {"ttlSecondsAfterFinished": 9}}, wanted), "an end that comes sooner"


def test_the_token_of_an_account_goes_once_it_names_another() -> None:
    def token(account: str) -> dict[str, Any]:
        made = document("Secret", "t", "v1", type="kubernetes.io/service-account-token")
        made["metadata"] |= {"uid": "u", "resourceVersion": "7", "annotations": {"kubernetes.io/service-account.name": account}}
        return made

    assert [(gone.identity.name, gone.counted) for gone in lost_by_write(token("bot"), token("nobody"))] == [("t", True)]
    assert lost_by_write(token("bot"), token("bot")) == ()
    stale = token("bot")
    stale["metadata"]["annotations"]["kubernetes.io/service-account.uid"] = "of-before"
    assert lost_by_write(slim(token("bot")), stale), "as exported YAML has it"


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ({"matchLabels": {"app": "db"}}, True),
        ({"matchLabels": {"app": "db", "tier": "x"}}, True),
        ({"matchLabels": {"app": "other"}}, False),
        ({"matchLabels": {"app": "db"}, "matchExpressions": [{"key": "app", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}, True),
        (None, False),
    ],
    ids=["fewer labels", "all labels", "another label", "what isn't certain", "as it was", "none"],
)
def test_a_statefulset_adopts_the_pods_that_its_selector_certainly_matches(selector: Any, matches: bool) -> None:
    labels = {"metadata": {"labels": {"app": "db", "tier": "x"}}}
    live = stateful(template=labels, selector={"matchExpressions": [{"key": "tier", "operator": "Exists"}]})
    assert leaves_pods(live, stateful(selector=selector)) is matches
    live["status"] |= {"currentRevision": "a", "updateRevision": "b"}
    assert leaves_pods(live, stateful(selector=selector)) is (selector == live["spec"]["selector"]), "some pods are of an earlier template"


def slim(live: Body) -> Body:
    return {key: live[key] for key in ("apiVersion", "kind", "metadata")} | reduced(live)


def pruned(live: Body, prune: Prune = CLAIMS) -> Change:
    return judge(slim(live), target(prune=prune), [], PruneFacts())


def test_claims_go_with_a_pruned_statefulset_only_where_prune_names_them() -> None:
    assert [gone.identity.name for gone in pruned(stateful(2, deleted="Delete")).takes] == ["data-db-0", "data-db-1"]
    kept, retained = pruned(stateful(2, deleted="Delete"), Prune()), pruned(stateful(2))
    assert (kept.takes, kept.reason) == ((), "no longer declared; its claims stay: whenDeleted is set to Retain first")
    assert (retained.takes, retained.reason) == ((), "no longer declared")
    going = stateful(2, deleted="Delete")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert (pruned(going).takes, pruned(going, Prune()).reason) == ((), "is being deleted already")


def named_claims(*names: str) -> list[Identity]:
    return [Identity("", "PersistentVolumeClaim", "shop", name) for name in names]


def test_claims_go_as_a_statefulset_is_made_over_pods_that_were_left_or_an_autoscaler_has_a_lower_maximum() -> None:
    there = named_claims("data-db-0", "data-db-1", "data-db-2", "data-db-x", "logs-db-2", "data-db-2-2")
    body = stateful(1, "Delete")
    made = Change(Action.CREATE, identity_of(body), manifest=Manifest.of(body))
    assert scales(made) == identity_of(body)
    assert [gone.identity.name for gone in scaled_by(made, body, there)] == ["data-db-1", "data-db-2"]
    assert scaled_by(made, stateful(1), there) == ()
    assert [pod_of(gone.identity, "db").name for gone in scaled_by(made, body, there)] == ["db-1", "db-2"]
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db"}, "maxReplicas": 2}
    scaler = document("HorizontalPodAutoscaler", "h", "autoscaling/v2", metadata={"namespace": "shop"}, spec=spec)
    for fields, asked in (("spec.maxReplicas", True), ("spec.minReplicas", False)):
        lower = Change(Action.UPDATE, identity_of(scaler), "u", fields=(FieldChange(fields, "2", "3"),), manifest=Manifest.of(scaler))
        assert (scales(lower) == identity_of(body)) is asked
    assert [gone.identity.name for gone in scaled_by(lower, stateful(3, "Delete"), there)] == ["data-db-2"]
    assert scales(Change(Action.UPDATE, identity_of(body), "u", manifest=Manifest.of(body))) is None


def test_a_statefulset_whose_claims_would_go_too_doesnt_go_with_its_owner() -> None:
    assert kept_by_claims(stateful(deleted="Delete")) == "its claims would go, too"
    deployment = document("Deployment", api="apps/v1", spec=stateful(deleted="Delete")["spec"], metadata={"namespace": "shop"})
    assert kept_by_claims(stateful()) == kept_by_claims(stateful(scaled="Delete")) == kept_by_claims(deployment) == ""


def test_a_claim_goes_with_an_owner_by_its_uid() -> None:
    claim = document("PersistentVolumeClaim", metadata={"ownerReferences": [{"uid": "other"}, {"uid": "u"}]})
    assert (refers(claim, "u"), refers(claim, "x"), refers(document("PersistentVolumeClaim"), "u")) == (True, False, False)


def test_what_goes_by_a_write_waits_unless_prune_names_its_kind() -> None:
    live = stateful(2, "Delete")
    scaled = Change(Action.UPDATE, identity_of(live), "u", takes=lost_by_write(live, stateful(1, "Delete")))
    along = Gone(identity_of(volume("Delete")), "v", scaled.takes[0].cause, scaled.identity)
    changes = [scaled, pruned(stateful(2, deleted="Delete"))]
    assert [key[1] for key in unopened(changes, target())] == ["PersistentVolumeClaim/shop/data-db-1"]
    assert unopened([Change(Action.UPDATE, scaled.identity, "u", takes=(*scaled.takes, along))], target(prune=CLAIMS)) == {}
    released = Change(Action.UPDATE, along.identity, "v", takes=lost_by_write(volume("Retain", "Released"), volume("Delete")))
    assert len(unopened([released], target(prune=CLAIMS))) == 1
    assert unopened([released], target(prune=Prune(kinds=("PersistentVolume",)))) == {}


def test_what_holds_data_of_another_object_goes_with_it_by_its_policy() -> None:
    claim = document("PersistentVolumeClaim", "c", spec={"volumeName": "v", "resources": {}})
    snapshot = document("VolumeSnapshot", "s", "snapshot.storage.k8s.io/v1", status={"boundVolumeSnapshotContentName": "content"})
    found = [backing(slim(body)) for body in (claim, snapshot, document("PersistentVolumeClaim", "unbound", spec={}))]
    assert [one and str(one) for one in found] == ["PersistentVolume/v", "VolumeSnapshotContent/content", None]
    content = document("VolumeSnapshotContent", "content", "snapshot.storage.k8s.io/v1", spec={"deletionPolicy": "Delete"})
    assert [goes_along(each) for each in (volume("Delete"), volume("Retain"), content)] == [True, False, True]
