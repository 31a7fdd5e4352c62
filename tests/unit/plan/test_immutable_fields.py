"""When git alone says that a merge changes a field that the API server never lets change."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import GroupKind
from handler.plan.immutable_fields import is_data, refusal
from handler.plan.judge import is_immutable

DEPLOYMENT, JOB, SECRET = GroupKind("apps", "Deployment"), GroupKind("batch", "Job"), GroupKind("", "Secret")
CONFIG, BINDING = GroupKind("", "ConfigMap"), GroupKind("rbac.authorization.k8s.io", "RoleBinding")
FROZEN: dict[str, Any] = {"immutable": True, "data": {"a": "1"}}


def said(kind: GroupKind, now: dict[str, Any], then: dict[str, Any], *unsure: str) -> str:
    """Return the fields that are said to differ."""
    found = refusal(kind, now, then, unsure)
    assert found is None or is_immutable(found), "a run would take it for the server's"
    return found.problems[0].message.replace(": field is immutable", "") if found else ""


@pytest.mark.parametrize(
    ("kind", "now", "then", "fields"),
    [
        (DEPLOYMENT, {"spec": {"selector": {"a": "b"}}}, {"spec": {"selector": {"a": "c"}}}, "spec.selector"),
        (DEPLOYMENT, {"spec": {"selector": {"a": "b"}, "replicas": 1}}, {"spec": {"selector": {"a": "b"}, "replicas": 2}}, ""),
        (DEPLOYMENT, {"spec": {}}, {"spec": {"selector": {"a": "c"}}}, ""),
        (DEPLOYMENT, {"spec": {"selector": {"a": "b"}}}, {"spec": "x"}, ""),
        (JOB, {"spec": {"template": {"a": 1}}}, {"spec": {"template": {"a": 2}}}, "spec.template"),
        (JOB, {"spec": {"template": {"a": 1}, "suspend": True}}, {"spec": {"template": {"a": 2}}}, ""),
        (BINDING, {"roleRef": {"kind": "Role", "name": "a"}}, {"roleRef": {"kind": "Role", "name": "b", "apiGroup": "x"}}, "roleRef.name"),
        (CONFIG, {"data": {"a": "1"}}, {"data": {"a": "2"}}, ""),
        (CONFIG, FROZEN, FROZEN | {"metadata": {"labels": {"a": "b"}}}, ""),
        (CONFIG, FROZEN, FROZEN | {"data": {"a": "2"}}, "data"),
        (CONFIG, FROZEN, FROZEN | {"data": {"a": "1", "b": "2"}}, "data"),
        (CONFIG, FROZEN, {"data": {"a": "1"}}, "immutable"),
        (SECRET, FROZEN | {"type": "a"}, FROZEN | {"type": "b", "data": {}}, "type; data"),
        (GroupKind("example.com", "Deployment"), {"spec": {"selector": 1}}, {"spec": {"selector": 2}}, ""),
    ],
)
def test_only_what_both_declarations_name_is_said(kind: GroupKind, now: dict[str, Any], then: dict[str, Any], fields: str) -> None:
    assert said(kind, now, then) == fields


def test_a_value_that_stands_for_another_is_not_certain() -> None:
    now, then = ({"spec": {"selector": {"app": each}}} for each in ("placeholder/a", "b"))
    assert said(DEPLOYMENT, now, then) == "spec.selector"
    assert said(DEPLOYMENT, now, then, "placeholder") == ""


@pytest.mark.parametrize(
    ("kind", "body", "expected"), [(CONFIG, FROZEN, True), (CONFIG, {"immutable": "true"}, False), (JOB, FROZEN, False)]
)
def test_data_is_immutable_where_its_object_says_so(kind: GroupKind, body: dict[str, Any], expected: bool) -> None:
    assert is_data(kind, body) is expected
