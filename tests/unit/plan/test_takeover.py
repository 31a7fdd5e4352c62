"""What others wrote: which entries become ours, what goes with them, what stays and with whom."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handler.model.names import FIELD_MANAGER
from handler.plan.managed_fields import keyed
from handler.plan.prune import PROTECTIONS
from handler.plan.takeover import Takeover, foreseen, takeover, undeclared
from tests.unit.plan.samples import document, entry

DATA: dict[str, Any] = {"f:data": {"f:a": {}}}
RESTART: dict[str, Any] = {
    "f:spec": {"f:template": {"f:metadata": {"f:annotations": {".": {}, "f:kubectl.kubernetes.io/restartedAt": {}}}}}
}


def body(*entries: dict[str, Any], **parts: Any) -> dict[str, Any]:
    return document(metadata={"managedFields": list(entries)}, **parts)


def taken(live: dict[str, Any], adopted: bool = True, tools: tuple[str, ...] = (), **parts: Any) -> Takeover | None:
    return takeover(live, document(**parts), adopted=adopted, tools=tools)


def told(found: Takeover | None) -> list[tuple[str, str, Any]]:
    return [(each["manager"], each["operation"], each["fieldsV1"]) for each in found.entries] if found else []


@pytest.mark.parametrize(
    ("manager", "operation", "more", "becomes_ours"),
    [
        ("kubectl-client-side-apply", "Update", {}, True),
        ("kubectl-last-applied", "Apply", {}, True),
        ("kubectl", "Apply", {}, True),
        ("kubectl-edit", "Update", {}, True),
        ("kubectl.exe", "Update", {}, True),
        ("kubectl", "Update", {"subresource": "scale"}, True),
        ("kubectl-patch", "Update", {"subresource": "scale"}, True),
        ("before-first-apply", "Update", {}, False),
        (FIELD_MANAGER, "Update", {}, True),
        (FIELD_MANAGER, "Apply", {}, False),
        (f"{FIELD_MANAGER}ing-oven", "Update", {}, False),
        ("kubectl", "Update", {"subresource": "ephemeralcontainers"}, False),
        ("kubectl-edit", "Update", {"subresource": "status"}, False),
        ("kustomize-controller", "Apply", {}, False),
        ("argocd-controller", "Apply", {}, False),
        ("helm", "Update", {}, False),
        ("Terraform", "Apply", {}, False),
        ("kube-controller-manager", "Update", {}, False),
        ("kube-controller-manager", "Update", {"subresource": "scale"}, False),
    ],
)
def test_managed_fields_entries_of_kubectl_become_ours_and_others_stay(
    manager: str, operation: str, more: dict[str, str], becomes_ours: bool
) -> None:
    found = taken(body(entry(DATA, manager, operation, **more), data={"a": "1"}))
    assert told(found) == ([(FIELD_MANAGER, "Apply", DATA)] if becomes_ours else [])
    if found:
        assert found.goes == {"f:data": {}}
        assert "subresource" not in found.entries[0]


def test_of_what_lived_before_the_first_apply_ours_is_what_git_declares_or_declared() -> None:
    """Emptied managedFields say nothing of who wrote the rest."""
    lived = entry({"f:data": {key: {} for key in ("f:a", "f:b", "f:c")}, "f:spec": {"f:d": {}}}, "before-first-apply", "Update")
    parts = {"data": {"a": "1", "b": "1", "c": "1"}, "spec": {"d": "1"}}
    found = taken(body(lived, entry({"f:data": {"f:a": {}, "f:b": {}}, "f:spec": {}}), **parts), adopted=False, data={"a": "1"}, spec={})
    assert found
    assert found.goes == {"f:data": {"f:b": {}}}
    assert told(found)[1:] == [("before-first-apply", "Update", {"f:data": {"f:c": {}}, "f:spec": {"f:d": {}}})]
    assert taken(body(lived, entry({"f:data": {"f:a": {}}}), **parts), adopted=False, data={"a": "1"}) is None


def test_a_tools_entries_become_ours_once_it_is_named() -> None:
    flux = body(entry(DATA, "kustomize-controller"), entry(DATA, "kustomize-controller", "Update", subresource="status"), data={"a": "1"})
    found = taken(flux, tools=("flux",))
    assert told(found) == [(FIELD_MANAGER, "Apply", DATA), ("kustomize-controller", "Update", DATA)]
    assert taken(flux, tools=("helm",)) is None


TRACKED = "argocd.argoproj.io/tracking-id"
DEPLOYED: list[tuple[str, str, dict[str, Any], dict[str, str], dict[str, Any] | None]] = [
    ("kustomize-controller", "Apply", DATA, {}, DATA),
    ("kustomize-controller", "Update", {"f:metadata": {"f:finalizers": {}}}, {}, None),
    ("kustomize-controller", "Apply", DATA, {"subresource": "status"}, None),
    ("helm-controller", "Update", {"f:metadata": {"f:finalizers": {".": {}, 'v:"f"': {}}}}, {}, None),
    ("helm-controller", "Update", DATA | {"f:metadata": {"f:finalizers": {".": {}}}, "f:status": {"f:x": {}}}, {}, DATA),
    ("argocd-application-controller", "Update", {"f:operation": {"f:sync": {}}, "f:status": {}}, {}, None),
    ("gotk-kustomize-controller", "Update", DATA, {}, None),
    ("helm", "Update", DATA, {}, None),
]


@pytest.mark.parametrize(("manager", "operation", "fields", "more", "ours"), DEPLOYED)
def test_fields_of_the_named_tools_become_ours_but_never_finalizers_or_status(
    manager: str, operation: str, fields: dict[str, Any], more: dict[str, str], ours: dict[str, Any] | None
) -> None:
    found = told(taken(body(entry(fields, manager, operation, **more), data={"a": "1"}), tools=("flux", "argocd")))
    rest = {key: fields[key] for key in fields if key != "f:data"}
    assert found == ([(FIELD_MANAGER, "Apply", ours), *([(manager, operation, rest)] if rest else [])] if ours else [])


def test_labels_and_annotations_of_the_named_tools_go_whoever_wrote_them() -> None:
    written: dict[str, Any] = {
        "f:metadata": {"f:labels": {".": {}, "f:kapp.k14s.io/app": {}, "f:app": {}}, "f:annotations": {f"f:{TRACKED}": {}}}
    }
    live = body(entry(written, "operator", "Update"))
    live["metadata"] |= {"labels": {"kapp.k14s.io/app": "1", "app": "web"}, "annotations": {TRACKED: "web:/ConfigMap:shop/web"}}
    found = taken(live, tools=("kapp",))
    assert found
    mine: dict[str, Any] = {"f:metadata": {"f:labels": {"f:kapp.k14s.io/app": {}}}}
    theirs: dict[str, Any] = {"f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:annotations": {f"f:{TRACKED}": {}}}}
    assert told(found) == [(FIELD_MANAGER, "Apply", mine), ("operator", "Update", theirs)]
    assert found.after(live)["metadata"]["labels"] == {"app": "web"}
    assert taken(live, tools=("helm",)) is None


def test_fields_of_several_join_ours_and_what_another_keeps_stays() -> None:
    ours, theirs = entry({"f:data": {"f:a": {}}}), entry({"f:data": {"f:b": {}, "f:d": {}}}, "kubectl-client-side-apply", "Update")
    other, edit = entry({"f:data": {"f:d": {}}}, "Terraform", "Update"), entry({"f:data": {"f:c": {}}}, "kubectl-edit", "Update")
    found = taken(body(other, theirs, ours, edit, data=dict.fromkeys("abcd", "1")), data={"a": "1"})
    assert found
    assert list(found.entries) == [ours | {"fieldsV1": {"f:data": {key: {} for key in ("f:a", "f:b", "f:d", "f:c")}}}, other]
    assert found.goes == {"f:data": {"f:b": {}, "f:c": {}}}


def test_no_takeover_while_kubectl_wrote_only_what_git_declares() -> None:
    live = body(entry(DATA), entry(DATA, "kubectl-edit", "Update"), data={"a": "1"})
    assert taken(live, adopted=False, data={"a": "1"}) is None
    assert taken(live, adopted=True, data={"a": "1"})
    assert taken(live, adopted=False, data={"b": "1"})


def test_an_entry_without_fields_adds_none() -> None:
    bare = entry({}, "kubectl", "Update")
    del bare["fieldsV1"]
    assert told(taken(body(bare))) == [(FIELD_MANAGER, "Apply", {})]
    assert taken(document()) is None


def test_the_rollout_restart_annotation_stays_with_its_manager() -> None:
    template = {"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "now"}}}
    live = body(entry(RESTART, "kubectl-rollout", "Update"), spec={"template": template})
    assert taken(live, adopted=False, spec={"template": {}}) is None
    found = taken(live, spec={"template": {}})
    assert found
    assert found.goes == {}
    mark: dict[str, Any] = {"f:spec": {"f:template": {"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/restartedAt": {}}}}}}
    assert told(found)[1] == ("kubectl-rollout", "Update", mark)


def test_status_is_never_taken_over() -> None:
    live = body(entry({"f:status": {"f:ready": {}}, **DATA}, "kubectl", "Update"), data={"a": "1"}, status={"ready": True})
    found = taken(live)
    assert found
    assert told(found) == [(FIELD_MANAGER, "Apply", DATA), ("kubectl", "Update", {"f:status": {"f:ready": {}}})]
    assert found.after(live)["status"] == {"ready": True}


def test_ignored_fields_stay_with_their_manager_at_takeover() -> None:
    containers = [{"name": "a", "image": "x"}, {"name": "web", "image": "y", "tty": True}]
    written: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:image": {}, "f:tty": {}}}}}
    live = body(entry(written, "kubectl-edit", "Update"), spec={"containers": containers})
    found = takeover(live, document(spec={}), adopted=True, spared=lambda: [("spec", "containers", 1, "image")])
    assert found
    kept: dict[str, Any] = {"f:spec": {"f:containers": {'k:{"name":"web"}': {"f:image": {}}}}}
    assert told(found)[1] == ("kubectl-edit", "Update", kept)
    assert found.after(live)["spec"]["containers"] == [containers[0], {"image": "y"}]


def test_a_managed_fields_entry_of_another_api_version_counts_for_fields_that_exist() -> None:
    old = entry({"f:data": {"f:a": {}, "f:old": {}}}, "kubectl", "Update", api="v1beta1")
    found = taken(body(old, data={"a": "1"}))
    assert told(found) == [(FIELD_MANAGER, "Apply", DATA), ("kubectl", "Update", {"f:data": {"f:old": {}}})]
    assert found
    assert [each["apiVersion"] for each in found.entries] == ["v1", "v1beta1"]


V1, V2 = {"api": "example.com/v1"}, {"api": "example.com/v2"}


def spec(*names: str) -> dict[str, Any]:
    return {"f:spec": {f"f:{name}": {} for name in names}}


def offer(*entries: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """An object that live has in v2, where v1's `price` is called `cost`."""
    return document("Offer", api="example.com/v2", metadata={"managedFields": list(entries)}, spec=fields)


