"""Records that a target has in other places: those of its own repository, installation and cluster alone, in whichever format."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.record_places import TargetRecords, former_places
from handler.app.record_summaries import TOOLING, listed
from handler.config.git_settings import Repository, directory_url
from handler.config.settings import Settings
from handler.plan.inventory import TargetMarks
from handler.state.configmap import INSTANCE, SUMMARY, encode
from handler.state.record import State
from handler.state.record_values import RecordName
from tests.fakes.engine import ONE, SHOP, cluster, engine
from tests.fakes.git_host import GitHost
from tests.fakes.objects import FakeObjects
from tests.unit.state.samples import blank, sha

TARGET = ONE.targets[0]
MOVED = Settings(targets=(TARGET,), state_namespace="gitops")
HERE = {"target": "shop", "repository": SHOP.url, "commit": sha()}


def records(settings: Settings = MOVED, **parts: object) -> tuple[TargetRecords, State]:
    """Return the records of the first target, where one stands in the default namespace; and its blank state."""
    handler = engine(cluster("shop", "gitops"), GitHost(), settings)
    target, uid = handler.settings.targets[0], handler.cluster_uid(handler.settings.targets[0])
    old = blank(**(HERE | {"cluster_uid": uid} | parts))
    places = TargetRecords(handler, target)
    places.at(RecordName(old.target, "anneal-system")).store.create(old)
    return places, handler.store(target).blank(uid)


@pytest.mark.parametrize(("installation", "shared"), [("default", True), ("blue", False)])
def test_a_record_of_an_installation_without_a_name_may_be_anothers(installation: str, shared: bool) -> None:
    places, _ = records(replace(MOVED, installation=installation), installation=installation)
    found = places.parent(TargetMarks.of("shop", "anneal-system").applyset)
    assert found
    assert (found.ours, found.shared) == (True, shared)


@pytest.mark.parametrize(("name", "seen"), [("shop", True), ("bank", False)])
def test_of_the_installation_before_only_what_is_configured_is_listed(name: str, seen: bool) -> None:
    settings = replace(MOVED, installation="blue", installation_from="default", state_namespace="anneal-system")
    objects = FakeObjects()
    objects.create(encode(blank(target=name, commit=sha()), "anneal-system", TOOLING))
    assert list(listed(objects, settings)) == [f"anneal-{name}"] * seen


def test_a_record_in_another_namespace_is_found() -> None:
    places, own = records()
    assert [str(each) for each in places.elsewhere(own)] == ["ConfigMap/anneal-system/anneal-shop"]


@pytest.mark.parametrize(
    "parts",
    [{"repository": "https://git.example.com/acme/bank.git"}, {"installation": "second"}, {"cluster_uid": "another"}, {"target": "bank"}],
)
def test_that_of_another_repository_installation_cluster_or_target_is_not_counted(parts: Any) -> None:
    places, own = records(**parts)
    assert list(places.elsewhere(own)) == []


@pytest.mark.parametrize(("taker", "found"), [("store", ["store"]), ("shop", [])])
def test_a_record_that_was_taken_over_is_found_by_its_former_name_unless_its_taker_is_configured(taker: str, found: list[str]) -> None:
    settings = replace(MOVED, state_namespace="anneal-system", targets=(replace(TARGET, name="shop-old"), replace(TARGET, name="shop")))
    places, own = records(settings, target=taker, renamed_from="shop-old")
    assert [each.name for each in places.elsewhere(own)] == found


def test_a_directory_is_where_the_command_line_says() -> None:
    local = replace(MOVED, targets=(replace(TARGET, repository=Repository(directory_url("shop"))),))
    places, own = records(local, repository=directory_url("shop"))
    assert list(places.elsewhere(own)) == []


def test_the_parent_of_an_applyset_says_whose_it_is() -> None:
    places, own = records(installation="second")
    (found,) = filter(None, [places.parent(set_of("shop"))])
    assert (str(found), found.installation, found.ours, found.elsewhere) == ("ConfigMap/anneal-system/anneal-shop", "second", False, True)
    assert places.parent(set_of("bank")) is None
    assert own.target == "shop"


def set_of(name: str) -> str:
    return TargetMarks.of(name, "anneal-system").applyset


def test_former_places_are_the_names_and_namespaces_of_before_but_its_own() -> None:
    settings = replace(MOVED, state_namespace_from="first")
    found = former_places(settings, replace(TARGET, name="store", renamed_from="shop"))
    assert [(each.name, each.namespace) for each in found] == [("store", "first"), ("shop", "first"), ("shop", "gitops")]


def test_of_a_records_annotations_only_what_is_read_is_listed() -> None:
    body = encode(blank(target="shop", commit=sha()), "anneal-system", TOOLING)
    body["metadata"]["annotations"] |= {"x": "y", INSTANCE: "z" * 200_000}
    objects = FakeObjects()
    objects.create(body)
    (found,) = listed(objects, replace(MOVED, state_namespace="anneal-system", installation="default")).values()
    assert set(found["annotations"]) == {"applyset.kubernetes.io/tooling", SUMMARY}
