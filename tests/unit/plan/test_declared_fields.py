"""What git declares at a path of a plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.names import GroupKind
from handler.plan.declared_fields import DeclaredField, DeclaredFields
from handler.plan.diff import field_changes

KIND = GroupKind("apps", "Deployment")
BODY: dict[str, Any] = {
    "metadata": {"annotations": {"a.b/c": "1", "a": "2", "x[0]": "3"}},
    "spec": {
        "containers": [{"name": "web", "ports": [{"port": 80}], "args": ["a"]}, {"name": "a.b]", "image": "i"}],
        "template": {"metadata": {"annotations": {"token": "t"}}},
        "none": None,
    },
}


@pytest.mark.parametrize(
    ("path", "text", "is_nested"),
    [
        ("metadata.annotations.a.b/c", "1", False),
        ("metadata.annotations.a", "2", False),
        ("metadata.annotations.x[0]", "3", False),
        ("spec.containers[name=web].ports[port=80,protocol=TCP].port", "80", False),
        ("spec.containers[name=web].ports[port=80]", '{"port": 80}', True),
        ("spec.containers[0].args[0]", "a", False),
        ("spec.containers[name=a.b]].image", "i", False),
        ("spec.none", "", False),
        ("spec.template.metadata.annotations.token", "***", False),
    ],
)
def test_a_declared_field_is_found_by_each_of_its_paths(path: str, text: str, is_nested: bool) -> None:
    assert DeclaredFields(KIND, BODY).at(path) == DeclaredField(len(path), text, is_nested)


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ("status", ""),
        ("spec.replicas", "spec"),
        ("spec.containers[name=live].image", "spec.containers"),
        ("spec.containers[name=web].env[name=LIVE]", "spec.containers[name=web]"),
        ("spec.containers[2]", "spec.containers"),
        ("metadata.annotations.a.live", "metadata.annotations.a"),
        ("metadata.annotations.live", "metadata.annotations"),
        ("spec.none.live", "spec.none"),
    ],
)
def test_of_what_is_not_declared_the_path_is_known_up_to_there(path: str, known: str) -> None:
    assert DeclaredFields(KIND, BODY).at(path) == DeclaredField(len(known))


def test_of_a_path_that_may_lead_to_too_many_places_nothing_is_known_beyond_a_few() -> None:
    assert DeclaredFields(KIND, {"." * 300_000: "x", "spec": {"." * 300_000: "x"}}).at("spec." + "." * 300_000) == DeclaredField(
        len("spec")
    )
    node: Any = "x"
    for _ in range(40):
        node = {"a": node, "a.a": node}
    path = ".".join("a" * 81)
    assert DeclaredFields(KIND, node).at(path).known < len(path)


_TREES = st.recursive(
    st.sampled_from(["1", "2"]),
    lambda below: st.dictionaries(st.sampled_from(["a", "b", "a.b", "name"]), below, max_size=3) | st.lists(below, max_size=3),
    max_leaves=12,
)


@given(_TREES, _TREES)
def test_each_path_by_which_a_plan_calls_a_declared_field_leads_to_it(one: Any, other: Any) -> None:
    for change in field_changes(KIND, {"metadata": {}, "spec": one}, {"metadata": {}, "spec": other}):
        for body, text in ((one, change.live), (other, change.declared)):
            if text and not change.path.endswith("[order]"):
                assert DeclaredFields(KIND, {"spec": body}).at(change.path).known == len(change.path)
