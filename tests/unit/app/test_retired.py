"""Which records of clusters belong to no configured target there, from the LIST that views make anyway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from handler.app.record_summaries import TOOLING
from handler.app.retired import ClusterRecords, RetiredTarget, retired
from handler.config.git_settings import Repository, directory_url
from handler.config.secret_ref import SecretRef
from handler.config.settings import Cluster, Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings, WatchedResource
from handler.model.names import state_name
from handler.state.configmap import encode
from handler.state.heartbeat import Pulse, Server
from handler.state.record import State
from handler.state.record_values import RecordName
from tests.unit.state.samples import NAMESPACE, blank, sha

PROD, NEXT = Cluster(kubeconfig=SecretRef(file="/etc/prod"), context="prod"), Cluster(context="next")
SHOP = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",), cluster=PROD)
SETTINGS = Settings((SHOP,), state_namespace=NAMESPACE, installation="blue")
SHARED = replace(SETTINGS, installation="default")
TRIGGER = TriggerSettings(ResourceTrigger("widget", (WatchedResource("widget", "example.com/v1", "Widget"),)))


def states(*found: State, uid: str = "u") -> dict[str, dict[str, Any]]:
    """Return metadata as a LIST has it: each record's uid is its name's, with `uid`."""
    named = {state_name(each.target): encode(each, NAMESPACE, TOOLING)["metadata"] for each in found}
    return {name: {**metadata, "uid": f"{name} {uid}"} for name, metadata in named.items()}


def among(found: Mapping[str, dict[str, Any]], settings: Settings = SETTINGS) -> list[RetiredTarget]:
    return retired({PROD: ClusterRecords(found)}, settings)


def test_a_record_without_a_target_is_retired_with_the_command_that_ends_it() -> None:
    (found,) = among(states(blank(commit=sha()), blank(target="store", commit=sha("b"))))
    assert (found.target, found.namespace, found.cluster, found.commit) == ("store", NAMESPACE, PROD.name, sha("b"))
    assert found.next == "anneal retire store --prune --dry-run"
    assert str(found) == f"store (ConfigMap/{NAMESPACE}/anneal-store on cluster {PROD.name}, at {sha('b')[:8]})"


@pytest.mark.parametrize("begun", [True, False])
def test_one_that_is_taken_over_names_its_taker(begun: bool) -> None:
    record = blank(target="store", renamed_to=RecordName("shop", NAMESPACE) if begun else None)
    settings = SETTINGS if begun else replace(SETTINGS, targets=(replace(SHOP, renamed_from="store"),))
    (found,) = among(states(record), settings)
    assert (found.taken_by, found.next) == ("shop", "anneal apply shop")


@pytest.mark.parametrize(
    ("taker", "taken"), [({"commit": sha()}, ""), ({"commit": sha(), "former": RecordName("store", NAMESPACE)}, "shop")]
)
def test_a_target_that_has_deployed_under_its_own_record_takes_nothing_over(taker: dict[str, Any], taken: str) -> None:
    settings = replace(SETTINGS, targets=(replace(SHOP, renamed_from="store"),))
    (found,) = among(states(blank(**taker), blank(target="store", commit=sha())), settings)
    assert found.taken_by == taken


def test_what_a_directory_has_deployed_is_no_configurations_to_know() -> None:
    assert among(states(blank(target="local", repository=directory_url("local"), commit=sha()))) == []


def test_what_only_looks_like_a_record_is_none() -> None:
    found = states(blank(target="store"))
    found["anneal-store"]["labels"]["applyset.kubernetes.io/id"] = "applyset-another-v1"
    assert among(found) == []


@pytest.mark.parametrize(("ended", "listed"), [(False, []), (True, ["bank", "store"])])
def test_what_a_running_server_looks_after_is_another_configurations(ended: bool, listed: list[str]) -> None:
    servers = {"one": Server("one", "1.0.0", 100.0, ended)}
    pulse = Pulse(120.0, servers=servers, targets={"store": ("one", 90.0), "bank": ("one", 90.0)})
    found = retired({PROD: ClusterRecords(states(blank(target="store"), blank(target="bank")), pulse=pulse)}, SETTINGS)
    assert [each.target for each in found] == listed


def test_they_are_in_order_of_their_names_and_clusters() -> None:
    record = states(blank(target="store"), blank(target="bank"))
    found = retired({PROD: ClusterRecords(record), NEXT: ClusterRecords(record)}, SETTINGS)
    places = sorted((PROD.name, NEXT.name))
    assert [(each.target, each.cluster) for each in found] == [(name, place) for name in ("bank", "store") for place in places]


@pytest.mark.parametrize("repository", [SHOP.repository.url, "https://git.example.com/acme/bank.git"])
def test_only_an_installation_with_a_name_of_its_own_has_what_ends_its_records(repository: str) -> None:
    record = states(blank(commit=sha()), blank(target="store", repository=repository, commit=sha()))
    (found,), (other,) = among(record), among(record, SHARED)
    assert (found.stranger, found.next) == (False, "anneal retire store --prune --dry-run")
    assert (other.stranger, other.next) == (True, "anneal retire store --prune --dry-run")


MOVED = replace(SETTINGS, targets=(replace(SHOP, cluster=NEXT), replace(SHOP, name="bank")))


@pytest.mark.parametrize("there", [{}, states(blank(commit=sha()), uid="another")], ids=["not run yet", "run"])
def test_a_target_that_was_moved_is_retired_on_the_cluster_that_it_left(there: dict[str, Any]) -> None:
    left = states(blank(commit=sha()), blank(target="bank", commit=sha()))
    (found,) = retired({PROD: ClusterRecords(left), NEXT: ClusterRecords(there)}, MOVED)
    assert (found.target, found.cluster, found.moved_to, found.stranger) == ("shop", PROD.name, NEXT.name, False)
    assert found.next == "anneal retire shop --prune --dry-run --kubeconfig /etc/prod --context prod"


def test_a_target_whose_cluster_was_not_seen_or_is_the_same_one_is_not_retired() -> None:
    here = ClusterRecords(states(blank(commit=sha()), blank(target="bank", commit=sha())))
    assert retired({PROD: here}, MOVED) == []
    assert retired({PROD: here, NEXT: here}, MOVED) == []


def test_what_two_ways_to_one_cluster_show_is_retired_once() -> None:
    here = ClusterRecords(states(blank(target="bank", commit=sha())), "uid-of-prod")
    (found,) = retired({PROD: here, NEXT: here}, SETTINGS)
    assert (found.target, found.cluster) == ("bank", PROD.name)


GONE = ("grafana.ns.a", "grafana.ns.b")


def test_instances_of_a_template_that_is_gone_name_what_ends_all_of_them() -> None:
    found = among(states(blank(commit=sha()), *(blank(target=name, commit=sha()) for name in GONE)))
    assert [(each.target, each.template) for each in found] == [(name, "grafana") for name in GONE]
    assert {each.next_of_all for each in found} == {"anneal retire grafana --prune --dry-run"}
    assert found[0].next == "anneal retire grafana.ns.a --prune --dry-run"


def test_instances_of_a_template_that_is_on_another_cluster_by_now_end_where_it_was() -> None:
    template = replace(SHOP, name="grafana", cluster=NEXT, trigger=TRIGGER)
    left = states(blank(commit=sha()), blank(target=GONE[0], commit=sha()))
    (found,) = retired({PROD: ClusterRecords(left), NEXT: ClusterRecords({})}, replace(SETTINGS, targets=(SHOP, template)))
    assert (found.moved_to, found.template) == (NEXT.name, "grafana")
    assert found.next_of_all == "anneal retire grafana --prune --dry-run --kubeconfig /etc/prod --context prod"


def test_where_a_target_has_the_templates_name_by_now_each_instance_ends_alone() -> None:
    settings = replace(SETTINGS, targets=(SHOP, replace(SHOP, name="grafana")))
    found = among(states(blank(commit=sha()), *(blank(target=name, commit=sha()) for name in GONE)), settings)
    assert [(each.target, each.template, each.next_of_all) for each in found] == [(name, "", "") for name in GONE]


def test_instances_of_a_template_that_a_running_server_looks_after_are_another_configurations() -> None:
    pulse = Pulse(120.0, servers={"one": Server("one", "1.0.0", 100.0)}, targets={"grafana": ("one", 90.0)})
    assert retired({PROD: ClusterRecords(states(*(blank(target=name) for name in GONE)), pulse=pulse)}, SETTINGS) == []


def test_of_instances_of_a_template_that_may_be_anothers_no_deletion_is_advised() -> None:
    (found,) = among(states(blank(commit=sha()), blank(target=GONE[0], commit=sha())), SHARED)
    assert (found.stranger, found.next_of_all) == (True, "anneal retire grafana --prune --dry-run")
    moved = replace(MOVED, installation="default")
    (left,) = retired({PROD: ClusterRecords(states(blank(commit=sha()))), NEXT: ClusterRecords({})}, moved)
    assert left.next == "anneal retire shop --prune --dry-run --kubeconfig /etc/prod --context prod"
