"""What tests ask in kubectl's stead is what kubectl asks: the same answer, the same object, the same field manager."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.kubectl import Kubectl
from tests.kubectl_requests import asked

Object = dict[str, Any]


def really(kubectl: Kubectl, *arguments: str, given: str | None = None) -> str:
    """Run kubectl itself."""
    done = kubectl.tried(*arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


def config(name: str, namespace: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace, "labels": {"a": "b"}},
        "data": {"k": "1"},
    }


def written(kubectl: Kubectl, name: str, namespace: str) -> tuple[object, ...]:
    """Return data, and by whom which fields are managed, as kubectl says it."""
    found = json.loads(really(kubectl, "get", "cm", name, "-n", namespace, "--show-managed-fields", "-o", "json"))
    managed = [(row["manager"], row["operation"], row["fieldsV1"]) for row in found["metadata"]["managedFields"]]
    return found.get("data"), found["metadata"].get("annotations"), managed


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "cm", "one"),
        ("get", "configmap/one", "--show-managed-fields"),
        ("get", "configmaps", "-l", "a=b"),
        ("get", "ConfigMap.v1.", "-l", "a=c"),
        ("get", "leases.coordination.k8s.io", "--ignore-not-found"),
        ("get", "cm", "none", "--ignore-not-found"),
        ("get", "events", "--field-selector=reason=Never"),
    ],
)
def test_a_get_says_what_kubectl_says(arguments: tuple[str, ...], kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("create", "-f", "-", given=json.dumps(config("one", namespace)))
    whole = (*arguments, "-n", namespace, "-o", "json")
    assert asked(whole)
    ours, theirs = kubectl.run(*whole), really(kubectl, *whole)
    assert _plain(ours) == _plain(theirs)


def _plain(text: str) -> Object:
    """Return an answer without what says when a list was made, and without the name of its kind: kubectl calls each `List`."""
    found: Object = json.loads(text) if text else {}
    return {"items": found["items"]} if "items" in found else found


@pytest.mark.parametrize(
    "options",
    [
        ("-p", '{"data":{"k":"2"}}'),
        ("--type=merge", "-p", '{"data":{"k":null}}'),
        ("--type=json", "-p", '[{"op":"replace","path":"/data/k","value":"3"}]'),
        ("--type=merge", "--field-manager=theirs", "-p", '{"metadata":{"annotations":{"x":"y"}}}'),
    ],
)
def test_a_creation_and_a_patch_leave_what_kubectl_leaves(options: tuple[str, ...], kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("create", "-f", "-", given=json.dumps(config("ours", namespace)))
    really(kubectl, "create", "-f", "-", given=json.dumps(config("theirs", namespace)))
    assert written(kubectl, "ours", namespace) == written(kubectl, "theirs", namespace)
    patch = ("-n", namespace, *options)
    assert asked(("patch", "cm", "ours", *patch))
    kubectl.run("patch", "cm", "ours", *patch)
    really(kubectl, "patch", "cm", "theirs", *patch)
    assert written(kubectl, "ours", namespace) == written(kubectl, "theirs", namespace)


@pytest.mark.parametrize(
    "arguments",
    [
        ("get", "cm", "-A", "-o", "json"),
        ("get", "cm,secret", "-n", "n", "-o", "json"),
        ("patch", "cm", "a", "-n", "n", "-p", "{}", "-o", "json"),
    ],
)
def test_what_is_not_one_request_is_left_to_kubectl(arguments: tuple[str, ...]) -> None:
    assert asked(arguments) is None
