"""What the dry-runs of declared objects lead to, on an API server in memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.engine.planner.planner import Planned, Planner, PlanRequest
from handler.model.errors import PlanRefused
from handler.model.manifest import Manifest
from handler.model.names import applyset_id
from handler.model.result import Outcome
from handler.plan.admission import Admission
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.patience import PATIENCE
from tests.unit.engine.in_memory_shop import InMemoryShop, config_map

Body = dict[str, Any]
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop", "new"), cluster_scoped=("Namespace",))
APPLYSET = applyset_id("anneal-shop", "anneal-system")


def document(kind: str, name: str, namespace: str = "", **fields: Any) -> Body:
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


def plan(server: ApiServer, *documents: Body, way: Callable[[Call, Callable[[], Reply]], Reply] | None = None) -> Planned:
    api = Api(FakeConnection(server, way) if way else FakeConnection(server))
    discovery = Discovery(api)
    manifests = [Manifest.of(body, f"{body['metadata']['name']}.yaml:1") for body in documents]
    admitted = Admission(TARGET, APPLYSET, "anneal-system", discovery.find).admit(manifests)
    stages = (tuple(item for item in admitted if not item.needs), tuple(item for item in admitted if item.needs))
    return Planner(TARGET, APPLYSET, api, discovery).plan(PlanRequest("a" * 40, "b" * 64, "c" * 64, stages))


@pytest.fixture
def server() -> ApiServer:
    made = ApiServer(time.time)
    Api(FakeConnection(made)).post("/api/v1/namespaces", document("Namespace", "shop"))
    return made


@pytest.mark.parametrize(
    ("labels", "told"),
    [({}, "isn't ours to delete"), ({"argocd.argoproj.io/instance": "shop"}, "belongs to Argo CD application shop")],
)
def test_a_foreign_immutable_object_is_refused_in_our_words(server: ApiServer, labels: dict[str, str], told: str) -> None:
    theirs = document("ConfigMap", "fixed", "shop", data={"a": "1"}, immutable=True)
    theirs["metadata"]["labels"] = labels
    Api(FakeConnection(server)).post("/api/v1/namespaces/shop/configmaps", theirs)
    with pytest.raises(PlanRefused, match=told):
        plan(server, document("ConfigMap", "fixed", "shop", data={"a": "2"}, immutable=True))


def test_a_new_object_that_is_invalid_is_refused_in_the_servers_words(server: ApiServer) -> None:
    with pytest.raises(PlanRefused, match=r"^web.yaml:1: ConfigMap/shop/web: .*dota"):
        plan(server, document("ConfigMap", "web", "shop", dota={}))


def test_a_cluster_that_hangs_holds_up_no_other_targets_plan(server: ApiServer) -> None:
    """Where a deferred object can be dry-run is looked for in the cluster, while others plan."""
    hangs, goes_on = threading.Event(), threading.Event()
    documents = [document("Namespace", "new"), document("ConfigMap", "web", "new", data={"a": "1"})]

    def hanging(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "GET" and call.asked.path.endswith("/namespaces/shop"):
            hangs.set()
            assert goes_on.wait(PATIENCE)
        return do()

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(plan, server, *documents, way=hanging)
        try:
            assert hangs.wait(PATIENCE)
            other = pool.submit(plan, server, *documents)
            assert other.result(PATIENCE).plan.counts(done=False) == {"to create": 2}
        finally:
            goes_on.set()
        assert slow.result(PATIENCE).plan.counts(done=False) == {"to create": 2}


def test_a_webhook_without_dry_run_is_noted_and_not_fatal() -> None:
    """`admissionregistration.k8s.io/v1` takes no such webhook any more; those of older servers make the dry-run answer this."""
    said = {"kind": "Status", "code": 400, "reason": "BadRequest", "message": 'admission webhook "judge" does not support dry run'}
    shop = InMemoryShop()
    shop.meet = lambda call, do: (400, said, {}) if call.asked.dry else do()
    shop.push(config_map("a"))
    result = shop.run()
    assert result.outcome is Outcome.APPLIED
    assert result.plan
    assert result.plan.notes[0].startswith("ConfigMap/shop/a: an admission webhook does not support dry run")
    assert shop.live(config_map("a"))
