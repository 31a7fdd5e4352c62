"""Nothing is deleted but what is ours beyond doubt: planted neighbours survive every prune."""

from __future__ import annotations

import json
from typing import Any

from handler.config.settings import Prune
from handler.model.names import IDENTITY, PART_OF
from handler.model.result import Outcome
from tests.e2e.documents import Document, config_map, definition, namespace, offer
from tests.e2e.one_target import Shop, told
from tests.patience import until

_MERGE = "application/merge-patch+json"


def prune_all_but(shop: Shop, *kept: Document) -> None:
    """Prune everything else that the shop has, once by a push and once more by a drift run."""
    shop.push(*kept)
    result = shop.run()
    assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(result)
    shop.run("drift")


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


def test_a_namespace_stays_with_foreign_content_and_goes_with_what_istio_and_openshift_give_to_each(shop: Shop) -> None:
    more = f"{shop.name}-more"
    shop.configure(namespaces=(shop.name, more), prune=Prune(kinds=("Namespace",)))
    shop.push(namespace(more), config_map(more, "ours"), config_map(shop.name, "keep"))
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
    foreign = config_map(more, "foreign")
    shop.kubectl.apply(foreign)
    before = shop.versions([foreign])
    prune_all_but(shop, config_map(shop.name, "keep"))
    assert (shop.versions([foreign]), shop.live(config_map(more, "ours"))) == (before, None)
    shop.kubectl.run("delete", "cm", "foreign", "-n", more)
    shop.applied("drift")
    assert shop.live(namespace(more)) is None
    shop.assert_converged()


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


def _json(body: Any) -> str:
    return json.dumps(body)
