"""What the server's word makes of one object."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import ApplySetId, RecreateSettings
from handler.model.errors import ApiRefused, Problem
from handler.model.names import GroupKind
from handler.model.plan import Action, Change
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.judge import RECREATE, Judge, also_owned, lift, terminating
from handler.plan.ownership import ForeignOwner
from handler.plan.prune import ALLOW
from handler.plan.system_objects import MADE_AGAIN
from handler.plan.takeover import takeover
from tests.unit.plan.samples import OURS, desired, document, entry, instance, live, target

IMMUTABLE = 'Deployment.apps "web" is invalid: spec.selector: Invalid value: {"app":"x"}: field is immutable'
SCOPED = ("Namespace", "CustomResourceDefinition")
KUBERNIXOS = {"labels": {"kubernixos": "c"}}
BOTH, FLUX = {"labels": {"helm.toolkit.fluxcd.io/name": "web", "kubernixos": "c"}}, "Flux HelmRelease web"
STOP = "; first stop Flux: flux suspend helmrelease web -n NAMESPACE"
SET = ApplySetId("applyset-" + "a" * 43 + "-v1")
TAKE, ONCE = "or take it over as it is: add to target shop: adopt: ", "or once: anneal adopt shop "
FINISHED = {"conditions": [{"type": "Suspended", "status": "True"}, {"type": "Complete", "status": "True"}]}


def judge(**settings: Any) -> Judge:
    return Judge(target(cluster_scoped=SCOPED, **settings), OURS)


def item(kind: str = "ConfigMap", api: str = "v1", **parts: Any) -> Desired:
    (found,) = desired(document(kind, api=api, **parts), cluster_scoped=SCOPED, namespaces=("shop", "web"))
    return found


def applied(declared: Desired, **parts: Any) -> dict[str, Any]:
    return live(declared.manifest.body()) | parts


def refused(
    declared: Desired, found: dict[str, Any] | None, message: str = IMMUTABLE, status: int = 422, **settings: Any
) -> Change | Problem:
    error = ApiRefused(Problem(str(declared.identity), message, fix="fix"), status=status, reason="Invalid")
    return judge(**settings).refused(declared, found, error)


def test_a_missing_object_is_created() -> None:
    declared = item()
    assert judge().absent(declared) == Change(Action.CREATE, declared.identity, manifest=declared.manifest)
    assert judge().absent(declared, deferred=True).deferred


def test_an_object_that_the_dry_run_finds_equal_is_unchanged() -> None:
    declared = item(data={"a": "1"})
    found = applied(declared)
    wanted = found | {"metadata": found["metadata"] | {"resourceVersion": "8", "generation": 2}}
    change = judge().present(declared, found, wanted)
    assert (change.action, change.uid, change.resource_version, change.manifest) == (Action.UNCHANGED, "uid-web", "7", declared.manifest)


def test_a_dry_run_difference_is_an_update_that_names_the_fields() -> None:
    declared = item(data={"a": "1"})
    change = judge().present(declared, applied(declared, data={"a": "0"}), applied(declared))
    assert (change.action, change.reason, change.uid, change.resource_version) == (Action.UPDATE, "", "uid-web", "7")
    assert [(each.path, each.declared, each.live) for each in change.fields] == [("data.a", "1", "0")]
    assert not change.adopted
    assert not change.managed_fields


def test_an_adopted_object_takes_over_what_kubectl_wrote() -> None:
    declared = item(data={"a": "1"})
    entries = [entry({"f:data": {"f:b": {}}}, "kubectl-client-side-apply", "Update")]
    found = live(document(metadata={"namespace": "shop"}), managedFields=entries)
    change = judge().present(declared, found, found, takeover(found, declared.manifest.body(), adopted=True))
    assert (change.action, change.reason, change.adopted) == (Action.UPDATE, "adopted", True)
    assert json.loads(change.managed_fields)[0]["fieldsV1"] == {"f:data": {"f:b": {}}}


def test_a_takeover_that_changes_nothing_isnt_written_on_what_is_ours() -> None:
    declared = item()
    found = applied(declared)
    found["metadata"]["managedFields"].append(entry({"f:data": {"f:b": {}}}, "kubectl-edit", "Update"))
    taken = takeover(found, declared.manifest.body(), adopted=False)
    assert taken
    assert judge().present(declared, found, found, taken).action is Action.UNCHANGED


@pytest.mark.parametrize(
    ("metadata", "adopt", "told"),
    [
        ({}, "unowned", ""),
        ({}, "never", "ConfigMap/shop/web: exists already and isn't ours; set on target shop: adopt: unowned"),
        (
            {"labels": {"kapp.k14s.io/app": "1"}, "ownerReferences": [{"kind": "Pod", "name": "x", "controller": True}]},
            "unowned",
            "ConfigMap/shop/web: belongs to Pod x and kapp app 1; take it out of there first, or out of target shop",
        ),
        (KUBERNIXOS, "never", "ConfigMap/shop/web: belongs to Kubernixos checksum c; add to target shop: adopt: [kubernixos]"),
        (KUBERNIXOS, ("kubernixos",), ""),
        (
            KUBERNIXOS,
            ("fleet", "flux"),
            (
                "ConfigMap/shop/web: belongs to Kubernixos checksum c; add to target shop: adopt: [flux, kubernixos, fleet]; "
                "or once: anneal adopt shop --from kubernixos"
            ),
        ),
        (
            BOTH,
            "unowned",
            (
                f"ConfigMap/shop/web: belongs to {FLUX} and Kubernixos checksum c; add to target shop: adopt: [flux, kubernixos]; "
                f"or once: anneal adopt shop --from flux --from kubernixos{STOP}"
            ),
        ),
        (
            BOTH,
            ("kubernixos",),
            (
                f"ConfigMap/shop/web: belongs to {FLUX}; add to target shop: adopt: [flux, kubernixos]; "
                f"or once: anneal adopt shop --from flux{STOP}"
            ),
        ),
        ({}, ("flux",), ""),
    ],
)
def test_an_object_of_another_tool_is_adopted_only_where_the_target_names_that_tool(
    metadata: dict[str, Any], adopt: Any, told: str
) -> None:
    problem = judge(adopt=adopt).refusal_to_adopt(item(), document(metadata=metadata))
    assert (f"{problem.subject}: {problem.message}; {problem.fix}" if problem else "") == told


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (None, f"x: is a's; ask a; {TAKE}[{SET}]; {ONCE}--from {SET}"),
        (
            ForeignOwner("Helm release web", ("helm",), ("once it is over",)),
            (
                "x: is a's; it belongs to Helm release web, too; first add to target shop: adopt: [helm]; then ask a; "
                f"{TAKE}[helm, {SET}]; {ONCE}--from helm --from {SET}; once it is over"
            ),
        ),
        (ForeignOwner("Pod x"), "x: is a's; it belongs to Pod x, too; first take it out of Pod x; then ask a"),
    ],
)
def test_what_two_have_is_refused_with_all_that_its_ways_out_need(other: ForeignOwner | None, told: str) -> None:
    assert str(also_owned(Problem("x", "is a's", fix="ask a"), target(), SET, other)) == told


def test_whatever_a_target_adopts_no_step_or_hook_acts_on_what_another_tool_deployed() -> None:
    for adopt in ("unowned", ("kubernixos",)):
        problem = judge(adopt=adopt).refusal_to_use(item(), document(metadata=KUBERNIXOS), "let it be")
        assert problem
        assert (problem.message, problem.fix) == ("belongs to Kubernixos checksum c", "let it be")
        assert judge(adopt=adopt).refusal_to_use(item(), document(), "let it be") is None
    assert judge(adopt="never").refusal_to_use(item(), document(), "let it be")


def test_an_instance_takes_over_nothing_unless_its_trigger_says_so() -> None:
    problem = Judge(instance(adopt="never"), OURS).refusal_to_adopt(item(), document())
    assert problem
    assert problem.message == "exists already and isn't ours"
    assert problem.fix.endswith("add to target shop: trigger: {resource: {adoptUnowned: true}}")


@pytest.mark.parametrize(
    "words",
    [
        IMMUTABLE,
        'Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.0.9"]: may not change once set',
        "StatefulSet.apps \"web\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
        'RoleBinding "web" is invalid: roleRef: Invalid value: {}: cannot change roleRef',
        'Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`',
        'PriorityClass "web" is invalid: value: Forbidden: may not be changed in an update.',
        'Widget "web" is invalid: spec.size: Invalid value: "integer": Value is immutable',
        'X "web" is invalid: [spec.a: Invalid value: 1: field is immutable, spec.b: Forbidden: field is immutable when `immutable` is set]',
        "field is immutable, field data (the server's text is left out: it may quote values)",
    ],
)
def test_the_servers_words_about_immutable_fields_recreate_where_that_is_allowed(words: str) -> None:
    declared = item(metadata={"annotations": {RECREATE: "allow"}})
    change = refused(declared, applied(declared), words)
    assert isinstance(change, Change)
    assert (change.action, change.uid, change.resource_version) == (Action.RECREATE, "uid-web", "7")
    assert (change.reason, change.manifest, change.removes) == ("an immutable field changed", declared.manifest, True)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ('ConfigMap "web" is invalid: data.a: Invalid value: 1: must be text', 422),
        ('admission webhook "tags" denied the request: images need immutable tags', 403),
        ('admission webhook "tags" denied the request: images need immutable tags', 400),
        ('admission webhook "tags" denied the request: images need immutable tags', 422),
        ("web is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: images need immutable tags", 422),
        ("web is forbidden: ValidatingAdmissionPolicy 'immutable' with binding 'b' denied request: no", 422),
        (IMMUTABLE, 409),
        (IMMUTABLE, 0),
        ('X "w" is invalid: [spec.a: Invalid value: 1: field is immutable, spec.b: Invalid value: 2: must be odd]', 422),
        ('X "w" is invalid: [spec.b: Required value, spec.a: Invalid value: 1: field is immutable]', 422),
        ('X "w" is invalid: [spec.a: Forbidden: field is immutable when `immutable` is set, spec.b: Too long: must have at most 3]', 422),
    ],
)
def test_an_invalid_object_is_never_recreated(words: str, status: int) -> None:
    declared = item(metadata={"annotations": {RECREATE: "allow"}})
    found = refused(declared, applied(declared), words, status, recreate=RecreateSettings(("ConfigMap",)))
    assert found == Problem("ConfigMap/shop/web", words, "0.yaml:1", "fix")


def test_a_missing_object_cant_be_recreated() -> None:
    declared = item(metadata={"annotations": {RECREATE: "allow"}})
    assert isinstance(refused(declared, None), Problem)


@pytest.mark.parametrize("kinds", [(), ("ConfigMap",)])
def test_an_unowned_object_is_never_recreated(kinds: tuple[str, ...]) -> None:
    declared = item(metadata={"annotations": {RECREATE: "allow"}})
    found = refused(declared, live(document(metadata={"namespace": "shop"})), recreate=RecreateSettings(kinds))
    assert isinstance(found, Problem)
    assert "isn't ours to delete" in found.fix


def test_a_finished_job_that_isnt_ours_stays_too() -> None:
    declared = item("Job", "batch/v1")
    assert isinstance(refused(declared, live(document("Job", api="batch/v1")) | {"status": FINISHED}), Problem)


OWNER = {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "u"}]}
KEPT = [
    ("ConfigMap", {"annotations": {"anneal.dev/prune": "disabled"}}, "protected by anneal.dev/prune: disabled"),
    ("ConfigMap", {"annotations": {"helm.sh/resource-policy": "keep"}}, "protected by helm.sh/resource-policy: keep"),
    ("Job", {"labels": {"kustomize.toolkit.fluxcd.io/prune": "disabled"}}, "protected by kustomize.toolkit.fluxcd.io/prune: disabled"),
    ("ConfigMap", OWNER, "owned by Pod x"),
    ("Job", OWNER, "owned by Pod x"),
]


@pytest.mark.parametrize(("kind", "metadata", "reason"), KEPT)
def test_an_object_that_prune_would_keep_isnt_recreated(kind: str, metadata: dict[str, Any], reason: str) -> None:
    """Neither the annotation, nor the target's word, nor that a Job has finished is a word against it."""
    declared = item(kind, "batch/v1" if kind == "Job" else "v1", metadata={"annotations": {RECREATE: "allow"}})
    found = applied(declared, status=FINISHED)
    for part, value in metadata.items():
        found["metadata"][part] = {**found["metadata"][part], **value} if isinstance(value, dict) else value
    problem = refused(declared, found, recreate=RecreateSettings((kind,)))
    assert isinstance(problem, Problem)
    assert (problem.subject, problem.place) == (f"{kind}/shop/web", "0.yaml:1")
    assert problem.message == f"an immutable field changed: {IMMUTABLE}; it would have to be deleted to be made anew, but: {reason}"
    assert problem.fix.startswith("lift what keeps it from the live object")


