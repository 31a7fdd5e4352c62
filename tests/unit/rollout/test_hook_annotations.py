"""Annotations of Argo CD and Helm, as public repositories write them, are read the way Argo CD reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handler.model.health import Status
from handler.model.manifest import Manifest
from handler.model.names import GroupKind, Identity
from handler.model.rollout import ARGO_HOOK, HELM_HOOK, Hook, Phase, Policy
from handler.render.documents import documents
from handler.render.objects import objects
from handler.rollout import hook_annotations
from handler.rollout.hook_annotations import HookRead, ended, has_ttl, is_act, is_over, lasts, read

SAMPLES = Path(__file__).parent / "hooks"
JOB = Identity("batch", "Job", "shop", "migrate")
POD = Identity("", "Pod", "shop", "migrate")
PRE, SYNC, POST, FAIL, SKIP = Phase.PRE_SYNC, Phase.SYNC, Phase.POST_SYNC, Phase.SYNC_FAIL, Phase.SKIP
BEFORE, SUCCEEDED, FAILED = Policy.BEFORE, Policy.SUCCEEDED, Policy.FAILED


def sample(name: str) -> dict[str, Manifest]:
    """Render one file of hooks as the file renderer does."""
    found = list(objects(documents((SAMPLES / name).read_bytes(), name)))
    assert all(isinstance(one, Manifest) for one in found), found
    return {str(one.identity): one for one in found if isinstance(one, Manifest)}


def readings(name: str) -> dict[str, HookRead]:
    return {key: read(one.body(), one.identity, one.place) for key, one in sample(name).items()}


def annotated(identity: Identity = JOB, **annotations: str) -> HookRead:
    """Read an object with these annotations: `argo`, `wave`, `argo_policy`, `helm`, `weight`, `helm_policy`."""
    names = {
        "argo": ARGO_HOOK,
        "wave": hook_annotations.ARGO_WAVE,
        "argo_policy": hook_annotations.ARGO_POLICY,
        "helm": HELM_HOOK,
        "weight": hook_annotations.HELM_WEIGHT,
        "helm_policy": hook_annotations.HELM_POLICY,
    }
    return read({"metadata": {"annotations": {names[key]: value for key, value in annotations.items()}}}, identity, "job.yaml:3")


def hook(of: HookRead) -> tuple[set[Phase], int, set[Policy]]:
    assert isinstance(of.hook, Hook), of
    return set(of.hook.phases), of.hook.wave, set(of.hook.policies)


def test_hooks_of_argo_cd() -> None:
    found = readings("argo.yaml")
    migrate = next(key for key in found if key.startswith("Job/schema-migrate-"))
    assert hook(found[migrate]) == ({PRE}, 0, {BEFORE})
    assert hook(found["Job/warm-caches"]) == ({SYNC, POST}, 5, {SUCCEEDED, FAILED})
    assert hook(found["Job/tell-the-team"]) == ({FAIL}, 0, {BEFORE})
    assert hook(found["ConfigMap/only-for-kustomize"]) == ({SKIP}, 0, {BEFORE})
    assert not found["ConfigMap/only-for-kustomize"].note
    assert hook(found["Job/say-goodbye"])[0] == {SKIP}
    assert found["Job/say-goodbye"].note == "Job/say-goodbye: hook PostDelete is never run by a rollout"
    assert found["Namespace/shop"] == HookRead(note="Namespace/shop: is applied like any other object, not as a PreSync hook")


def test_hooks_of_helm() -> None:
    found = readings("helm.yaml")
    assert hook(found["ServiceAccount/release-migrate"]) == ({PRE}, -10, {BEFORE})
    assert hook(found["Job/release-migrate"]) == ({PRE}, -5, {BEFORE, SUCCEEDED})
    assert hook(found["Job/release-admission-patch"]) == ({POST}, 0, {BEFORE})
    assert hook(found["Pod/release-test-connection"])[0] == {SKIP}
    assert found["Pod/release-test-connection"].note == "Pod/release-test-connection: hook test is never run by a rollout"
    assert hook(found["Job/release-cleanup"]) == ({PRE}, 0, {FAILED})
    told = "Job/release-cleanup: hook pre-rollback, post-delete is never run by a rollout; it runs as PreSync"
    assert found["Job/release-cleanup"].note == told
    assert found["CustomResourceDefinition/widgets.acme.io"] == HookRead()
    assert hook(found["Job/release-both"]) == ({PRE}, -1, {FAILED}), "Argo CD's count"


def test_an_object_without_such_annotations_is_no_hook() -> None:
    assert annotated(wave="3") == HookRead()
    assert annotated(argo_policy="HookSucceeded") == HookRead()
    assert read({"metadata": {}}, JOB, "") == read({}, JOB, "") == HookRead()


@pytest.mark.parametrize(
    ("annotations", "told"),
    [
        ({"argo": "PreSnyc"}, f"{ARGO_HOOK}: 'PreSnyc' is unknown; did you mean PreSync? Known are PreSync, Sync, "),
        ({"argo": "presync"}, f"{ARGO_HOOK}: 'presync' is unknown; did you mean PreSync?"),
        ({"argo": "pre-install"}, f"{ARGO_HOOK}: 'pre-install' is unknown; "),
        (
            {"argo": "PreSync", "argo_policy": "Never"},
            f"{hook_annotations.ARGO_POLICY}: 'Never' is unknown; known are BeforeHookCreation, HookSucc",
        ),
        ({"argo": "PreSync", "wave": "first"}, f"{hook_annotations.ARGO_WAVE}: 'first' is not a whole number"),
        ({"helm": "pre-instal"}, f"{HELM_HOOK}: 'pre-instal' is unknown; did you mean pre-install?"),
        (
            {"helm": "pre-install", "helm_policy": "hook-succeded"},
            f"{hook_annotations.HELM_POLICY}: 'hook-succeded' is unknown; did you mean hook-succe",
        ),
        ({"helm": "pre-install", "weight": "1.5"}, f"{hook_annotations.HELM_WEIGHT}: '1.5' is not a whole number"),
        ({"helm": "pre-install", "weight": "1_0"}, f"{hook_annotations.HELM_WEIGHT}: '1_0' is not a whole number"),
        ({"argo": "PreSync", "wave": "\u0663"}, f"{hook_annotations.ARGO_WAVE}: '\u0663' is not a whole number"),
    ],
)
def test_an_unknown_hook_phase_or_policy_is_refused_with_the_known_ones(annotations: dict[str, str], told: str) -> None:
    (problem,) = annotated(JOB, **annotations).problems
    assert str(problem).startswith(f"job.yaml:3: Job/shop/migrate: {told}")


def test_all_mistakes_of_an_object_are_told_at_once() -> None:
    assert len(annotated(argo="PreSnyc,Snyc", argo_policy="Never", wave="first").problems) == 4


def test_words_may_have_spaces_and_empty_parts_around_them() -> None:
    assert hook(annotated(argo=" PreSync ,, SyncFail", argo_policy="HookFailed, ")) == ({PRE, FAIL}, 0, {FAILED})


@pytest.mark.parametrize("kind", [GroupKind("", "Namespace"), GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")])
def test_namespaces_and_crds_are_never_hooks_that_are_deleted(kind: GroupKind) -> None:
    found = annotated(Identity(kind.group, kind.kind, "", "shop"), helm="pre-install")
    assert found.hook is None
    assert lasts(kind)


def test_a_hook_delete_policy_never_deletes_pvcs_and_stateful_sets() -> None:
    assert lasts(GroupKind("", "PersistentVolumeClaim"))
    assert lasts(GroupKind("apps", "StatefulSet"))
    assert not lasts(GroupKind("batch", "Job"))
    kept = annotated(Identity("", "PersistentVolumeClaim", "shop", "data"), argo="PreSync")
    assert kept.hook is not None
    assert kept.note.endswith("shop/data: is created as a PreSync hook, and no policy ever deletes it: data would go with it")


def pod(phase: str, restarts: str = "Never", ready: str = "True") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {}, "spec": {"restartPolicy": restarts}, "status": {"phase": phase, "conditions": conditions}}


def test_a_hook_pod_must_have_succeeded() -> None:
    running = ended(pod("Running"), POD)
    assert running is not None
    assert running.status is Status.IN_PROGRESS
    assert ended(pod("Succeeded"), POD) is None
    assert is_over(pod("Succeeded"), POD)
    assert ended(pod("Running", ready="False"), POD) is None, "why it isn't ready is told as of any pod"
    assert ended(pod("Running", "Always"), POD) is None, "one that is to run for ever is healthy when it is ready"


def test_a_suspended_hook_job_isnt_done() -> None:
    conditions = [{"type": "Suspended", "status": "True"}]
    suspended: dict[str, Any] = {"metadata": {}, "spec": {"suspend": True}, "status": {"conditions": conditions}}
    found = ended(suspended, JOB)
    assert found is not None
    assert found.status is Status.IN_PROGRESS
    assert not is_over(suspended, JOB)
    conditions.append({"type": "Failed", "status": "True"})
    assert ended(suspended, JOB) is None
    assert is_over({"status": {"conditions": [{"type": "Complete", "status": "True"}]}}, JOB)


@pytest.mark.parametrize(
    ("status", "expected"),
    [({}, Status.IN_PROGRESS), ({"phase": "Running"}, Status.IN_PROGRESS), ({"phase": "Error", "message": "exit code 1"}, Status.FAILED)],
)
def test_a_workflow_tells_by_its_phase(status: dict[str, str], expected: Status) -> None:
    workflow = Identity("argoproj.io", "Workflow", "shop", "migrate")
    found = ended({"metadata": {}, "status": status}, workflow)
    assert found is not None
    assert found.status is expected
    assert is_over({"status": {"phase": "Succeeded"}}, workflow)
    assert is_act(workflow)


def test_ttl_seconds_after_finished_is_known() -> None:
    assert has_ttl({"spec": {"ttlSecondsAfterFinished": 0}})
    assert not has_ttl({"spec": {}})


def test_messages_about_hook_annotations_are_cut() -> None:
    """An annotation may hold a quarter of a megabyte."""
    found = annotated(argo=",".join(f"PreSyn{number}" for number in range(20_000)), wave="9" * 200_000)
    assert len(found.problems) == 7
    assert f"{ARGO_HOOK}: 19,995 more words are unknown" in [each.message for each in found.problems]
    assert all(len(each.message) < 300 for each in found.problems)


@pytest.mark.parametrize("shape", [None, [], "text", {"annotations": "text"}, {"annotations": ["argocd.argoproj.io/hook"]}])
def test_a_body_of_any_shape_is_read(shape: Any) -> None:
    assert read({"metadata": shape}, JOB, "") == HookRead()
    assert ended({"metadata": shape, "spec": shape, "status": shape}, POD) is None
    assert not is_over({"status": shape}, JOB)