def test_a_field_that_another_api_version_spells_otherwise_stays_and_is_named() -> None:
    old, new = entry(spec("price", "note"), "kubectl", "Update", **V1), entry(spec("size"), "kubectl-edit", "Update", **V2)
    live = offer(old, new, cost=1, note="x", size=2)
    found = takeover(live, offer(cost=1), adopted=True)
    assert found
    assert [(each["manager"], each["apiVersion"], each["fieldsV1"]) for each in found.entries] == [
        (FIELD_MANAGER, "example.com/v2", spec("note", "size")),
        ("kubectl", "example.com/v1", spec("price")),
    ]
    assert found.goes == {"f:spec": {"f:note": {}, "f:size": {}}}
    assert list(undeclared(live, offer(cost=1), found)) == [(("spec", "price"), "kubectl", "example.com/v1")]


def test_our_entry_moves_to_gits_api_version_before_a_takeover() -> None:
    """The apply moves it, for the server knows that our `price` is the `cost` that git drops."""
    edit = entry(spec("size"), "kubectl-edit", "Update", **V2)
    assert takeover(offer(entry(spec("price"), **V1), edit, cost=1, size=2), offer(), adopted=False) is None
    told_apart = takeover(offer(entry(spec("note"), **V1), edit, note="x", size=2), offer(note="x"), adopted=False)
    assert told_apart
    assert [(each["apiVersion"], each["fieldsV1"]) for each in told_apart.entries] == [("example.com/v2", spec("note", "size"))]
    assert told_apart.goes == {"f:spec": {"f:size": {}}}


