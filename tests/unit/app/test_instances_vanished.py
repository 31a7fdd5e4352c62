"""An object is gone only where the server says so, of a kind that it serves by the definition that the record knows."""

from __future__ import annotations

from typing import Any

import pytest

from handler.app.instances.vanished import Absence, look_for
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.config.trigger_settings import WatchedResource
from handler.model.errors import AccessDenied, ApiRefused, ClusterUnavailable
from handler.model.names import Identity, Resource
from handler.state.record import RecordedInstance

WIDGET = Resource("example.com", "v1", "Widget", "widgets", True, frozenset({"list"}))
MAIN = WatchedResource("widget", "example.com/v1", "Widget")
TEMPLATE = Target("shop", Repository("https://git.example.com/shop.git"), ("*",))
OBJECT, CRD = "/apis/example.com/v1/namespaces/ns/widgets/a", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
CRD_NAME = "CustomResourceDefinition/widgets.example.com"
KNOWN = RecordedInstance(Identity("example.com", "Widget", "ns", "a"), "u-1", "crd-1")
GONE = ApiRefused.of("Widget/ns/a", "404: not found")
GONE.status = 404
Answer = dict[str, Any] | Exception | None


def named(uid: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": uid, **metadata}}


class Cluster:
    """One cluster: `answers` by path, `served` as discovery says at each refresh, the first one first."""

    def __init__(self, served: list[Resource | None], **answers: Answer) -> None:
        self.served, self.answers = served, {OBJECT: answers["live"], CRD: answers["crd"]}

    def api(self, target: Target, *, impersonated: bool = True) -> Cluster:
        return self

    def discovery(self, target: Target) -> Cluster:
        return self

    def find(self, api_version: str, kind: str) -> Resource | None:
        return self.served[0]

    def refresh(self) -> None:
        self.served = self.served[1:] or self.served

    def get(self, path: str, **_: Any) -> Any:
        answer = self.answers[path]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def expect(self, request: Any) -> Any:
        return self.get(request.path)


@pytest.mark.parametrize(
    ("served", "live", "crd", "known", "state", "why"),
    [
        ([WIDGET], GONE, named("crd-1"), KNOWN, "gone", ""),
        ([WIDGET], GONE, None, RecordedInstance(KNOWN.identity, "u-1"), "gone", ""),  # of an aggregated API, which has none
        ([WIDGET], GONE, named("crd-1"), RecordedInstance(KNOWN.identity, "u-1"), "unknown", f"its record doesn't say by which {CRD_NAME}"),
        ([WIDGET], GONE, None, KNOWN, "unknown", f"{CRD_NAME} isn't there any more"),
        ([WIDGET], GONE, AccessDenied.of("crd", "403", fix="grant get"), KNOWN, "unknown", f"{CRD_NAME} can't be read"),
        ([WIDGET], named("u-1"), named("crd-1"), KNOWN, "lives", "Widget/ns/a lives, and the trigger doesn't select it any more"),
        ([WIDGET], named("u-2"), named("crd-1"), KNOWN, "anew", "another Widget/ns/a lives by now"),
        ([WIDGET], GONE, named("crd-2"), KNOWN, "unknown", "CustomResourceDefinition/widgets.example.com was deleted and made anew"),
        (
            [WIDGET],
            GONE,
            named("crd-1", deletionTimestamp="2026-01-01T00:00:00Z"),
            KNOWN,
            "unknown",
            "CustomResourceDefinition/widgets.example.com is being deleted, and all objects with it",
        ),
        (
            [WIDGET],
            GONE,
            named("crd-1"),
            RecordedInstance(Identity("example.com", "Widget", "", "ns.a"), "u-1", "crd-1"),  # forged: an instance of the same name
            "unknown",
            "the trigger's main resource is Widget.example.com now",
        ),
        ([None], GONE, None, KNOWN, "unknown", "the cluster doesn't serve Widget of example.com/v1"),
        ([WIDGET, None], GONE, named("crd-1"), KNOWN, "unknown", "the cluster doesn't serve Widget of example.com/v1"),
        (
            [WIDGET],
            GONE,
            named("crd-1"),
            RecordedInstance(Identity("example.com", "Gadget", "ns", "a"), "u-1"),
            "unknown",
            "the trigger's main resource is Widget.example.com now, and it is an instance for Gadget/ns/a",
        ),
    ],
)
def test_what_a_look_finds(served: list[Resource | None], live: Answer, crd: Answer, known: RecordedInstance, state: str, why: str) -> None:
    found = look_for(Cluster(served, live=live, crd=crd), TEMPLATE, MAIN, known)  # type: ignore[arg-type]  # as much of them as is used
    assert found.state == state
    assert found.kept.why.startswith(why)
    assert found != Absence("gone") or not why


LOST = "to see what its end deletes: anneal retire shop.ns.a --prune --dry-run"


@pytest.mark.parametrize(
    ("served", "live", "crd", "known", "way_out"),
    [
        ([WIDGET], named("u-1"), named("crd-1"), KNOWN, f"correct the trigger, or delete that; {LOST}"),
        ([WIDGET], named("u-2"), named("crd-1"), KNOWN, "if the trigger selects that, it is deployed by: anneal apply shop.ns.a"),
        ([WIDGET], GONE, AccessDenied.of("crd", "403", fix="anneal rbac shop"), KNOWN, "anneal rbac shop"),
        ([WIDGET], GONE, AccessDenied.of("crd", "403"), KNOWN, f"grant get on {CRD_NAME}"),
        ([WIDGET], GONE, None, KNOWN, LOST),
        ([WIDGET], GONE, named("crd-1", deletionTimestamp="2026-01-01T00:00:00Z"), KNOWN, LOST),
        ([WIDGET], GONE, named("crd-2"), KNOWN, f"create the object again; {LOST}"),
        ([None], GONE, None, KNOWN, "install its CustomResourceDefinition, or correct resource widget of the trigger"),
        ([WIDGET, None], GONE, named("crd-1"), KNOWN, "install its CustomResourceDefinition, or correct resource widget of the trigger"),
        ([WIDGET], GONE, named("crd-1"), RecordedInstance(Identity("example.com", "Gadget", "ns", "a"), "u-1"), LOST),
    ],
)
def test_what_keeps_an_instance_names_its_own_way_out(
    served: list[Resource | None], live: Answer, crd: Answer, known: RecordedInstance, way_out: str
) -> None:
    found = look_for(Cluster(served, live=live, crd=crd), TEMPLATE, MAIN, known)  # type: ignore[arg-type]  # as much of them as is used
    assert found.kept.way_out == way_out


@pytest.mark.parametrize("error", [ClusterUnavailable.of("cluster", "down"), AccessDenied.of("Widget/ns/a", "403")])
def test_what_cant_be_asked_is_no_absence(error: Exception) -> None:
    with pytest.raises(type(error)):
        look_for(Cluster([WIDGET], live=error, crd=None), TEMPLATE, MAIN, KNOWN)  # type: ignore[arg-type]  # as much as is used


def test_a_subproject_of_kubernetes_has_a_definition_too() -> None:
    """Gateways and VolumeSnapshots go with their CRDs as others do, though their groups are called like those of the API server."""
    gateway = Resource("gateway.networking.k8s.io", "v1", "Gateway", "gateways", True, frozenset({"list"}))
    cluster = Cluster([gateway], live=GONE, crd=None)
    crd = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gateways.gateway.networking.k8s.io"
    cluster.answers = {"/apis/gateway.networking.k8s.io/v1/namespaces/ns/gateways/a": GONE, crd: named("crd-2")}
    known = RecordedInstance(Identity("gateway.networking.k8s.io", "Gateway", "ns", "a"), "u-1", "crd-1")
    main = WatchedResource("gateway", "gateway.networking.k8s.io/v1", "Gateway")
    found = look_for(cluster, TEMPLATE, main, known)  # type: ignore[arg-type]  # as much as is used
    assert (found.state, "was deleted and made anew" in found.kept.why) == ("unknown", True)
