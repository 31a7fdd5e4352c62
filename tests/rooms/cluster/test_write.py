"""Applies, dry runs, deletes: what the server accepts, refuses and swaps."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner, Writer
from handler.model.errors import AccessDenied, ApiRefused, LeaseLost, Moved, NotReady
from handler.model.names import Identity, Resource, identity_of
from tests.patience import until
from tests.rooms.cluster.conftest import Apply, Kind, config_map
from tests.rooms.cluster.faulty_proxy import Wire


def content(api: Api, path: str) -> Any:
    found = api.get(path)
    return found and found["data"]


def test_an_apply_is_owned_by_our_manager_and_the_second_changes_nothing(apply: Apply, namespace: str) -> None:
    first = apply(config_map(namespace, "a"))
    assert (first["apiVersion"], first["kind"]) == ("v1", "ConfigMap")
    second = apply(config_map(namespace, "a"))
    assert [(entry["manager"], entry["operation"]) for entry in first["metadata"]["managedFields"]] == [("anneal", "Apply")]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_an_apply_overrides_what_another_manager_set(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply(config_map(namespace, "a"))
    path = kind("v1", "ConfigMap").path(namespace, "a")
    api.patch(path, {"data": {"a": "by hand"}}, "application/merge-patch+json", {"fieldManager": "kubectl-edit"})
    apply(config_map(namespace, "a"))
    assert content(api, path) == {"a": "1"}


def test_an_update_against_a_stale_resource_version_has_moved(apply: Apply, namespace: str) -> None:
    old = apply(config_map(namespace, "a"))["metadata"]
    apply(config_map(namespace, "a", {"a": "2"}))
    with pytest.raises(Moved, match=f"^ConfigMap/{namespace}/a: "):
        apply(config_map(namespace, "a", {"a": "3"}), old["uid"], old["resourceVersion"])


def test_an_update_of_what_is_gone_doesnt_create_it(api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    old = apply(config_map(namespace, "a"))
    resource = kind("v1", "ConfigMap")
    assert writer.delete(resource, identity_of(old), old["metadata"]["uid"])
    with pytest.raises(Moved):
        apply(config_map(namespace, "a"), old["metadata"]["uid"], old["metadata"]["resourceVersion"])
    assert api.get(resource.path(namespace, "a")) is None


def test_an_update_of_what_was_created_anew_has_moved(apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    old = apply(config_map(namespace, "a"))
    writer.delete(kind("v1", "ConfigMap"), identity_of(old), old["metadata"]["uid"])
    new = apply(config_map(namespace, "a"))["metadata"]
    with pytest.raises(Moved):
        apply(config_map(namespace, "a", {"a": "2"}), old["metadata"]["uid"], new["resourceVersion"])


def marks(namespace: str, mark: str) -> dict[str, Any]:
    body = config_map(namespace, "a")
    return {**body, "metadata": {**body["metadata"], "labels": {"mark": mark}}, "data": {}}


def test_a_merge_changes_what_it_holds_and_nothing_else(api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    body = config_map(namespace, "a")
    live = apply({**body, "metadata": {**body["metadata"], "labels": {"mark": "theirs", "kept": "yes"}}})["metadata"]
    assert DryRunner(api).merge(resource, marks(namespace, "ours"))["metadata"]["labels"] == {"mark": "ours", "kept": "yes"}
    stored = writer.merge(resource, marks(namespace, "ours"), live["uid"], live["resourceVersion"])["metadata"]
    assert (stored["labels"], stored["uid"]) == ({"mark": "ours", "kept": "yes"}, live["uid"])
    assert content(api, resource.path(namespace, "a")) == {"a": "1"}
    owned = {entry["operation"]: entry["fieldsV1"] for entry in stored["managedFields"]}
    assert owned["Apply"]["f:data"] == {"f:a": {}}
    assert owned["Update"] == {"f:metadata": {"f:labels": {"f:mark": {}}}}


@pytest.mark.parametrize("moved", ["changed", "made anew", "gone"])
def test_a_merge_into_another_state_of_the_object_has_moved(
    moved: str, api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str
) -> None:
    resource, live = kind("v1", "ConfigMap"), apply(config_map(namespace, "a"))["metadata"]
    if moved != "changed":
        writer.delete(resource, Identity("", "ConfigMap", namespace, "a"), live["uid"])
    if moved != "gone":
        apply(config_map(namespace, "a", {"a": "2"}))
    with pytest.raises(Moved):
        writer.merge(resource, marks(namespace, "ours"), live["uid"], live["resourceVersion"])
    found = api.get(resource.path(namespace, "a"))
    assert "labels" not in (found or {"metadata": {}})["metadata"]


@pytest.mark.parametrize("wrong", ["uid", "resourceVersion"])
def test_a_delete_meets_both_preconditions(wrong: str, api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    resource = kind("v1", "ConfigMap")
    first = apply(config_map(namespace, "a"))["metadata"]
    live = apply(config_map(namespace, "a", {"a": "2"}))["metadata"]
    uid = "00000000-0000-0000-0000-000000000000" if wrong == "uid" else live["uid"]
    version = first["resourceVersion"] if wrong == "resourceVersion" else live["resourceVersion"]
    with pytest.raises(Moved):
        writer.delete(resource, Identity("", "ConfigMap", namespace, "a"), uid, version)
    assert api.get(resource.path(namespace, "a"))


def test_a_delete_of_what_is_gone_says_so(apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    resource, identity, uid = kind("v1", "ConfigMap"), identity_of(live), live["metadata"]["uid"]
    assert writer.delete(resource, identity, uid, live["metadata"]["resourceVersion"]) is True
    assert writer.delete(resource, identity, uid) is False


def test_a_dry_run_writes_nothing_and_shows_what_would_be(api: Api, kind: Kind, namespace: str) -> None:
    runner, resource = DryRunner(api), kind("v1", "ConfigMap")
    assert runner.apply(resource, config_map(namespace, "a"))["data"] == {"a": "1"}
    checked = runner.check(resource, config_map(namespace, "a"))
    assert (checked["kind"], checked["metadata"]["name"], "data" in checked) == ("ConfigMap", "a", False)
    assert api.get(resource.path(namespace, "a")) is None


def test_a_dry_runner_has_no_way_to_write(api: Api, wire: Wire, through: Callable[..., Api], kind: Kind, namespace: str) -> None:
    runner, resource, body = DryRunner(through()), kind("v1", "ConfigMap"), config_map(namespace, "a")
    live = api.post(resource.path(namespace), body)
    other = config_map(namespace, "b")
    asked = {"apply": (body,), "check": (body,), "merge": (body,), "create": (other,), "become": (live, {**live, "data": {"a": "2"}})}
    assert {name for name in vars(DryRunner) if not name.startswith("_")} == asked.keys()
    answers = {name: getattr(runner, name)(resource, *arguments) for name, arguments in asked.items()}
    assert answers["become"]["data"] == {"a": "2"}
    assert len(wire.seen) == len(asked)
    assert all("dryRun=All" in path for _, path in wire.seen)
    assert api.get(resource.path(namespace, "a")) == live
    assert api.get(resource.path(namespace, "b")) is None


def test_a_dry_run_of_a_missing_namespace_or_kind_is_a_404_that_says_which(api: Api, kind: Kind, namespace: str) -> None:
    with pytest.raises(ApiRefused, match='namespaces "no-such-namespace" not found') as caught:
        DryRunner(api).apply(kind("v1", "ConfigMap"), config_map("no-such-namespace", "a"))
    assert caught.value.status == 404
    ghost = Resource("gone.example.com", "v1", "Ghost", "ghosts", namespaced=True)
    with pytest.raises(ApiRefused, match="no such kind") as caught:
        DryRunner(api).apply(ghost, config_map(namespace, "a") | {"kind": "Ghost"})
    assert caught.value.status == 404


def test_an_unknown_field_is_refused_with_its_name(api: Api, kind: Kind, namespace: str) -> None:
    body = config_map(namespace, "a") | {"dota": {"a": "1"}}
    with pytest.raises(ApiRefused, match=r"^ConfigMap/.*dota") as caught:
        DryRunner(api).apply(kind("v1", "ConfigMap"), body)
    assert (caught.value.status, caught.value.reason) == (422, "Invalid")


def test_an_immutable_field_is_told_by_the_servers_words(apply: Apply, api: Api, kind: Kind, namespace: str) -> None:
    apply(config_map(namespace, "a") | {"immutable": True})
    with pytest.raises(ApiRefused, match="field is immutable") as caught:
        DryRunner(api).apply(kind("v1", "ConfigMap"), config_map(namespace, "a", {"a": "2"}) | {"immutable": True})
    assert caught.value.status == 422


CANARY = "canary-q7Zt-value"
CANARY_BASE64 = "Y2FuYXJ5LXE3WnQtdmFsdWU="


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"immutable": CANARY}, "expected boolean (field immutable)"),
        ({"type": CANARY}, "Invalid value: field is immutable (field type)"),
        ({"data": {"password": CANARY}}, "a value of data isn't base64; text goes into stringData"),
        ({"data": {"bad key": CANARY_BASE64}}, "Invalid value: a key may have letters, digits, '-', '_' and '.' only (field data[…])"),
        ({"passwort": CANARY}, "field not declared in schema (field …)"),
        ({"metadata": {"labels": {"a": CANARY + "!"}}}, "Invalid value (field metadata.labels)"),
    ],
)
def test_a_refused_secret_never_shows_a_value(
    change: dict[str, Any], told: str, api: Api, apply: Apply, kind: Kind, namespace: str
) -> None:
    body: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": namespace}, "type": "Opaque"}
    apply(body)
    changed = {**body, **change, "metadata": body["metadata"] | change.get("metadata", {})}
    with pytest.raises(ApiRefused) as caught:
        DryRunner(api).apply(kind("v1", "Secret"), changed)
    text = str(caught.value)
    assert text.startswith(f"Secret/{namespace}/s: ")
    assert told in text
    assert CANARY not in text + repr(caught.value)
    assert caught.value.status == 422


def test_managed_fields_are_rewritten_against_a_resource_version(apply: Apply, writer: Writer, kind: Kind, namespace: str) -> None:
    live = apply(config_map(namespace, "a"))
    resource, identity = kind("v1", "ConfigMap"), identity_of(live)
    entries = [dict(entry, manager="someone") for entry in live["metadata"]["managedFields"]]
    after = writer.replace_managed_fields(resource, identity, live["metadata"]["resourceVersion"], entries)
    assert [entry["manager"] for entry in after["metadata"]["managedFields"]] == ["someone"]
    with pytest.raises(Moved):
        writer.replace_managed_fields(resource, identity, live["metadata"]["resourceVersion"], entries)


def test_a_lost_lease_sends_nothing_more(api: Api, kind: Kind, namespace: str) -> None:
    calls = itertools.count()

    def fence() -> None:
        if next(calls) >= 3:
            raise LeaseLost.of("Lease", "taken by another")

    resource, writer = kind("v1", "ConfigMap"), Writer(api, fence)
    before = api.requests
    results = parallel([lambda i=i: writer.apply(resource, config_map(namespace, f"c{i}")) for i in range(40)], workers=4)  # type: ignore[misc] # mypy can't type a default
    assert api.requests - before == 3
    assert [type(result) for result in results].count(LeaseLost) == 37
    assert all(isinstance(result, LeaseLost) for result in results[8:])


def test_an_apply_into_a_namespace_being_deleted_isnt_the_authors_fault(
    api: Api, apply: Apply, writer: Writer, kind: Kind, namespace: str
) -> None:
    apply(config_map(namespace, "holds", finalizers=["anneal.dev/test"]))
    space = api.get(f"/api/v1/namespaces/{namespace}")
    assert space
    writer.delete(kind("v1", "Namespace"), identity_of(space), space["metadata"]["uid"])
    try:
        with pytest.raises(NotReady, match="is being deleted"):
            apply(config_map(namespace, "new"))
    finally:
        api.patch(kind("v1", "ConfigMap").path(namespace, "holds"), {"metadata": {"finalizers": None}}, "application/merge-patch+json")


def test_admission_that_says_403_is_the_authors_but_rbac_the_operators(api: Api, apply: Apply, kind: Kind, namespace: str) -> None:
    apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
        }
    )
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": namespace},
        "spec": {"hostNetwork": True, "containers": [{"name": "c", "image": "i"}]},
    }
    apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default", "namespace": namespace}})
    until(lambda: not _admitted(api, kind("v1", "Pod"), pod))  # admission hears of the label by a watch of its own
    with pytest.raises(ApiRefused, match="PodSecurity") as caught:
        DryRunner(api).apply(kind("v1", "Pod"), pod)
    assert caught.value.status == 403
    weak = Api(api.connection, impersonate=f"{namespace}/default")
    with pytest.raises(AccessDenied, match=r"resources: \[pods\], verbs: \[patch\]"):
        DryRunner(weak).apply(kind("v1", "Pod"), pod)


def _admitted(api: Api, resource: Resource, body: dict[str, Any]) -> bool:
    try:
        DryRunner(api).apply(resource, body)
    except ApiRefused:
        return False
    return True
