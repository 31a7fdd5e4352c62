"""Of which objects no word of a cluster is repeated: by what stands in them where, never by a value."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest
from handler.model.render import UnstableFields
from handler.plan.closed import closed


def manifest(kind: str = "Deployment", *hidden: str, **parts: Any) -> Manifest:
    versions = {"Deployment": "apps/v1", "CustomResourceDefinition": "apiextensions.k8s.io/v1", "Release": "helm.example.com/v1"}
    version = versions.get(kind, "v1")
    return replace(Manifest.of({"apiVersion": version, "kind": kind, "metadata": {"name": "a"}, **parts}), hidden=hidden)


def given(command: str) -> dict[str, Any]:
    """What runs a command beside a variable from a Secret."""
    variable = {"name": "PW", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}
    return {"spec": {"template": {"spec": {"containers": [{"command": ["sh", command], "env": [variable]}]}}}}


ENV = {"spec": {"template": {"spec": {"containers": [{"env": [{"name": "DB_PASSWORD", "value": "x"}]}]}}}}


@pytest.mark.parametrize(
    ("declared", "is_closed"),
    [
        (manifest(), False),
        (manifest("Secret"), True),
        (manifest("Deployment", "/spec/replicas"), True),
        (manifest("Deployment", "/metadata/annotations/a"), True),
        (manifest("Deployment", "/spec/template/metadata/annotations/checksum~1config"), False),
        (manifest("Deployment", "/spec/template/metadata/annotations"), False),
        (manifest("Deployment", "/spec/template/metadata/annotations/a", "/spec/replicas"), True),
        (manifest("Login", spec={"token": 7}), True),
        (manifest("Login", spec={"passwd": "x"}), True),
        (manifest("Login", spec={"dbPasswords": ["x"]}), True),
        (manifest("Login", spec={"private-key": "x"}), True),
        (manifest("Login", spec={"CREDENTIALS": "x"}), True),
        (manifest("Login", metadata={"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}}), True),
        (manifest("Login", spec={"key": "x", "keys": ["x"]}), False),
        (manifest("Login", spec={"apiKeys": ["x"]}), True),
        (manifest("Deployment", **ENV), True),
        (manifest("Deployment", spec={"automountServiceAccountToken": True, "tokenName": "x", "secretRef": {"name": "y"}}), False),
        (manifest("CustomResourceDefinition", spec={"schema": {"password": "text"}}), False),
        (manifest("Deployment", **given("psql --password=$(PW)")), True),
        (manifest("Deployment", **given("psql")), False),
        (manifest("Deployment", spec={"template": {"spec": {"containers": [{"command": ["$(HOST)"]}]}}}), False),
        (manifest("Release", spec={"valuesFrom": [{"kind": "Secret", "name": "db"}]}), True),
        (manifest("Release", spec={"valuesFrom": [{"kind": "ConfigMap", "name": "db"}]}), False),
        (manifest("Release", spec={"store": {"secretRef": {"name": "db"}}}), True),
    ],
)
def test_an_object_that_holds_what_isnt_shown_is_closed(declared: Manifest, is_closed: bool) -> None:
    assert closed([declared], {}) == ({declared.identity} if is_closed else set())


def test_so_is_one_of_which_each_render_makes_something_anew() -> None:
    declared = manifest()
    anew = {declared.identity: UnstableFields(("/spec/seed",), "randAlpha")}
    assert closed([declared], anew) == {declared.identity}
