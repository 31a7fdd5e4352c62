"""An API group that doesn't answer: what it holds isn't known, so Namespaces stay, unless its APIService goes before them.

In a cluster of its own, for the Namespaces of every other test would stay, too.
"""

from __future__ import annotations

import os

from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.cluster.discovery import Discovery
from handler.config.settings import Cluster, Prune
from handler.model.names import identity_of
from handler.model.plan import Action
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, namespace, offer
from tests.e2e.one_target import Shop
from tests.kubectl import Kubectl
from tests.patience import until

GROUP = "dead.example.com"
SILENT = f"what it holds could not be read: the API group {GROUP} doesn't answer; repair its APIService"


def api_service(version: str) -> Document:
    """Return an APIService of our group whose Service was never made."""
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"{version}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": version,
            "groupPriorityMinimum": 10,
            "versionPriority": 10,
            "insecureSkipTLSVerify": True,
            "service": {"name": "absent", "namespace": "default"},
        },
    }


def discovery_of(cluster: Kubectl) -> Discovery:
    return Discovery(Api(connect(Cluster(), kubeconfig=str(cluster.kubeconfig), environ=os.environ)))


def is_stale(cluster: Kubectl) -> bool:
    return GROUP in discovery_of(cluster).stale


def test_a_namespace_stays_while_a_group_doesnt_answer_and_goes_with_its_last_api_service(own_cluster: Kubectl, open_shop: Open) -> None:
    shop = open_shop(own_cluster, namespaces=("*",), prune=Prune(kinds=("Namespace",), allow_empty=True))
    shop.configure(cluster_scoped=("Namespace", "APIService.apiregistration.k8s.io"))
    ours, theirs, first, second = api_service("v1"), api_service("v2"), namespace(f"{shop.name}-a"), namespace(f"{shop.name}-b")
    shop.push(ours, first, second, config_map("default", "keep"))
    shop.applied()
    own_cluster.apply(theirs)
    until(lambda: is_stale(own_cluster))
    assert discovery_of(own_cluster).find("apps/v1", "Deployment"), "the others still are known"

    shop.push(ours, second, config_map("default", "keep"))
    assert reasons(shop)[str(identity_of(first))] == SILENT
    assert shop.live(first)

    shop.push(config_map("default", "keep"))
    assert reasons(shop)[str(identity_of(first))] == SILENT, "the other version is a stranger's, and stays"
    assert shop.live(ours) is None
    assert shop.live(second)

    shop.push(ours, config_map("default", "keep"))
    shop.applied()
    own_cluster.run("delete", "apiservice", theirs["metadata"]["name"])
    until(lambda: is_stale(own_cluster))
    shop.push(config_map("default", "keep"))
    assert reasons(shop) == {}, "what doesn't answer goes before them"
    assert (shop.live(ours), shop.live(first), shop.live(second)) == (None, None, None)


def test_what_an_api_service_hides_of_a_crd_keeps_a_namespace_when_the_api_service_goes(own_cluster: Kubectl, open_shop: Open) -> None:
    shop = open_shop(own_cluster, namespaces=("*",), prune=Prune(kinds=("Namespace",), allow_empty=True))
    shop.configure(cluster_scoped=("Namespace", "APIService.apiregistration.k8s.io"))
    ours, space = api_service("v1"), namespace(f"{shop.name}-a")
    hidden = offer(GROUP, space["metadata"]["name"], "hidden")
    shop.push(space, config_map("default", "keep"))
    shop.applied()
    own_cluster.apply(definition(GROUP))
    own_cluster.run("wait", "--for=condition=Established", f"crd/offers.{GROUP}")
    own_cluster.apply(hidden)
    own_cluster.run("label", "apiservice", ours["metadata"]["name"], "kube-aggregator.kubernetes.io/automanaged-")
    shop.push(ours, space, config_map("default", "keep"))
    shop.applied()
    until(lambda: is_stale(own_cluster))
    shop.push(config_map("default", "keep"))
    assert reasons(shop) == {str(identity_of(space)): SILENT}
    until(lambda: not is_stale(own_cluster))
    shop.push(config_map("default", "keep", {"changed": "1"}))
    assert reasons(shop) == {str(identity_of(space)): f"still holds {identity_of(hidden)}"}


def test_a_step_deletes_no_namespace_while_a_group_doesnt_answer_whose_api_service_is_pruned_after(
    own_cluster: Kubectl, open_shop: Open
) -> None:
    shop = open_shop(own_cluster, namespaces=("*",), prune=Prune(kinds=("Namespace",), allow_empty=True), rollout=rollouts.ROLLOUT)
    shop.configure(cluster_scoped=("Namespace", "APIService.apiregistration.k8s.io"))
    ours, space, kept = api_service("v1"), namespace(f"{shop.name}-a"), config_map("default", "keep")
    rollouts.push(shop, [ours, space, kept], rollouts.group("first", rollouts.step("CreateOrUpdate", kept)))
    shop.applied()
    until(lambda: is_stale(own_cluster))
    rollouts.push(shop, [space, kept], rollouts.group("first", rollouts.step("DeleteIfExist", space)))
    result = shop.run()
    assert SILENT in "\n".join(map(str, result.problems)), result
    assert shop.live(space)


def reasons(shop: Shop) -> dict[str, str]:
    """Apply; return why each object that git no longer declares was kept."""
    result = shop.run()
    assert result.plan
    return {str(change.identity): change.reason for change in result.plan.prunes if change.action is Action.SKIP}
