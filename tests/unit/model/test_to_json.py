"""Values become JSON as Kubernetes spells it."""

from __future__ import annotations

from handler.model.names import GroupKind, Identity
from handler.model.plan import Action, Change
from handler.model.result import Outcome
from handler.model.to_json import fitting, plain

ONE = Identity("apps", "Deployment", "shop", "api")


def test_values_become_json_as_kubernetes_spells_it() -> None:
    assert plain({"a": ONE, "b": frozenset({GroupKind("apps", "Deployment"), GroupKind("", "Pod")}), "c": Outcome.HELD}) == {
        "a": "Deployment/shop/api",
        "b": ["Deployment.apps", "Pod"],
        "c": "held",
    }
    assert plain(Change(Action.CREATE, ONE, resource_version="7"))["resourceVersion"] == "7"


def test_what_fits_is_yielded_up_to_the_end_of_its_room() -> None:
    assert list(fitting(["ab", "cd", "e"], most=8)) == ["ab", "cd"]
    assert list(fitting(["abcdefgh", "e"], most=8)) == []
