"""An object is gone only where the server says so, of a kind served by the definition that its record knows; what goes is counted."""

from __future__ import annotations

from typing import Any

import pytest

from handler.app.instances.vanished import TOGETHER, Absence, ended_lately, look_for, with_ends
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.config.trigger_settings import WatchedResource
from handler.model.errors import AccessDenied, ApiRefused, ClusterUnavailable
from handler.model.event import Job
from handler.model.names import Identity, Resource
from handler.state.record import RecordedInstance, Run
from handler.state.run_history import CHANGED

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


LOST = "to see what its end deletes: anneal retire shop.ns.a --prune --dry-run"
DEFINED, UNDEFINED = named("crd-1"), RecordedInstance(KNOWN.identity, "u-1")
GADGET = RecordedInstance(Identity("example.com", "Gadget", "ns", "a"), "u-1")
FORGED = RecordedInstance(Identity("example.com", "Widget", "", "ns.a"), "u-1", "crd-1")  # an instance of the same name
GOING = named("crd-1", deletionTimestamp="2026-01-01T00:00:00Z")
INSTALL = "install its CustomResourceDefinition, or correct resource widget of the trigger"
UNSERVED = "the cluster doesn't serve Widget of example.com/v1"


@pytest.mark.parametrize(
    ("served", "live", "crd", "known", "state", "why", "way_out"),
    [
        ([WIDGET], GONE, DEFINED, KNOWN, "gone", "", ""),
        ([WIDGET], GONE, None, UNDEFINED, "gone", "", ""),  # of an aggregated API, which has none
        ([WIDGET], GONE, DEFINED, UNDEFINED, "unknown", f"its record doesn't say by which {CRD_NAME}", f"create the object again; {LOST}"),
        ([WIDGET], GONE, None, KNOWN, "unknown", f"{CRD_NAME} isn't there any more", LOST),
        ([WIDGET], GONE, AccessDenied.of("crd", "403", fix="grant it"), KNOWN, "unknown", f"{CRD_NAME} can't be read", "grant it"),
        ([WIDGET], GONE, AccessDenied.of("crd", "403"), KNOWN, "unknown", f"{CRD_NAME} can't be read", f"grant get on {CRD_NAME}"),
        (
            [WIDGET],
            named("u-1"),
            DEFINED,
            KNOWN,
            "lives",
            "Widget/ns/a lives, and the trigger doesn't select it any more",
            f"correct the trigger, or delete that; {LOST}",
        ),
        (
            [WIDGET],
            named("u-2"),
            DEFINED,
            KNOWN,
            "anew",
            "another Widget/ns/a lives by now",
            "if the trigger selects that, it is deployed by: anneal apply shop.ns.a",
        ),
        ([WIDGET], GONE, named("crd-2"), KNOWN, "unknown", f"{CRD_NAME} was deleted and made anew", f"create the object again; {LOST}"),
        ([WIDGET], GONE, GOING, KNOWN, "unknown", f"{CRD_NAME} is being deleted, and all objects with it", LOST),
        ([WIDGET], GONE, DEFINED, FORGED, "unknown", "the trigger's main resource is Widget.example.com now", LOST),
        ([None], GONE, None, KNOWN, "unknown", UNSERVED, INSTALL),
        ([WIDGET, None], GONE, DEFINED, KNOWN, "unknown", UNSERVED, INSTALL),
        (
            [WIDGET],
            GONE,
            DEFINED,
            GADGET,
            "unknown",
            "the trigger's main resource is Widget.example.com now, and it is an instance for Gadget/ns/a",
            LOST,
        ),
    ],
)
def test_what_a_look_finds(
    served: list[Resource | None], live: Answer, crd: Answer, known: RecordedInstance, state: str, why: str, way_out: str
) -> None:
    found = look_for(Cluster(served, live=live, crd=crd), TEMPLATE, MAIN, known)  # type: ignore[arg-type]  # as much of them as is used
    assert (found.state, found.kept.way_out) == (state, way_out)
    assert found.kept.why.startswith(why)
    assert found != Absence("gone") or not why


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


JOB, NOW = Job("shop", "tick"), 1_772_366_400.0


def test_what_ends_within_a_minute_is_one_entry() -> None:
    history = with_ends((), JOB, ["shop.ns.a", "shop.ns.b"], NOW)
    history = with_ends(history, JOB, ["shop.ns.c"], NOW + TOGETHER - 1)
    assert [(each.counts, each.changed) for each in history] == [
        ({"ended": 3}, ("shop.ns.a ended", "shop.ns.b ended", "shop.ns.c ended")),
    ]
    history = with_ends(history, JOB, ["shop.ns.d"], NOW + TOGETHER)
    assert [each.counts for each in history] == [{"ended": 1}, {"ended": 3}]


def test_they_count_until_nothing_has_ended_for_a_minute() -> None:
    history = with_ends((), JOB, ["shop.ns.a"], NOW)
    history = with_ends(history, JOB, ["shop.ns.b"], NOW + 30)
    found = [ended_lately(history, NOW + each) for each in (31, 30 + TOGETHER - 1, 30 + TOGETHER)]
    assert found == [2, 2, 0]
    assert ended_lately((Run("r", "tick", "applied", history[0].started, counts={"pruned": 3}),), NOW) == 0


def test_of_many_the_first_are_named_and_the_rest_counted() -> None:
    history = with_ends((), JOB, [f"shop.ns.w{number}" for number in range(CHANGED + 5)], NOW)
    for more in range(3):
        history = with_ends(history, JOB, [f"shop.ns.x{more}"], NOW + 1)
    (entry,) = history
    assert (len(entry.changed), entry.changed[0], entry.changed[-1]) == (CHANGED, "shop.ns.w0 ended", "and 9 more")
    assert entry.counts == {"ended": CHANGED + 8}