def test_a_system_namespace_is_never_recreated() -> None:
    more: dict[str, Any] = {"cluster_scoped": SCOPED, "namespaces": ("*",)}
    (declared,) = desired(document("Namespace", "kube-public"), **more)
    problem = refused(declared, applied(declared), recreate=RecreateSettings(("Namespace",)))
    assert isinstance(problem, Problem)
    assert problem.message.endswith("but: system namespace")


def test_what_the_cluster_makes_is_never_recreated() -> None:
    (declared,) = desired(document("Service", "kubernetes", metadata={"namespace": "default"}), namespaces=("*",))
    problem = refused(declared, applied(declared), recreate=RecreateSettings(("Service",)))
    assert isinstance(problem, Problem)
    assert problem.message.endswith(f"but: {MADE_AGAIN}")


GUARDED = [
    ("CustomResourceDefinition", "apiextensions.k8s.io/v1", "CustomResourceDefinition.apiextensions.k8s.io"),
    ("Namespace", "v1", "Namespace"),
    ("PersistentVolumeClaim", "v1", "PersistentVolumeClaim"),
    ("StatefulSet", "apps/v1", "StatefulSet.apps"),
]


@pytest.mark.parametrize(("kind", "api", "name"), GUARDED)
def test_no_fix_deletes_an_object_that_holds_data(kind: str, api: str, name: str) -> None:
    declared = item(kind, api)
    protected = applied(declared)
    protected["metadata"]["annotations"] = {**protected["metadata"].get("annotations", {}), ALLOW: "disabled"}
    problem = refused(declared, protected, recreate=RecreateSettings((name,)))
    assert isinstance(problem, Problem)
    ways = [problem.fix, judge().recreating_loses(GroupKind.parse(name)), lift(GroupKind.parse(name), "remove the step")]
    assert ways[1].startswith("write action: CreateOrUpdate; ")
    assert not any(word in way for way in ways for word in ("recreate", "delete", "lift"))


