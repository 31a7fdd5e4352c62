"""An answer is believed only when it is what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from handler.cluster.api import checked, echoes, is_missing, items_of
from handler.cluster.discovery import Discovery
from handler.model.errors import ClusterUnavailable
from handler.model.names import Resource

MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
OFFERS = Resource("shop.example.com", "v1", "Offer", "offers", namespaced=True)
STATUS = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


def listed(kind: str = "ConfigMapList", version: str = "v1", items: Any = (), **more: Any) -> dict[str, Any]:
    return {"kind": kind, "apiVersion": version, "metadata": {"resourceVersion": "7"}, "items": list(items), **more}


@pytest.mark.parametrize(
    "answer",
    [
        {},
        STATUS,
        listed("SecretList"),
        listed("ConfigMapList", "v2"),
        listed() | {"items": 5},
        listed() | {"metadata": None},
        listed(items=[None]),
        listed(items=[{"metadata": {}}]),
        listed(items=[{"metadata": {"name": 5}}]),
        listed(items=[{"kind": "Secret", "metadata": {"name": "a"}}]),
        {"status": "ok"},
    ],
)
def test_what_is_no_list_of_the_kind_is_not_an_empty_one(answer: dict[str, Any]) -> None:
    with pytest.raises(ClusterUnavailable, match="was answered with"):
        items_of(answer, MAPS, "list ConfigMap", partial=False)


def test_a_list_of_the_kind_is_taken() -> None:
    assert items_of(listed(), MAPS, "x", partial=False) == []
    assert items_of(listed() | {"items": None}, MAPS, "x", partial=False) == [], "Go writes a nil slice so"
    assert len(items_of(listed(items=[{"metadata": {"name": "a"}}]), MAPS, "x", partial=False)) == 1
    rows = [{"kind": "PartialObjectMetadata", "metadata": {"name": "a"}}]
    assert items_of(listed("PartialObjectMetadataList", "meta.k8s.io/v1", rows), MAPS, "x", partial=True) == rows
    custom = listed("AnyNameItLikes", OFFERS.api_version, [{"kind": "Offer", "metadata": {"name": "a"}}])
    assert len(items_of(custom, OFFERS, "x", partial=False)) == 1


PATH = "/api/v1/namespaces/shop/configmaps/a"


@pytest.mark.parametrize("metadata", [None, {}, {"name": "b", "namespace": "shop"}, {"name": "a", "namespace": "other"}, {"name": "a"}, []])
@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH"])
def test_another_object_is_not_the_one_asked_for(metadata: Any, method: str) -> None:
    with pytest.raises(ClusterUnavailable, match="something else than this object"):
        checked({"kind": "ConfigMap", "metadata": metadata}, method, PATH, "ConfigMap/shop/a")


def test_what_names_no_object_is_not_judged_here() -> None:
    for method, path in (("GET", "/version"), ("GET", "/api"), ("POST", "/api/v1/namespaces/shop/configmaps"), ("DELETE", PATH)):
        assert checked(STATUS, method, path, "x") is STATUS
    found = {"metadata": {"name": "kube-system"}}
    assert checked(found, "GET", "/api/v1/namespaces/kube-system", "x") is found


@pytest.mark.parametrize(
    ("path", "body", "said", "missing"),
    [
        (PATH, STATUS | {"reason": "NotFound"}, b"{}", True),
        (PATH, None, b"404 page not found\n", False),
        (PATH, {"error": "no backend"}, b"{}", False),
        ("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", None, b"404 page not found\n", False),
        ("/apis/shop.example.com/v1/offers", None, b"404 page not found\n", True),
        ("/apis/apps/v1/namespaces/shop/deployments/api", None, b"<html>not here</html>", False),
        ("/apis/apps/v1/namespaces/shop/deployments/api", {"error": "no backend"}, b"{}", False),
    ],
)
def test_a_404_of_somebody_in_between_is_no_404(path: str, body: Any, said: bytes, missing: bool) -> None:
    assert is_missing(path, body, said) is missing


@pytest.mark.parametrize(
    ("heard", "believed"),
    [
        ({}, True),
        ({"Audit-Id": "a-7"}, True),
        ({"Audit-Id": "a-6"}, False),
        ({"Audit-Id": "a-7, a-7"}, True),
        ({"Audit-Id": "proxy"}, True),
    ],
)
def test_an_answer_with_another_of_our_ids_belongs_to_another_request(heard: dict[str, str], believed: bool) -> None:
    assert echoes("a-7", heard, "a-") is believed


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
def test_a_discovery_that_is_none_is_not_a_cluster_without_kinds(core: Any, groups: Any) -> None:
    says: Any = Says(core, groups)
    with pytest.raises(ClusterUnavailable, match="discovery"):
        Discovery(says).listable()


def test_a_whole_discovery_is_taken() -> None:
    says: Any = Says(aggregated(CORE), aggregated(LEASES))
    assert Discovery(says).find("v1", "ConfigMap")
