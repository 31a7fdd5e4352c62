"""Which records of a cluster belong to no configured target, from the LIST that views make anyway."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.app.record_summaries import TOOLING
from handler.app.retired import in_order, retired
from handler.config.git_settings import Repository, directory_url
from handler.config.settings import Settings, Target
from handler.state.configmap import encode, state_name
from handler.state.former import RecordName
from handler.state.record import State
from tests.unit.state.samples import NAMESPACE, blank, sha

SHOP = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))
SETTINGS = Settings((SHOP,), state_namespace=NAMESPACE)


def states(*found: State) -> dict[str, dict[str, Any]]:
    return {state_name(each.target): encode(each, NAMESPACE, TOOLING)["metadata"] for each in found}


def test_a_record_without_a_target_is_retired_with_the_command_that_ends_it() -> None:
    (found,) = retired(states(blank(commit=sha()), blank(target="store", commit=sha("b"))), SETTINGS, "prod")
    assert (found.target, found.namespace, found.cluster, found.commit) == ("store", NAMESPACE, "prod", sha("b"))
    assert found.next == "anneal retire store --prune"
    assert str(found) == f"store (ConfigMap/{NAMESPACE}/anneal-store on cluster prod, at {sha('b')[:8]})"


@pytest.mark.parametrize("begun", [True, False])
def test_one_that_is_taken_over_names_its_taker(begun: bool) -> None:
    record = blank(target="store", renamed_to=RecordName("shop", NAMESPACE) if begun else None)
    settings = SETTINGS if begun else replace(SETTINGS, targets=(replace(SHOP, renamed_from="store"),))
    (found,) = retired(states(record), settings, "prod")
    assert (found.taken_by, found.next) == ("shop", "anneal apply shop")


def test_what_a_directory_has_deployed_is_no_configurations_to_know() -> None:
    assert retired(states(blank(target="local", repository=directory_url("local"), commit=sha())), SETTINGS, "prod") == []


def test_what_only_looks_like_a_record_is_none() -> None:
    found = states(blank(target="store"))
    found["anneal-store"]["labels"]["applyset.kubernetes.io/id"] = "applyset-another-v1"
    assert retired(found, SETTINGS, "prod") == []


def test_they_are_in_order_of_their_names_and_clusters() -> None:
    record = states(blank(target="store"), blank(target="bank"))
    found = in_order([*retired(record, SETTINGS, "b"), *retired(record, SETTINGS, "a")])
    assert [(each.target, each.cluster) for each in found] == [("bank", "a"), ("bank", "b"), ("store", "a"), ("store", "b")]


def test_one_of_a_repository_that_no_configured_target_has_may_be_another_configurations() -> None:
    record = blank(target="store", repository="https://git.example.com/acme/bank.git", commit=sha())
    (found,) = retired(states(blank(commit=sha()), record), SETTINGS, "prod")
    assert found.stranger
    assert found.next == f"kubectl get configmap anneal-store -n {NAMESPACE} -o 'jsonpath={{.data.repository}}'"
