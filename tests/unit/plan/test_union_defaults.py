"""What the server filled in for another choice than git's, as a set of fields."""

from __future__ import annotations

from typing import Any

import pytest

from handler.plan.union_defaults import superseded

ROLLING = {"maxSurge": "25%", "maxUnavailable": "25%"}
GOES: dict[str, Any] = {"f:spec": {"f:strategy": {"f:rollingUpdate": {".": {}, "f:maxSurge": {}, "f:maxUnavailable": {}}}}}
VOLUME: dict[str, Any] = {"f:spec": {"f:template": {"f:spec": {"f:volumes": {'k:{"name":"v"}': {"f:emptyDir": {}}}}}}}


def deployment(
    strategy: Any = None, volumes: Any = None, kind: str = "Deployment", version: str = "apps/v1", theirs: Any = None
) -> dict[str, Any]:
    name = "updateStrategy" if kind == "StatefulSet" else "strategy"
    written = {"manager": "kubectl", "operation": "Apply", "apiVersion": version, "fieldsV1": theirs}
    spec = {name: strategy, "template": {"spec": {"volumes": volumes}}}
    metadata = {"name": "web", "managedFields": [written] if theirs else []}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


LIVE = deployment({"type": "RollingUpdate", "rollingUpdate": ROLLING}, [{"name": "v", "emptyDir": {}}])


@pytest.mark.parametrize(
    ("strategy", "found"),
    [
        ({"type": "Recreate"}, GOES),
        ({"type": "Recreate", "rollingUpdate": None}, GOES),
        ({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}, {}),
        ({"type": "RollingUpdate"}, {}),
        ({}, {}),
        ("Recreate", {}),
        (None, {}),
    ],
)
def test_a_strategy_excludes_the_parameters_of_another(strategy: Any, found: dict[str, Any]) -> None:
    assert superseded(LIVE, deployment(strategy)) == found


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        ({"name": "v", "secret": {"secretName": "a"}}, VOLUME),
        ({"name": "v", "secret": {"secretName": "a"}, "emptyDir": None}, VOLUME),
        ({"name": "v", "emptyDir": {}, "secret": {}}, {}),
        ({"name": "v"}, {}),
        ({"name": "v", "secret": None}, {}),
        ({"name": "w", "secret": {}}, {}),
        ("v", {}),
    ],
)
def test_a_volume_with_a_source_isnt_empty(volume: Any, found: dict[str, Any]) -> None:
    assert superseded(LIVE, deployment(volumes=[volume])) == found


def test_what_git_declared_empty_doesnt_hold_what_the_server_filled_in() -> None:
    ours = {"manager": "anneal", "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:strategy": {}}}}
    live = {**LIVE, "metadata": {"name": "web", "managedFields": [ours]}}
    assert superseded(live, deployment({"type": "Recreate"})) == GOES


def test_what_somebody_wrote_stays_theirs() -> None:
    theirs = deployment({"type": "RollingUpdate", "rollingUpdate": ROLLING}, theirs=GOES)
    assert superseded(theirs, deployment({"type": "Recreate"})) == {}


@pytest.mark.parametrize("about", [{"kind": "DaemonSet"}, {"version": "example.com/v1"}])
def test_kinds_whose_servers_take_it_as_it_is_are_left_alone(about: dict[str, str]) -> None:
    live = deployment({"type": "RollingUpdate", "rollingUpdate": ROLLING}, **about)
    assert superseded(live, deployment({"type": "Recreate"}, **about)) == {}


def test_a_stateful_set_excludes_its_own() -> None:
    live = deployment({"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}, kind="StatefulSet")
    found = superseded(live, deployment({"type": "OnDelete"}, kind="StatefulSet"))
    assert found == {"f:spec": {"f:updateStrategy": {"f:rollingUpdate": {".": {}, "f:partition": {}}}}}
