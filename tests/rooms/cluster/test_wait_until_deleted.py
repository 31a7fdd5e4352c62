"""What isn't gone is announced while it is waited for, with what holds it, as the real API server shows it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from handler.cluster.api import Api
from handler.cluster.write import Writer
from handler.engine.apply import wait_deleted
from handler.engine.apply.wait_deleted import wait_until_gone
from handler.model.errors import Problem, StillDeleting
from handler.model.names import identity_of
from tests.patience import PATIENCE
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.finalizers import drop_finalizers, once

HELD = "anneal.dev/test"


class Told:
    """What was announced, newest last."""

    def __init__(self) -> None:
        self.seen: list[tuple[Problem, ...]] = []

    def __call__(self, left: Sequence[Problem]) -> None:
        self.seen.append(tuple(left))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "_REPORT_AFTER", 0.0)
    monkeypatch.setattr(wait_deleted, "_REPORT_EVERY", 0.0)
    monkeypatch.setattr(wait_deleted, "TIMEOUT", PATIENCE)


def test_a_holding_finalizer_is_announced_until_the_object_is_gone(
    api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str
) -> None:
    resource, told = kind("v1", "ConfigMap"), Told()
    held = apply(config_map(namespace, "held", finalizers=[HELD]))
    identity, uid = identity_of(held), held["metadata"]["uid"]
    writer.delete(resource, identity, uid)
    release = once(lambda: drop_finalizers(api, resource, namespace, "held"), lambda: any(told.seen))
    wait_until_gone(api, [(resource, identity, uid)], release, told)
    [said] = told.seen[0]
    assert (said.subject, said.message) == (str(identity), f"is not gone yet; finalizers: {HELD} (the controller of anneal.dev)")
    assert said.fix == f"kubectl get ConfigMap/held -n {namespace} -o yaml shows who must act"
    assert told.seen[1:] == [()], "each is told once"


def test_an_object_deleted_at_once_is_not_announced(
    api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait_deleted, "_REPORT_AFTER", PATIENCE)
    resource, told = kind("v1", "ConfigMap"), Told()
    free = apply(config_map(namespace, "free"))
    writer.delete(resource, identity_of(free), free["metadata"]["uid"])
    wait_until_gone(api, [(resource, identity_of(free), free["metadata"]["uid"])], lambda: None, told)
    assert told.seen == []


def test_a_namespace_that_waits_says_what_is_left_in_it(
    api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own finalizers don't; the conditions that its controller sets do. The time-out's error says the same."""
    space = apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{namespace}-held"}})
    maps, spaces, told = kind("v1", "ConfigMap"), kind("v1", "Namespace"), Told()
    apply(config_map(f"{namespace}-held", "held", finalizers=[HELD]))
    identity, uid = identity_of(space), space["metadata"]["uid"]
    writer.delete(spaces, identity, uid)

    def is_named() -> bool:
        return any(HELD in each.message for each in (told.seen[-1] if told.seen else ()))

    def enough() -> None:
        if is_named():
            monkeypatch.setattr(wait_deleted, "TIMEOUT", 0.0)
            raise Enough

    with pytest.raises(Enough):
        wait_until_gone(api, [(spaces, identity, uid)], enough, told)
    [said] = told.seen[-1]
    assert "Some resources are remaining: configmaps. has " in said.message
    assert f"Some content in the namespace has finalizers remaining: {HELD} in 1 resource instances" in said.message
    with pytest.raises(StillDeleting) as error:
        wait_until_gone(api, [(spaces, identity, uid)], lambda: None, told)
    [late] = error.value.problems
    assert (late.subject, HELD in late.message) == (said.subject, True)
    drop_finalizers(api, maps, f"{namespace}-held", "held")
    monkeypatch.setattr(wait_deleted, "TIMEOUT", PATIENCE)
    wait_until_gone(api, [(spaces, identity, uid)], lambda: None)


class Enough(Exception):
    """The test has seen what it waits for."""