def test_what_others_keep_in_another_version_keeps_only_what_that_version_spells_alike() -> None:
    live = offer(entry(spec("cost", "note"), **V2), entry(spec("cost", "note"), "vendor", **V1), note="x")
    assert foreseen(live, offer(), None)["spec"] == {"note": "x"}


def test_a_list_merged_by_key_loses_only_elements_that_were_owned_themselves() -> None:
    numbers: tuple[dict[str, Any], ...] = ({"port": 80, "nodePort": 30000}, {"port": 81}, {"port": 82, "name": "x"})
    ports = [{**each, "protocol": "TCP"} for each in numbers]
    owned: dict[str, Any] = {
        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:port": {}},
        'k:{"port":81,"protocol":"TCP"}': {".": {}, "f:port": {}},
        'k:{"port":82,"protocol":"TCP"}': {"f:name": {}},
    }
    live = body(entry({"f:spec": {"f:ports": owned}}, "kubectl", "Update"), spec={"ports": ports})
    found = taken(live, spec={"ports": [{"port": 80}]})
    assert found
    assert found.after(live)["spec"]["ports"] == [ports[0], {"port": 82, "protocol": "TCP"}]


@pytest.mark.parametrize(("key", "values"), PROTECTIONS)
@pytest.mark.parametrize("part", ["annotations", "labels"])
def test_a_prune_protection_set_live_stays_at_takeover(key: str, values: frozenset[str], part: str) -> None:
    live = body(entry({"f:metadata": {f"f:{part}": {".": {}, f"f:{key}": {}}}}, "kubectl-annotate", "Update"))
    live["metadata"][part] = {key: min(values)}
    assert taken(live, adopted=False) is None
    found = taken(live)
    assert found
    assert (found.goes, told(found)[1][0]) == ({}, "kubectl-annotate")


