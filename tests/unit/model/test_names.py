"""How objects, sets of them and plans are named and spelled."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.model.manifest import at, canonical, digest_of, items_at
from handler.model.names import GroupKind, Identity, Resource, applyset_id, identity_of, kubectl
from handler.model.plan import Action, Change, FieldChange, Plan
from tests.unit.plan.samples import document, manifest

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("parent", "applyset"),
    [
        (("my-set", "test", "Secret", ""), "applyset-0eFHV8ySqp7XoShsGvyWFQD3s96yqwHmzc4e0HR1dsY-v1"),
        (("my-set", "", "ApplySet", "company.com"), "applyset-rhp1a-HVAVT_dFgyEygyA1BEB82HPp2o10UiFTpqtAs-v1"),
    ],
)
def test_an_applyset_id_is_kubectls(parent: tuple[str, str, str, str], applyset: str) -> None:
    assert applyset_id(*parent) == applyset
    assert applyset_id(*parent[:2]) == applyset_id(*parent[:2], "ConfigMap", ""), "ours"


@pytest.mark.parametrize(("text", "kind"), [("Deployment.apps", ("apps", "Deployment")), ("ConfigMap", ("", "ConfigMap"))])
def test_a_kind_reads_as_it_is_written(text: str, kind: tuple[str, str]) -> None:
    assert GroupKind.parse(text) == GroupKind(*kind)
    assert str(GroupKind(*kind)) == text


@pytest.mark.parametrize(
    ("body", "identity", "text", "mark"),
    [
        (
            document("Deployment", api="apps/v1", metadata={"namespace": "shop"}),
            Identity("apps", "Deployment", "shop", "web"),
            "Deployment/shop/web",
            "t:apps/Deployment:shop/web",
        ),
        (document("Namespace", "shop"), Identity("", "Namespace", "", "shop"), "Namespace/shop", "t:/Namespace:/shop"),
        ({}, Identity("", "", "", ""), "", "t:/:/"),
    ],
)
def test_an_object_is_named_by_what_it_is(body: dict[str, Any], identity: Identity, text: str, mark: str) -> None:
    assert (identity_of(body), str(identity), identity.mark("t")) == (identity, text, mark)


ROLES = "rbac.authorization.k8s.io"


@pytest.mark.parametrize(
    ("identity", "command"),
    [
        (Identity("apps", "Deployment", "shop", "web"), "kubectl label Deployment.apps/web -n shop tier-"),
        (Identity("", "Namespace", "", "shop"), "kubectl label Namespace/shop tier-"),
        (Identity(ROLES, "ClusterRole", "", "system:x"), f"kubectl label ClusterRole.{ROLES}/system:x tier-"),
        (Identity(ROLES, "ClusterRole", "", "*"), f"kubectl label 'ClusterRole.{ROLES}/*' tier-"),
        (Identity(ROLES, "Role", "shop", "a b"), f"kubectl label 'Role.{ROLES}/a b' -n shop tier-"),
        (Identity(ROLES, "ClusterRole", "", "-A"), f"kubectl label ClusterRole.{ROLES}/-A tier-"),
    ],
)
def test_a_command_names_exactly_one_object(identity: Identity, command: str) -> None:
    assert kubectl("label", identity, "tier-") == command


@pytest.mark.parametrize(
    ("resource", "where", "path"),
    [
        (Resource("apps", "v1", "Deployment", "deployments", True), ("shop", "web"), "/apis/apps/v1/namespaces/shop/deployments/web"),
        (Resource("apps", "v1", "Deployment", "deployments", True), (), "/apis/apps/v1/deployments"),
        (Resource("", "v1", "Namespace", "namespaces", False), ("ignored", "shop"), "/api/v1/namespaces/shop"),
    ],
)
def test_a_kind_knows_its_paths(resource: Resource, where: tuple[str, ...], path: str) -> None:
    assert resource.path(*where) == path
    assert resource.api_version == ("apps/v1" if resource.group else "v1")
    assert resource.group_kind == GroupKind(resource.group, resource.kind)


def test_a_manifest_hands_out_copies() -> None:
    found = manifest(data={"b": "1", "a": "ü"})
    found.body()["data"]["a"] = "changed"
    assert found.body()["data"] == {"a": "ü", "b": "1"}
    assert found.raw == '{"apiVersion":"v1","data":{"a":"ü","b":"1"},"kind":"ConfigMap","metadata":{"name":"web"}}'.encode()
    with pytest.raises(ValueError, match="JSON"):
        canonical(float("nan"))


def test_the_checksum_of_a_set_is_kubernixos_whatever_the_order_of_its_files() -> None:
    one, two = manifest(name="a", place="x:1"), manifest(name="b", place="y:1")
    assert digest_of([one, two]) == digest_of([two, one]) == hashlib.sha256(b"[" + one.raw + b"," + two.raw + b"]").hexdigest()
    assert digest_of([one]) != digest_of([one, one]) != digest_of([])


@pytest.mark.parametrize(("steps", "found"), [((), {"a": {"b": [1]}}), (("a", "b"), [1]), (("a", "b", "c"), None), (("x",), None)])
def test_a_body_of_any_shape_can_be_asked(steps: tuple[str, ...], found: Any) -> None:
    body = {"a": {"b": [1]}}
    assert at(body, *steps) == found
    assert items_at(body, *steps) == (found if isinstance(found, list) else [])


def change(action: Action, name: str = "web", group: str = "") -> Change:
    return Change(action, Identity(group, "Thing", "shop", name), f"uid-{name}", "7", manifest=manifest(name=name))


def test_a_change_is_approved_by_action_group_object_and_uid() -> None:
    assert change(Action.PRUNE).key() == ("prune", "Thing/shop/web", "uid-web")
    assert change(Action.PRUNE, group="acme.io").key() == ("prune", "acme.io/Thing/shop/web", "uid-web")


def test_an_approval_and_a_digest_know_which_fields_go() -> None:
    gone, other = FieldChange("data.a", "", "1"), FieldChange("data.a", "", "2")
    kept = replace(change(Action.UPDATE), fields=(FieldChange("data.b", "2", "1"),))
    plans = [replace(kept, fields=(*kept.fields, *fields)) for fields in ((), (gone,), (other,), (gone, FieldChange("data.c", "", "1")))]
    assert len({each.key() for each in plans}) == len({Plan("shop", "c", ((each,),)).digest() for each in plans}) == 4
    assert kept.key() == ("update", "Thing/shop/web", "uid-web")
    assert plans[1].key()[1].startswith("Thing/shop/web without 1 field (")
    assert replace(plans[1], action=Action.RECREATE).key()[1] == "Thing/shop/web"


some = st.lists(st.builds(change, st.sampled_from(list(Action)), st.sampled_from("abc")), max_size=5)


@settings(max_examples=30, deadline=None)
@given(some.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))))
def test_a_plans_digest_is_what_it_writes_whatever_the_order(found: tuple[list[Change], list[Change]]) -> None:
    one, again = (Plan("shop", "c", (tuple(changes),)) for changes in found)
    assert one.digest() == again.digest()
    assert Plan("shop", "c", (one.changes, (change(Action.CREATE, "new"),))).digest() != one.digest()
    assert Plan("shop", "c", (one.changes, (change(Action.UNCHANGED, "new"),))).digest() == one.digest()


def test_a_plans_digest_knows_the_uid_and_the_body() -> None:
    plans = [
        Plan("shop", "c", ((Change(Action.UPDATE, Identity("", "X", "", "x"), uid, manifest=body),),))
        for uid in "ab"
        for body in (None, manifest())
    ]
    assert len({plan.digest() for plan in plans}) == 4
