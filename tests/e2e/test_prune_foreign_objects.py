"""Nothing is deleted but what is ours beyond doubt: planted neighbours survive every prune."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from handler.config.settings import Prune
from handler.engine.apply import wait_deleted as gone
from handler.model.names import IDENTITY, PART_OF
from handler.model.result import Outcome
from tests.e2e.documents import Document, claim, config_map, definition, namespace, offer, service
from tests.e2e.one_target import PATH, Shop, told
from tests.e2e.serve_process import until

_MERGE = "application/merge-patch+json"
PROTECTIONS = [
    {"anneal.dev/prune": "disabled"},
    {"kustomize.toolkit.fluxcd.io/prune": "disabled"},
    {"argocd.argoproj.io/sync-options": "Prune=false"},
    {"argocd.argoproj.io/sync-options": "Validate=false,Prune=confirm"},
    {"helm.sh/resource-policy": "keep"},
    {"cli-utils.sigs.k8s.io/on-remove": "keep"},
    {"client.lifecycle.config.k8s.io/deletion": "detach"},
    {"kapp.k14s.io/delete-strategy": "orphan"},
    {"kluctl.io/skip-delete": "true"},
]


def prune_all_but(shop: Shop, *kept: Document) -> None:
    """Prune everything else that the shop has, once by a push and once more by a drift run."""
    shop.push(*kept)
    result = shop.run()
    assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(result)
    shop.run("drift")


def copied(live: Document, name: str) -> Document:
    """Copy an object as operators do: labels and annotations come along."""
    clone = copy.deepcopy(live)
    clone["metadata"] = {key: live["metadata"][key] for key in ("namespace", "labels", "annotations")} | {"name": name}
    return clone


def test_objects_with_a_copied_inventory_label_arent_pruned(shop: Shop) -> None:
    keep, gone = config_map(shop.name, "keep"), config_map(shop.name, "gone")
    shop.push(keep, gone)
    shop.applied()
    live = shop.live(gone)
    assert live
    unmarked, labelled, copy_of = config_map(shop.name, "n1"), config_map(shop.name, "n2"), copied(live, "n3")
    labelled["metadata"]["labels"] = {PART_OF: shop.applyset}
    stranger = config_map(shop.name, "n4")
    stranger["metadata"] |= {"labels": {PART_OF: shop.applyset}, "annotations": {IDENTITY: f"other:/ConfigMap:{shop.name}/n4"}}
    neighbours = [unmarked, labelled, copy_of, stranger]
    for neighbour in neighbours:
        shop.kubectl.run("create", "-f", "-", given=_json(neighbour))
    before = shop.versions(neighbours)
    prune_all_but(shop, keep)
    assert shop.live(gone) is None
    assert shop.versions(neighbours) == before


def test_what_the_cluster_makes_in_a_namespace_is_neither_replaced_nor_pruned(shop: Shop) -> None:
    """Its account is patched, as people do; the certificate isn't even written, whatever git or an earlier version says of it."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": shop.name}}
    root, keep = config_map(shop.name, "kube-root-ca.crt", {"ca.crt": "of git"}), config_map(shop.name, "keep")
    until(lambda: shop.live(root) and shop.live(account))
    before = shop.versions([root])
    shop.push(keep, root, account | {"imagePullSecrets": [{"name": "registry"}]})
    result = shop.applied()
    assert result.plan
    left = next(change for change in result.plan.changes if change.identity.name == "kube-root-ca.crt")
    assert left.reason == "the cluster writes it into every namespace"
    live = shop.live(account)
    assert live
    assert live["imagePullSecrets"] == [{"name": "registry"}]
    assert shop.versions([root]) == before
    marks = {"labels": {PART_OF: shop.applyset}, "annotations": {IDENTITY: f"{shop.name}:/ConfigMap:{shop.name}/kube-root-ca.crt"}}
    shop.kubectl.ask("PATCH", f"/api/v1/namespaces/{shop.name}/configmaps/kube-root-ca.crt", {"metadata": marks}, _MERGE)
    before = shop.versions([root, live])
    prune_all_but(shop, keep)
    assert shop.versions([root, live]) == before