@pytest.mark.parametrize(("kind", "api", "name"), GUARDED)
def test_a_kind_that_holds_data_is_recreated_only_if_recreate_kinds_names_it(kind: str, api: str, name: str) -> None:
    declared = item(kind, api, metadata={"annotations": {RECREATE: "allow"}})
    problem = refused(declared, applied(declared))
    assert isinstance(problem, Problem)
    assert problem.fix.startswith("take that change back in git")
    for allowed in (name, kind):
        assert isinstance(refused(declared, applied(declared), recreate=RecreateSettings((allowed,))), Change)


def test_a_statefulset_is_made_anew_only_where_it_adopts_its_pods() -> None:
    def declared(app: str, volume: str) -> Desired:
        spec = {"selector": {"matchLabels": {"app": app}}, "template": {"metadata": {"labels": {"app": app}}}, "serviceName": volume}
        return item("StatefulSet", "apps/v1", spec=spec)

    lives, allowed = applied(declared("db", "a")), RecreateSettings(("StatefulSet.apps",))
    assert isinstance(refused(declared("db", "b"), lives, recreate=allowed), Change)
    problem = refused(declared("other", "b"), lives, recreate=allowed)
    assert isinstance(problem, Problem)
    assert problem.message.endswith("; made anew, it might not adopt its pods, which spec.selector must match for certain")
    assert problem.fix.startswith("take that change back in git; what it holds can only be moved by hand")


