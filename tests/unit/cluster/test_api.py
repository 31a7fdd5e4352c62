"""An answer is believed only when it is what was asked for."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import urllib3

from handler.cluster.api import Api, ApiRequest, _pause, checked, echoes, is_missing, items_of
from handler.model.errors import AnnealError, ClusterUnavailable
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
def test_an_answer_that_is_no_list_of_the_kind_is_refused(answer: dict[str, Any]) -> None:
    with pytest.raises(ClusterUnavailable, match="was answered with"):
        items_of(answer, MAPS, "list ConfigMap", partial=False)


def test_a_list_of_the_kind_is_accepted() -> None:
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
def test_an_answer_with_another_object_is_refused(metadata: Any, method: str) -> None:
    with pytest.raises(ClusterUnavailable, match="something else than this object"):
        checked({"kind": "ConfigMap", "metadata": metadata}, method, PATH, "ConfigMap/shop/a")


def test_answers_to_collections_and_deletes_are_not_checked_by_name() -> None:
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
def test_a_404_of_a_proxy_doesnt_count_as_missing(path: str, body: Any, said: bytes, missing: bool) -> None:
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
def test_an_answer_with_another_audit_id_of_ours_belongs_to_another_request(heard: dict[str, str], believed: bool) -> None:
    assert echoes("a-7", heard, "a-") is believed


@pytest.mark.parametrize(("after", "least", "most"), [("2", 2.0, 2.5), ("0", 0.2, 0.4), ("", 0.2, 0.4), ("Wed, 21 Oct", 0.2, 0.4)])
def test_the_back_off_honours_retry_after(after: str, least: float, most: float) -> None:
    response = urllib3.HTTPResponse(status=429, headers={"Retry-After": after} if after else {})
    pauses = [_pause(2, response) for _ in range(50)]
    assert all(least <= pause <= most for pause in pauses)


def test_the_back_off_grows_to_its_limit() -> None:
    assert _pause(0, AnnealError()) <= 0.1
    assert 5.0 <= _pause(60, AnnealError()) <= 10.0


def test_a_requests_repr_hides_its_body() -> None:
    assert "hunter2" not in repr(ApiRequest("PUT", "/api/v1/namespaces/a/secrets/s", body=b"hunter2"))


@dataclass
class Servers:
    """Answers every attempt with the status that is due, on a clock that only pauses move."""

    statuses: Iterator[int]
    now: float = 1000.0
    attempts: int = 0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def attempt(self, *_: Any, **__: Any) -> urllib3.HTTPResponse:
        self.attempts += 1
        said = 'failed calling webhook "a.example.com": no route'
        body = {"kind": "Status", "reason": "InternalError", "message": f"Internal error occurred: {said}"}
        answer = json.dumps({**body, "details": {"causes": [{"message": said}]}}).encode()
        return urllib3.HTTPResponse(answer, status=next(self.statuses))

    def api(self, monkeypatch: pytest.MonkeyPatch) -> Api:
        monkeypatch.setattr("handler.cluster.api.time", self)
        connection: Any = SimpleNamespace(host="https://x", generation=0, unsigned="")
        api = Api(connection)
        monkeypatch.setattr(api, "_attempt", self.attempt)
        return api

    def ask(self, api: Api) -> int:
        """Send a request; return how often it was tried."""
        before = self.attempts
        with contextlib.suppress(ClusterUnavailable):
            api.send(ApiRequest("GET", PATH))
        return self.attempts - before


def test_no_request_waits_for_a_webhook_that_another_has_just_waited_for_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(itertools.repeat(500))
    api = servers.api(monkeypatch)
    assert servers.ask(api) > 5
    assert [servers.ask(api) for _ in range(3)] == [1, 1, 1]
    servers.now += 31
    assert servers.ask(api) > 5, "a later run waits again"
    api.awaited.clear()
    assert servers.ask(api) > 5


def test_a_webhook_that_answers_again_is_waited_for_the_next_time(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = Servers(itertools.cycle([500, 404]))
    monkeypatch.setattr("handler.cluster.api._is_missing", lambda outcome, _: outcome.status == 404)
    api = servers.api(monkeypatch)
    for _ in range(3):
        assert servers.ask(api) == 2
        servers.now += 29.9