def test_slices_of_a_labelled_service_are_left_to_their_controller(shop: Shop) -> None:
    web = service(shop.name, "web")
    mirrored = {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": []}
    shop.push(web, config_map(shop.name, "keep"))
    shop.applied()
    labels = {PART_OF: shop.applyset, "kubernetes.io/service-name": "web"}
    given = mirrored | {"metadata": {"name": "web-mirrored", "namespace": shop.name, "labels": labels}}
    shop.kubectl.run("create", "-f", "-", given=_json(given))
    before = shop.versions([given])
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.live(web) is None
    assert shop.versions([given]) == before


@pytest.mark.parametrize("annotation", PROTECTIONS, ids=str)
def test_a_protected_object_is_kept_and_listed_as_an_orphan(shop: Shop, annotation: dict[str, str]) -> None:
    protected = config_map(shop.name, "protected", annotations=annotation)
    shop.push(protected, config_map(shop.name, "keep"), config_map(shop.name, "gone"))
    shop.applied()
    before = shop.versions([protected])
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.versions([protected]) == before
    assert shop.live(config_map(shop.name, "gone")) is None
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["protected"]


def test_an_object_with_an_owner_reference_isnt_pruned_itself(shop: Shop) -> None:
    owner, owned = config_map(shop.name, "owner"), config_map(shop.name, "owned")
    shop.kubectl.apply(owner)
    shop.push(owned, config_map(shop.name, "keep"))
    shop.applied()
    live = shop.live(owner)
    assert live
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": live["metadata"]["uid"]}
    _patch(shop, owned, {"metadata": {"ownerReferences": [reference]}})
    before = shop.versions([owned, owner])
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.versions([owned, owner]) == before


def test_pvcs_arent_pruned_unless_opted_in_by_kind_or_annotation(shop: Shop) -> None:
    kept, allowed = claim(shop.name, "kept"), claim(shop.name, "allowed", annotations={"anneal.dev/prune": "allow"})
    shop.push(kept, allowed, config_map(shop.name, "keep"))
    shop.applied()
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.live(kept)
    assert shop.live(allowed) is None
    shop.configure(prune=Prune(kinds=("PersistentVolumeClaim",)))
    shop.applied("tick")
    assert shop.live(kept) is None


def test_a_namespace_with_foreign_content_stays_until_that_is_gone(shop: Shop) -> None:
    jobs = f"{shop.name}-jobs"
    shop.configure(prune=Prune(kinds=("Namespace",)))
    shop.push(namespace(jobs), config_map(jobs, "ours"), config_map(shop.name, "keep"))
    shop.applied()
    foreign = config_map(jobs, "foreign")
    shop.kubectl.apply(foreign)
    before = shop.versions([foreign])
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.versions([foreign]) == before
    assert shop.live(config_map(jobs, "ours")) is None
    shop.kubectl.run("delete", "cm", "foreign", "-n", jobs)
    shop.applied("drift")
    assert shop.live(namespace(jobs)) is None
    shop.assert_converged()


def test_a_namespace_goes_with_what_istio_and_openshift_give_to_each(shop: Shop) -> None:
    more = f"{shop.name}-more"
    shop.configure(namespaces=(shop.name, more), prune=Prune(kinds=("Namespace",)))
    shop.push(namespace(more), config_map(shop.name, "keep"))
    shop.applied()
    root, place = config_map(more, "kube-root-ca.crt"), {"namespace": more}
    until(lambda: shop.live(root))
    given = [config_map(more, name) for name in ("istio-ca-root-cert", "openshift-service-ca.crt")]
    given += [{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": place | {"name": name}} for name in ("builder", "deployer")]
    token = {"name": "builder-dockercfg-x7k2p", "annotations": {"kubernetes.io/service-account.name": "builder"}}
    given.append({"apiVersion": "v1", "kind": "Secret", "metadata": place | token})
    rbac = "rbac.authorization.k8s.io"
    binding = {"apiVersion": f"{rbac}/v1", "kind": "RoleBinding", "metadata": place | {"name": "system:image-builders"}}
    role = {"apiGroup": rbac, "kind": "ClusterRole", "name": "system:image-builder"}
    given.append(binding | {"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": "builder", "namespace": more}]})
    shop.kubectl.run("create", "-f", "-", given=_json({"apiVersion": "v1", "kind": "List", "items": given}))
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.live(namespace(more)) is None


def test_a_crd_with_instances_stays_and_goes_without_them(shop: Shop) -> None:
    shop.configure(prune=Prune(kinds=("CustomResourceDefinition",)))
    ours, theirs = offer(shop.group, shop.name, "ours"), offer(shop.group, shop.name, "theirs")
    shop.push(definition(shop.group), ours, config_map(shop.name, "keep"))
    shop.applied()
    shop.kubectl.apply(theirs)
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.live(definition(shop.group))
    assert shop.live(theirs)
    assert shop.live(ours) is None
    shop.kubectl.run("delete", f"offers.{shop.group}", "theirs", "-n", shop.name)
    shop.applied("drift")
    assert shop.live(definition(shop.group)) is None


def test_crds_and_namespaces_arent_pruned_without_an_opt_in(shop: Shop) -> None:
    jobs = f"{shop.name}-jobs"
    shop.push(definition(shop.group), namespace(jobs), config_map(jobs, "gone"), config_map(shop.name, "keep"))
    shop.applied()
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert shop.live(definition(shop.group))
    assert shop.live(namespace(jobs))
    assert {orphan.identity.kind for orphan in shop.state().orphans} == {"CustomResourceDefinition", "Namespace"}


def test_a_lingering_finalizer_leaves_the_phase_pruning_until_it_is_cleared(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gone, "TIMEOUT", 0.5)
    slow = config_map(shop.name, "slow", finalizers=["shop.example.com/backup"])
    older = shop.push(slow, config_map(shop.name, "keep"))
    shop.applied()
    newer = shop.push(config_map(shop.name, "keep"))
    result = shop.run()
    assert (result.outcome, result.code, result.who) == (Outcome.PRUNING, "still-deleting", "nobody")
    assert "shop.example.com/backup" in str(result.problems[0])
    assert result.next_try
    assert (shop.state().commit, shop.state().status.phase) == (older, "pruning")
    assert shop.run("tick").outcome is Outcome.PRUNING
    monkeypatch.setattr(gone, "TIMEOUT", 60.0)
    _patch(shop, slow, {"metadata": {"finalizers": None}})
    assert shop.run("tick").outcome in (Outcome.APPLIED, Outcome.UNCHANGED)
    assert shop.state().commit == newer
    assert shop.live(slow) is None


def test_a_namespace_dropped_from_the_whitelist_keeps_its_objects_tracked_and_shown(shop: Shop) -> None:
    jobs = shop.create_namespace(f"{shop.name}-jobs")
    shop.push(config_map(jobs, "there"), config_map(shop.name, "here"))
    shop.applied()
    shop.configure(namespaces=(shop.name,))
    before = shop.versions([config_map(jobs, "there")])
    shop.push(config_map(shop.name, "here"))
    result = shop.run()
    assert result.plan
    assert [identity.namespace for identity in result.plan.outside] == [jobs]
    assert shop.versions([config_map(jobs, "there")]) == before
    assert [orphan.identity.name for orphan in shop.state().orphans] == ["there"]
    shop.configure(namespaces=(shop.name, jobs))
    shop.applied("drift")
    shop.assert_converged()


def test_an_empty_render_is_refused(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    before = shop.versions()
    shop.documents = ()
    shop.work.remove(PATH).write(f"{PATH}/readme.md", "nothing here any more")
    shop.work.commit("Emptied")
    shop.work.push()
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    assert "allowEmpty" in result.problems[0].fix
    assert shop.versions() == before


def test_a_failed_apply_prunes_nothing(shop: Shop) -> None:
    """The server takes the dry-run and refuses the write: a quota that is full by then."""
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "gone"))
    shop.applied()
    older = shop.head
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": shop.name}}
    shop.kubectl.apply(quota | {"spec": {"hard": {"count/services": "1"}}})
    shop.kubectl.run("wait", "resourcequota/few", "-n", shop.name, "--for=jsonpath={.status.hard}", "--timeout=110s")
    until(lambda: _takes_a_service(shop))  # before it knows how much there is, it refuses
    shop.push(config_map(shop.name, "a"), *(service(shop.name, f"web{number}") for number in range(3)))
    result = shop.run()
    assert result.outcome is Outcome.FAILED, told(result)
    assert shop.live(config_map(shop.name, "gone"))
    assert (shop.state().commit, bool(shop.state().attempt)) == (older, True)
    shop.kubectl.run("delete", "resourcequota", "few", "-n", shop.name)
    until(lambda: _takes_a_service(shop))
    shop.applied("tick")
    shop.assert_converged()


def _takes_a_service(shop: Shop) -> bool:
    """Ask the admission, which hears of a quota and of its end a moment later."""
    return shop.kubectl.tried("create", "service", "clusterip", "asked", "--tcp=80", "-n", shop.name, "--dry-run=server").returncode == 0


def _patch(shop: Shop, document: Document, patch: dict[str, Any]) -> None:
    shop.kubectl.run("patch", document["kind"], document["metadata"]["name"], "-n", shop.name, "--type=merge", "-p", _json(patch))


def _json(body: Any) -> str:
    return json.dumps(body)