@pytest.mark.parametrize(
    ("kind", "api", "status", "fix"),
    [
        ("ConfigMap", "v1", {}, f'annotate it {RECREATE}: "allow", or add to target shop: recreate: {{kinds: [ConfigMap]}}'),
        ("Job", "batch/v1", {}, "wait until the Job has finished, or add to target shop: recreate: {kinds: [Job.batch]}"),
        (
            "Job",
            "batch/v1",
            {"conditions": [{"type": "Failed", "status": "False"}]},
            "wait until the Job has finished, or add to target shop: recreate: {kinds: [Job.batch]}",
        ),
        ("Job", "batch/v1", FINISHED, ""),
        ("Job", "batch/v1", {"conditions": [{"type": "Failed", "status": "True"}]}, ""),
        ("ConfigMap", "v1", FINISHED, f'annotate it {RECREATE}: "allow", or add to target shop: recreate: {{kinds: [ConfigMap]}}'),
    ],
)
def test_an_immutable_field_of_an_unfinished_job_is_refused_with_the_fix(kind: str, api: str, status: dict[str, Any], fix: str) -> None:
    declared = item(kind, api)
    found = refused(declared, applied(declared, status=status))
    assert (found.fix if isinstance(found, Problem) else "") == fix
    assert isinstance(found, Change) or found.message.startswith("an immutable field changed: ")


