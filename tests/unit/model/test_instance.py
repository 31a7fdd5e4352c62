"""An instance is known by its object; its name as a target fits a label, and no status of the object configures it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.config.value_formats import FORMS
from handler.model.instance import (
    LONGEST,
    LONGEST_TEMPLATE,
    Instance,
    instance_name,
    is_covered,
    is_instance,
    is_target_name,
    template_of,
)
from handler.model.names import Identity

pytestmark = pytest.mark.slow


def grafana(**metadata: Any) -> dict[str, Any]:
    known = {"name": "main", "namespace": "shop", "uid": "u-1", "generation": 3, "resourceVersion": "12", "managedFields": [{}]}
    return {"apiVersion": "monitoring.coreos.com/v1", "kind": "Grafana", "metadata": known | metadata, "spec": {"replicas": 2}}


def test_an_instance_is_its_object_without_what_servers_write() -> None:
    found = Instance.of(grafana(labels={"app": "x"}) | {"status": {"phase": "Ready"}})
    assert (found.identity, found.uid, found.generation, found.key, found.terminating) == (
        Identity("monitoring.coreos.com", "Grafana", "shop", "main"),
        "u-1",
        3,
        "shop/main",
        False,
    )
    assert found.body == {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Grafana",
        "metadata": {"name": "main", "namespace": "shop", "uid": "u-1", "labels": {"app": "x"}},
        "spec": {"replicas": 2},
    }


def test_only_what_configures_it_changes_its_digest() -> None:
    first = Instance.of(grafana()).digest
    for same in (grafana(resourceVersion="13", generation=4), grafana() | {"status": {"conditions": []}}):
        assert Instance.of(same).digest == first
    for other in (grafana(uid="u-2"), grafana(labels={"a": "b"}), grafana() | {"spec": {"replicas": 3}}):
        assert Instance.of(other).digest != first


def test_a_cluster_scoped_object_without_a_generation_is_an_instance_too() -> None:
    live = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    found = Instance.of(live)
    assert (found.key, found.generation, found.terminating, instance_name("tenant", "", "shop")) == ("shop", 0, True, "tenant.shop")


OWN = {"apiVersion": "monitoring.coreos.com/v1beta1", "kind": "Grafana", "name": "main", "uid": "u-0"}


@pytest.mark.parametrize(
    ("references", "owned"),
    [
        ([OWN], True),
        ([OWN | {"controller": True}], True),
        ([], False),
        (None, False),
        ([OWN | {"name": "other"}], False),
        ([OWN | {"kind": "Deployment"}], False),
        ([OWN | {"apiVersion": "example.com/v1"}], False),
        ([OWN, OWN | {"name": "other"}], False),
    ],
)
def test_an_instance_owns_what_names_its_object_alone(references: Any, owned: bool) -> None:
    assert Instance.of(grafana()).owns(references) is owned


LABELS = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True)
NAMES = st.from_regex(r"[a-z0-9](?:[a-z0-9-]{0,20}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,60}[a-z0-9])?){0,4}", fullmatch=True)


@given(LABELS, st.one_of(st.just(""), LABELS), NAMES)
def test_the_name_of_an_instance_is_a_targets_and_a_labels(template: str, namespace: str, name: str) -> None:
    template = template[:LONGEST_TEMPLATE].rstrip("-")
    found = instance_name(template, namespace, name)
    assert len(found) <= LONGEST
    assert is_target_name(found)
    assert is_instance(found)
    assert template_of(found) == template
    assert re.fullmatch(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", found)  # a ConfigMap's


@pytest.mark.parametrize("name", ["system:Node", "UPPER", "dot.", ".-x", "a,b=c", "ü", "...", "x..-y"])
def test_an_object_that_is_called_as_no_target_may_be_has_a_digest_in_its_name(name: str) -> None:
    found = instance_name("roles", "shop", name)
    assert is_target_name(found)
    assert re.search("-[0-9a-f]{10}$", found)
    assert found.startswith("roles.shop")


def test_long_names_that_are_cut_alike_stay_apart() -> None:
    first, second = (instance_name("grafana", "shop", f"{'x' * 60}.{end}") for end in "ab")
    assert first != second
    assert first[:50] == second[:50]


@pytest.mark.parametrize("text", ["", "-", "Shop", "a..b", "a.-b", "b" * 57, f"{'b' * 61}.de", "a.b\n", "a/b"])
def test_what_is_no_name_of_a_target(text: str) -> None:
    assert not is_target_name(text)
    assert not re.fullmatch(FORMS["name"].pattern, text)


def test_a_configured_target_is_no_instance() -> None:
    assert (is_instance("shop"), template_of("shop"), is_target_name("b" * 56)) == (False, "shop", True)


@pytest.mark.parametrize(
    ("glob", "covered"),
    [
        ("grafana", {"grafana", "grafana.shop.main"}),
        ("graf*", {"grafana", "grafana.shop.main", "grafana-2.shop.main"}),
        ("grafana.*", {"grafana.shop.main"}),
        ("grafana.shop.*", {"grafana.shop.main"}),
        ("grafana.shop.main", {"grafana.shop.main"}),
        ("grafana.dev.*", set()),
        ("*.shop.*", {"grafana.shop.main", "grafana-2.shop.main"}),
        ("shop", set()),
    ],
)
def test_a_glob_covers_an_instance_by_its_own_name_or_by_its_template_s(glob: str, covered: set[str]) -> None:
    names = ("grafana", "grafana.shop.main", "grafana-2.shop.main")
    assert {name for name in names if is_covered(name, ("other", glob))} == covered
    assert not any(is_covered(name, ()) for name in names)
