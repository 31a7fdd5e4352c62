"""The refusal of fields that live alone has: what it names, and the lines for git that it prints."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from handler.model.errors import FieldCause
from handler.plan.diff import text_of
from handler.plan.live_only_fields import each_without, forbidden, left_null, nulled, refusal, unreleased
from handler.plan.managed_fields import Fields, without
from tests.unit.plan.samples import desired, document, entry

ONE: dict[str, Any] = {'k:{"port":81,"protocol":"TCP"}': {"f:port": {}, "f:name": {}}}
SPEC = {"ports": [{"port": 81, "protocol": "TCP", "name": "x", "target": 1}], "members": ["a", "b"], "y": {"1": "", "no: no": True}}


@pytest.mark.parametrize(
    ("fields", "named", "lines"),
    [
        ({"f:y": {}}, "spec.y: ", {"y": {"1": "", "no: no": True}}),
        ({"f:y": {"f:1": {}, "f:no: no": {}}}, "spec.y.1: ", {"y": {"1": "", "no: no": True}}),
        ({"f:ports": ONE}, "spec.ports[port=81,protocol=TCP].port: 81", {"ports": [{"port": 81, "protocol": "TCP", "name": "x"}]}),
        ({"f:ports": {key: {".": {}} for key in ONE}}, "spec.ports[port=81,protocol=TCP]: ", {"ports": SPEC["ports"]}),
        ({"f:members": {'v:"b"': {}}}, "spec.members[b]: b", {"members": ["b"]}),
    ],
)
def test_the_lines_for_git_hold_the_live_values(fields: dict[str, Any], named: str, lines: dict[str, Any]) -> None:
    (item,) = desired(document())
    live = document(metadata={"namespace": "shop", "managedFields": [entry({"f:spec": fields}, "kubectl", "Update")]}, spec=SPEC)
    kept = [(path, only) for path, only, _ in each_without(live, {"f:spec": fields})]
    problem = refusal(item, live, kept, "no")
    assert f"live alone has {named}" in problem.message
    assert "(by kubectl)" in problem.message
    assert yaml.safe_load(problem.fix.partition("write into it ")[2]) == {"spec": lines}


def test_what_cannot_be_released_is_named_with_the_version_to_declare() -> None:
    (item,) = desired(document())
    others = [{**entry({}, "terraform"), "apiVersion": "v2"}, entry({}, "kubectl", "Update")]
    live = document(metadata={"managedFields": others})
    fields: Fields = {"f:metadata": {"f:labels": {"f:app": {}}}}
    assert unreleased(item, live, fields).startswith(f"{item.identity}: metadata.labels.app stays: ")
    assert "recorded in v2; declare the object in that version" in unreleased(item, live, fields)
    assert ": what others wrote stays: " in unreleased(item, live, {})


def grown(kind: str, was: Any, becomes: Any, field: str = "spec.size", reason: str = "FieldValueForbidden") -> tuple[str, str]:
    """Return what is said where git's value is forbidden beside the live one, which kubectl wrote."""
    above, name = field.split(".")
    metadata = {"namespace": "shop", "managedFields": [entry({f"f:{above}": {f"f:{name}": {}}}, "kubectl-patch", "Update")]}
    declared, lives = ({above: {name: value}} for value in (becomes, was))
    (item,) = desired({**document(kind), **declared})
    return forbidden(item, {**document(kind, metadata=metadata), **lives}, [FieldCause(field, reason, "no")])


def test_what_may_not_go_back_is_told_with_its_writer_and_the_lines_for_git() -> None:
    said = "spec.size: 2Gi (by kubectl-patch)"
    assert grown("PersistentVolumeClaim", "2Gi", "1Gi") == (said, 'declare what lives: write into it spec: {size: "2Gi"}')
    assert grown("ConfigMap", "2Gi", "1Gi") == (said, "")
    assert grown("ConfigMap", "2Gi", "1Gi", reason="FieldValueInvalid") == ("", "")
    assert grown("ConfigMap", "2Gi", "2Gi") == ("", "")
    assert grown("ConfigMap", None, "2Gi") == ("", "")
    assert forbidden(desired(document())[0], {}, [FieldCause("spec.size", "FieldValueForbidden", "no")]) == ("", "")
    seen, fix = grown("Secret", "swordfish", "tuna", "data.size")
    assert "swordfish" not in seen + fix
    assert fix == ""
    assert grown("PersistentVolumeClaim", "2" * 300, "1Gi")[1] == "declare these fields with their live values"


def test_the_lines_for_git_hold_no_secret_and_no_long_value() -> None:
    fields: dict[str, Any] = {"f:spec": {"f:token": {}, "f:a": {}}, "f:data": {"f:long": {}}}
    (item,) = desired(document())
    live = document(metadata={"namespace": "shop"}, spec={"token": "CANARY", "a": 1}, data={"long": "x" * 300})
    problem = refusal(item, live, [(path, only) for path, only, _ in each_without(live, fields)], "no")
    assert problem.fix.endswith("write into it spec: {a: 1}")
    assert "CANARY" not in str(problem)
    secret = refusal(item, live, [(("spec", "token"), {"f:spec": {"f:token": {}}})], "no")
    assert secret.fix == "declare these fields with their live values"


def test_a_field_that_live_has_no_more_is_not_asked_about() -> None:
    assert list(each_without(document(spec={"a": 1}), {"f:spec": {"f:b": {}}})) == []


@pytest.mark.parametrize(
    ("spec", "goes", "becomes", "named"),
    [
        ({"open": {"a": 1}}, {"f:open": {"f:a": {}}}, {}, ["spec.open.a"]),
        ({"open": {"a": 1}}, {"f:open": {"f:a": {}}}, {"open": {}}, []),
        ({"open": {"a": 1, "b": 2}}, {"f:open": {"f:a": {}}}, {}, []),
        ({"open": {}}, {"f:open": {"f:a": {}}}, {}, []),
        ({"open": {"a": 1}}, {"f:open": {}}, {}, []),
        ({"l": [{"name": "x", "m": {"a": 1}}]}, {"f:l": {'k:{"name":"x"}': {"f:m": {"f:a": {}}}}}, {}, ["spec.l[name=x].m.a"]),
    ],
)
def test_a_map_that_an_apply_would_leave_null_is_refused(spec: Any, goes: Any, becomes: Any, named: list[str]) -> None:
    live, gone = document(metadata={"namespace": "shop"}, spec={"kept": 1, **spec}), {"f:spec": goes}
    found = nulled(live, without(live, gone), document(spec={"kept": 1, **becomes}), gone)
    assert [text_of(path) for path, _ in found] == named
    if found:
        (item,) = desired(document())
        problem = left_null(item, live, found)
        assert f"it is the last of {named[0].rpartition('.')[0]}, which another manager or git keeps" in problem.message
