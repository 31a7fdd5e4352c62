"""Values become JSON as Kubernetes spells it."""

from __future__ import annotations

from handler.model.names import GroupKind, Identity
from handler.model.plan import Action, Change
from handler.model.result import Outcome
from handler.model.to_json import plain

ONE = Identity("apps", "Deployment", "shop", "api")


def test_values_become_json_as_kubernetes_spells_it() -> None:
    assert plain({"a": ONE, "b": frozenset({GroupKind("apps", "Deployment"), GroupKind("", "Pod")}), "c": Outcome.HELD}) == {
        "a": "Deployment/shop/api",
        "b": ["Deployment.apps", "Pod"],
        "c": "held",
    }
    assert plain(Change(Action.CREATE, ONE, resource_version="7"))["resourceVersion"] == "7"
