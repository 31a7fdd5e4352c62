"""A wait for deleted objects reports what holds them when that changes, and that all are gone once it has reported any."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from handler.engine.apply import wait_deleted
from handler.engine.apply.wait_deleted import wait_until_gone
from handler.model.names import identity_of
from tests.unit.engine.apply.planned_target import config_map

Live = dict[str, Any]


def held(name: str, *finalizers: str) -> Live:
    return config_map(name, metadata={"name": name, "namespace": "shop", "uid": f"uid-{name}", "finalizers": list(finalizers)})


ONE, OTHER = held("one", "acme.io/backup"), held("one", "acme.io/backup", "foregroundDeletion")
TWO = held("two", "acme.io/backup")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "_REPORT_AFTER", 0.0)
    monkeypatch.setattr(wait_deleted, "_REPORT_EVERY", 0.0)


@pytest.fixture
def wait(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Wait while the cluster shows these, one look after the other; return the reports, each with what it says of its objects."""

    def waited(*looks: Sequence[Live]) -> list[list[str]]:
        def until_gone(_api: Any, _wanted: Any, _timeout: float, stop: Callable[[], None], left: Callable[[Sequence[Live]], None]) -> Any:
            for look in looks:
                stop()
                left(look)
            return ()

        monkeypatch.setattr(wait_deleted, "until_gone", until_gone)
        reports: list[list[str]] = []
        wanted: Any = [(None, identity_of(each), each["metadata"]["uid"]) for each in (ONE, TWO)]
        nowhere: Any = None
        wait_until_gone(nowhere, wanted, lambda: None, lambda left: reports.append([f"{each.subject} {each.message}" for each in left]))
        return reports

    return waited


BACKUP = "is not gone yet; finalizers: acme.io/backup (the controller of acme.io)"


def test_what_holds_an_object_is_reported_when_it_changes_and_then_that_all_are_gone(wait: Callable[..., list[list[str]]]) -> None:
    one, two = f"ConfigMap/shop/one {BACKUP}", f"ConfigMap/shop/two {BACKUP}"
    more = f"{one}, foregroundDeletion (the garbage collector, once its dependents are gone)"
    assert wait([TWO, ONE], [ONE, TWO], [ONE, TWO], [OTHER]) == [[one, two], [more], []]


def test_what_is_gone_soon_is_not_reported(wait: Callable[..., list[list[str]]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_deleted, "_REPORT_AFTER", 60.0)
    assert wait([ONE], [ONE], []) == []
