"""What instances of a CRD lose by a narrower schema is asked of the server, also while its discovery doesn't know the kind yet."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.settings import Target
from handler.engine.planner.narrowed_crds import losing_fields
from handler.model.names import identity_of
from handler.model.plan import Action, Change
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.engine import SHOP
from tests.unit.engine.in_memory_shop import KINDS, OFFERS

TARGET = Target("shop", SHOP, ("shop",), path="shop", cluster_scoped=("CustomResourceDefinition",))
OFFER = OFFERS.resource


def crd(*fields: str, established: str = "True") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": {name: {"type": "integer"} for name in fields}}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "offers.acme.io", "uid": "u1"},
        "spec": {
            "group": OFFER.group,
            "names": {"kind": OFFER.kind, "plural": OFFER.plural},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
        "status": {"conditions": [{"type": "Established", "status": established}]},
    }


@pytest.mark.parametrize(("kinds", "established", "lost"), [(KINDS, "True", 1), (WORKLOADS, "True", 1), (WORKLOADS, "False", 0)])
def test_what_an_instance_holds_waits_for_a_person_whether_discovery_knows_its_kind_or_not(kinds: Any, established: str, lost: int) -> None:
    api = Api(FakeConnection(ApiServer(time.time, KINDS)))
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    body = {"apiVersion": "acme.io/v1", "kind": "Offer", "metadata": {"name": "one", "namespace": "shop"}, "spec": {"price": 7}}
    api.post(OFFER.path("shop"), body)
    live, narrower = crd("price", "cost", established=established), crd("cost")
    late = Discovery(Api(FakeConnection(ApiServer(time.time, kinds))))  # as it answers for some seconds after a CRD has come
    change = Change(Action.UPDATE, identity_of(live), "u1", manifest=SimpleNamespace(body=lambda: narrower, place=""))  # type: ignore[arg-type]  # all that is asked
    compared: Any = SimpleNamespace(unowned={change.identity: live}, undecided={})
    found = losing_fields(compared, [change], api, late, TARGET)
    assert [reason for reason in found.values() if "1 instance would lose what its new schema lacks: spec.price" in reason] == [
        *found.values()
    ]
    assert len(found) == lost
