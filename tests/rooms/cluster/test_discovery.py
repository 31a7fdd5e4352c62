"""Discovery against what really is served, and what appears and dies meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.cluster.wait_until import until, until_gone
from handler.cluster.write import Writer
from handler.model.names import GroupKind, identity_of
from tests.patience import PATIENCE
from tests.rooms.cluster.conftest import Apply, Kind, refreshed
from tests.rooms.cluster.faulty_proxy import Wire


def widget_crd(group: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": name, "served": True, "storage": name == "v1", "schema": schema} for name in ("v1alpha1", "v1")]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def established(crd: dict[str, Any]) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in conditions)


@pytest.fixture
def crd(apply: Apply, api: Api, writer: Writer, kind: Kind, namespace: str) -> Iterator[dict[str, Any]]:
    live = apply(widget_crd(f"{namespace}.example.com"))
    yield live
    resource, identity = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition"), identity_of(live)
    writer.delete(resource, identity, live["metadata"]["uid"])
    assert until_gone(api, [(resource, identity, live["metadata"]["uid"])], PATIENCE) == []


def test_all_kinds_are_known_after_two_requests(api: Api, discovery: Discovery) -> None:
    deployment = discovery.find("apps/v1", "Deployment")
    assert deployment
    assert deployment.path("shop", "api") == "/apis/apps/v1/namespaces/shop/deployments/api"
    assert discovery.find("v1", "Namespace") == discovery.preferred(GroupKind("", "Namespace"))
    assert discovery.find("apps/v1", "Nonsense") is None
    assert api.requests == 2


def test_what_helm_is_told_of_the_cluster(api: Api, discovery: Discovery) -> None:
    served = discovery.api_versions()
    assert {"v1", "v1/Secret", "apps/v1", "apps/v1/Deployment", "policy/v1/PodDisruptionBudget"} <= set(served)
    assert list(served) == sorted(set(served))
    assert discovery.version() == (api.get("/version") or {})["gitVersion"]


def test_listable_kinds_can_be_listed_and_deleted_and_come_once(discovery: Discovery) -> None:
    kinds = [resource.group_kind for resource in discovery.listable()]
    assert len(kinds) == len(set(kinds)) > 40
    assert GroupKind("apps", "Deployment") in kinds
    assert GroupKind("authorization.k8s.io", "SubjectAccessReview") not in kinds
    assert not any("/" in resource.plural for resource in discovery.listable())


def test_a_new_crd_is_seen_after_refresh(api: Api, discovery: Discovery, crd: dict[str, Any], kind: Kind) -> None:
    group = crd["metadata"]["name"].removeprefix("widgets.")
    discovery.refresh()
    resource = kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    assert until(api, [(resource, identity_of(crd))], established, PATIENCE) == []
    refreshed(
        discovery, lambda: all(discovery.find(f"{group}/{version}", "Widget") for version in ("v1", "v1alpha1"))
    )  # one after the other
    found = discovery.preferred(GroupKind(group, "Widget"))
    assert found
    assert (found.version, found.namespaced) == ("v1", True)


def test_classic_discovery_says_the_same(wire: Wire, through: Callable[..., Api], discovery: Discovery) -> None:
    plain = through()
    original = plain.get
    plain.get = lambda path, query=None, **options: original(path, query, **(options | {"accept": "application/json"}))  # type: ignore[method-assign] # one method of a real Api is replaced
    classic = Discovery(plain)

    def alike() -> bool:
        classic.refresh()
        return {row.group_kind for row in classic.listable()} == {row.group_kind for row in discovery.listable()}

    refreshed(discovery, alike)  # another test's CRD may come or go between the two looks
    assert classic.find("apps/v1", "Deployment") == discovery.find("apps/v1", "Deployment")
