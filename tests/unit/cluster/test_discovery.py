"""Discovery documents of an API server: read with all their holes, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from handler.cluster.discovery import Discovery, _classic_version, read_aggregated
from handler.model.errors import ClusterUnavailable
from handler.model.names import Resource


def served(kind: str | None, plural: str, scope: str = "Namespaced") -> dict[str, Any]:
    return {"resource": plural, "responseKind": {"kind": kind} if kind else None, "scope": scope, "verbs": ["get", "list"]}


def test_aggregated_discovery_is_read_with_all_its_holes() -> None:
    document = {
        "items": [
            {
                "metadata": {"name": "apps"},
                "versions": [
                    {"version": "v1", "freshness": "Current", "resources": [served("Deployment", "deployments"), served(None, "odd")]},
                    {"version": "v1beta1", "freshness": "Current"},
                ],
            },
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1", "freshness": "Stale", "resources": None}]},
            {"metadata": {}, "versions": [{"version": "v1", "resources": [served("Node", "nodes", "Cluster")]}]},
            {"metadata": None},
        ]
    }
    found = read_aggregated([document, {}])
    assert found.resources == (
        Resource("apps", "v1", "Deployment", "deployments", True, frozenset({"get", "list"})),
        Resource("", "v1", "Node", "nodes", False, frozenset({"get", "list"})),
    )
    assert found.stale == {"metrics.k8s.io"}
    assert found.versions == ("apps/v1", "apps/v1beta1", "metrics.k8s.io/v1", "v1")


def test_a_kind_with_a_status_subresource_is_known_by_aggregated_discovery() -> None:
    rows = [{**served(kind, kind.lower()), "subresources": subs} for kind, subs in SUBRESOURCES.items()]
    found = read_aggregated([{"items": [{"metadata": {"name": "example.com"}, "versions": [{"version": "v1", "resources": rows}]}]}])
    assert {each.kind for each in found.resources if each.status} == {"Widget"}


SUBRESOURCES: dict[str, Any] = {
    "Widget": [{"subresource": "scale"}, {"subresource": "status"}],
    "Gadget": [{"subresource": "scale"}],
    "Other": None,
}


def test_a_kind_with_a_status_subresource_is_known_by_classic_discovery() -> None:
    rows = [
        {"name": name, "kind": "Widget", "namespaced": True, "verbs": ["get"]} for name in ("widgets", "widgets/status", "widgets/scale")
    ]
    rows.append({**rows[0], "name": "gadgets", "kind": "Gadget"})
    found = {each.kind: each.status for each in _classic_version("example.com", "v1", {"resources": rows})}
    assert found == {"Widget": True, "Gadget": False}


class Says:
    """An API that answers discovery with these documents."""

    def __init__(self, *documents: Any) -> None:
        self.documents = dict(zip(("/api", "/apis"), documents, strict=True))

    def get(self, path: str, **_: Any) -> Any:
        return self.documents[path]


def aggregated(*items: Any) -> dict[str, Any]:
    return {"kind": "APIGroupDiscoveryList", "items": list(items)}


def group(name: str, version: str, kind: str) -> dict[str, Any]:
    row = {"resource": kind.lower() + "s", "responseKind": {"kind": kind}, "scope": "Namespaced", "verbs": ["list"]}
    return {"metadata": {"name": name}, "versions": [{"version": version, "resources": [row]}]}


CORE, LEASES = group("", "v1", "ConfigMap"), group("coordination.k8s.io", "v1", "Lease")


@pytest.mark.parametrize(
    ("core", "groups"),
    [
        (aggregated(), aggregated()),
        (aggregated(CORE), aggregated()),
        (aggregated(), aggregated(LEASES)),
        (aggregated(CORE), {}),
        (aggregated(5), aggregated(LEASES)),
        (aggregated(CORE), aggregated({"versions": [{"resources": [{"responseKind": {"kind": "A"}}]}]})),
        (aggregated(CORE), aggregated({"versions": "x"})),
        ({"versions": [None]}, {"groups": [{"versions": [{}]}]}),
        ({"kind": "Status"}, {"kind": "Status"}),
    ],
)
def test_a_broken_discovery_is_refused_rather_than_without_kinds(core: Any, groups: Any) -> None:
    says: Any = Says(core, groups)
    with pytest.raises(ClusterUnavailable, match="discovery"):
        Discovery(says).listable()


def test_a_whole_discovery_is_accepted() -> None:
    says: Any = Says(aggregated(CORE), aggregated(LEASES))
    assert Discovery(says).find("v1", "ConfigMap")
    assert Discovery(says).api_versions() == ("coordination.k8s.io/v1", "coordination.k8s.io/v1/Lease", "v1", "v1/ConfigMap")


def test_the_servers_version_is_asked_once_until_it_is_refreshed() -> None:
    says: Any = Says(aggregated(CORE), aggregated(LEASES))
    discovery = Discovery(says)
    says.documents["/version"] = {"gitVersion": "v1.36.3+k3s1"}
    assert discovery.version() == "v1.36.3+k3s1"
    for nonsense in ({}, None, {"gitVersion": "1"}, {"gitVersion": 1}, {"gitVersion": "v1\n--set x=y"}):
        says.documents["/version"] = nonsense
        assert discovery.version() == "v1.36.3+k3s1"
        with pytest.raises(ClusterUnavailable, match="names no version"):
            Discovery(says).version()
    says.documents["/version"] = {"gitVersion": "v1.37.0"}
    discovery.refresh()
    assert discovery.version() == "v1.37.0"