@pytest.mark.parametrize("name", ["finalizers", "ownerReferences"])
def test_finalizers_and_owner_references_arent_taken_over(name: str) -> None:
    live = body(entry({"f:metadata": {f"f:{name}": {".": {}, 'v:"a"': {}}}}, "kubectl-patch", "Update"))
    live["metadata"][name] = ["a"]
    assert taken(live, adopted=False) is None


def test_a_takeover_is_predicted_without_a_server() -> None:
    owned: dict[str, Any] = {
        "f:data": {"f:a": {}, "f:b": {}},
        "f:spec": {
            "f:selector": {},
            "f:list": {'k:{"name":"x"}': {".": {}, "f:name": {}, "f:n": {}}, 'k:{"name":"y"}': {".": {}, "f:name": {}}},
            "f:set": {'v:"1"': {}},
        },
    }
    spec = {"selector": {"app": "old"}, "list": [{"name": "x", "n": 1, "default": True}, {"name": "y"}], "set": ["1"], "atomic": [1]}
    live = body(entry(owned, "kubectl", "Apply"), data={"a": "1", "b": "1"}, spec=spec)
    wanted = {"selector": {"tier": "x"}, "list": [{"name": "x", "n": 2}, {"name": "z"}], "set": ["2"], "atomic": [2]}
    desired = document(data={"a": "2"}, spec=wanted)
    becomes = foreseen(live, desired, takeover(live, desired, adopted=True))
    assert becomes["data"] == {"a": "2"}
    assert becomes["spec"] == {
        "selector": {"tier": "x"},
        "list": [{"name": "x", "n": 2, "default": True}, {"name": "z"}],
        "set": ["2"],
        "atomic": [2],
    }
    assert foreseen(document(data={"a": "1"}), document(data={"b": "1"}), None)["data"] == {"a": "1", "b": "1"}


def test_what_stays_undeclared_is_named_with_its_manager() -> None:
    scale = entry({"f:spec": {"f:replicas": {}}}, "keda", "Update", subresource="scale")
    theirs = entry({"f:data": {"f:a": {}, "f:b": {}}, "f:status": {"f:x": {}}}, "Terraform")
    status = entry({"f:metadata": {"f:annotations": {"f:revision": {}}}}, "kube-controller-manager", "Update", subresource="status")
    people = entry({"f:data": {"f:c": {}}}, "kubectl-edit", "Update")
    live = body(scale, theirs, status, people, data=dict.fromkeys("abc", "1"), spec={"replicas": 3})
    desired = document(data={"a": "1"})
    found = list(undeclared(live, desired, takeover(live, desired, adopted=False)))
    assert found == [(("spec",), "keda", ""), (("data", "b"), "Terraform", "")]
    assert next(iter(undeclared(live, document(data={"a": "1"}, spec={"x": 1}), None))) == (("spec", "replicas"), "keda", "")


TCP, UDP = 'k:{"port":80,"protocol":"TCP"}', 'k:{"port":80,"protocol":"UDP"}'
IMPLICIT: dict[str, Any] = {".": {}, "f:port": {}}
EXPLICIT: dict[str, Any] = IMPLICIT | {"f:protocol": {}}


@pytest.mark.parametrize(
    ("declared", "owned", "filled"),
    [
        ([{"port": 80}], {TCP: IMPLICIT}, [{"port": 80, "protocol": "TCP"}]),
        ([{"port": 80}], {UDP: IMPLICIT}, [{"port": 80, "protocol": "UDP"}]),
        ([{"port": 80}], {UDP: EXPLICIT}, [{"port": 80}]),
        ([{"port": 80}, {"port": 80, "protocol": "UDP"}], {UDP: EXPLICIT, TCP: IMPLICIT}, [TCP, UDP]),
        ([{"port": 81}, {"port": 80, "protocol": "SCTP"}, "x"], {TCP: IMPLICIT}, [{"port": 81}, {"port": 80, "protocol": "SCTP"}, "x"]),
        (["a", {"port": 80}], {}, ["a", {"port": 80}]),
        ({"a": 1}, {TCP: IMPLICIT}, {"a": 1}),
    ],
)
def test_keys_that_git_leaves_to_their_default_are_those_that_the_server_names(declared: Any, owned: dict[str, Any], filled: Any) -> None:
    wanted = [json.loads(each[2:]) if isinstance(each, str) and each.startswith("k:") else each for each in filled]
    assert keyed({"ports": declared}, {"f:ports": owned}) == {"ports": wanted if isinstance(filled, list) else filled}