@pytest.mark.parametrize(
    ("mode", "reason", "annotations", "action", "said"),
    [
        (Mode.APPLY, "", {}, None, ""),
        (Mode.LEAVE, "git says so", {}, Action.SKIP, "git says so"),
        (Mode.APPLY, "", {"kustomize.toolkit.fluxcd.io/reconcile": "disabled"}, Action.SKIP, "set live"),
        (Mode.KEEP, "ssa: IfNotPresent", {}, Action.SKIP, "only created where it is missing: ssa: IfNotPresent"),
        (Mode.KEEP, "", {}, Action.UNCHANGED, ""),
    ],
)
def test_objects_kept_by_an_annotation_are_skipped(
    mode: Mode, reason: str, annotations: dict[str, str], action: Action | None, said: str
) -> None:
    declared = replace(item(), mode=mode, reason=reason)
    found = applied(declared)
    found["metadata"]["annotations"].update(annotations)
    kept = judge().kept(declared, found)
    assert (kept and kept.action) == action
    assert said in (kept.reason if kept else "")


def test_an_unowned_object_of_a_create_if_not_exist_step_is_skipped() -> None:
    kept = judge().kept(replace(item(), mode=Mode.KEEP), document(metadata={"namespace": "shop", "uid": "u", "resourceVersion": "1"}))
    assert kept
    assert (kept.action, kept.reason) == (Action.SKIP, "lives already and isn't ours; its step would only create it")


def test_a_terminating_object_tells_since_when_and_its_finalizers() -> None:
    declared, since = item(), "2026-11-22T10:00:00Z"
    found = applied(declared)
    change = judge().present(declared, found, found)
    assert terminating(found, change) == change
    found["metadata"] |= {"deletionTimestamp": since, "finalizers": ["acme.io/hold"]}
    assert terminating(found, change) == replace(change, terminating=since, finalizers=("acme.io/hold",))
    recreated = replace(change, action=Action.RECREATE)
    assert terminating(found, recreated) == recreated
