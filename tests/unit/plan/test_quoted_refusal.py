"""What of a refusal those may read who may not read the cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from handler.model.errors import AccessDenied, ApiRefused, FieldCause, Problem
from handler.model.manifest import Manifest
from handler.plan.quoted_refusal import QuotedRefusal, quoted, told_refusal

CANARY = "hunter2-canary"
BODY: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop", "labels": {"app": "a b"}},
    "spec": {
        "replicas": -1,
        "password": "hunter2",
        "type": "NodePot",
        "url": "https://ada:hunter2@db",
        "ports": [{"nodePort": 31234, "name": "A"}, {"name": "A"}],
        "selector": {"matchLabels": {"app": "x"}},
        "template": {"spec": {"containers": [{"name": "web", "image": ""}]}},
    },
}
MANIFEST = Manifest.of(BODY, "web.yaml:1")
LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
NAME = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
TYPED = "failed to create typed patch object (shop/web; apps/v1, Kind=Deployment)"
DECODED = 'Deployment in version "v1" cannot be handled as a Deployment'
UNMARSHALLED = "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
UNKNOWN = 'strict decoding error: unknown field "spec.a", unknown field "spec.b"'
PODS = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.tolerations` (only additions to existing tolerations)"
)


def refused(text: str, *causes: tuple[str, str, str], status: int = 422, reason: str = "Invalid") -> QuotedRefusal:
    error = ApiRefused(Problem("Deployment/shop/web", text), status=status, reason=reason)
    error.said = text
    error.causes = tuple(FieldCause(field, f"FieldValue{kind}", message) for field, kind, message in causes)
    return quoted(error, MANIFEST)


def invalid(*causes: tuple[str, str, str]) -> QuotedRefusal:
    said = ", ".join(f"{field}: {message}" for field, _, message in causes)
    return refused(f'Deployment.apps "web" is invalid: {said}', *causes)


@pytest.mark.parametrize(
    ("field", "kind", "message", "told"),
    [
        ("spec.replicas", "Invalid", "Invalid value: -1: must be greater than or equal to 0", None),
        (
            "spec.replicas",
            "Invalid",
            "Invalid value: 5: must be greater than or equal to 0",
            "Invalid value: must be greater than or equal to 0",
        ),
        ("spec.template.spec.containers[0].image", "Required", "Required value", None),
        ("spec.template.spec.containers[0].ports", "Required", f"Required value: of {CANARY}", "Required value"),
        ("spec.type", "NotSupported", 'Unsupported value: "NodePot": supported values: "ClusterIP", "NodePort"', None),
        ("spec.ports[1].name", "Duplicate", 'Duplicate value: "A"', None),
        ("spec.ports[1].name", "Duplicate", f'Duplicate value: "{CANARY}"', "Duplicate value"),
        ("spec.ports[0].name", "Invalid", f'Invalid value: "A": {NAME}', None),
        ("metadata.labels", "Invalid", f'Invalid value: "a b": {LABEL}', f"Invalid value: {LABEL}"),
        ("metadata.labels[app]", "Invalid", f'Invalid value: "a b": {LABEL}', None),
        (
            "spec.selector",
            "Invalid",
            f'Invalid value: {{"matchLabels":{{"{CANARY}":"x"}}}}: field is immutable',
            "Invalid value: field is immutable",
        ),
        ("spec", "Forbidden", f'Forbidden: {PODS}\n@@ -1 +1 @@\n-  "{CANARY}"', f"Forbidden: {PODS}"),
        ("spec", "Forbidden", f"Forbidden: {PODS} @@ {CANARY}", f"Forbidden: {PODS}"),
        (
            "spec.type",
            "TypeInvalid",
            'Invalid value: "string": spec.type in body must be of type integer: "string"',
            'Invalid value: in body must be of type integer: "string"',
        ),
        (
            "spec.replicas",
            "Invalid",
            "Invalid value: -1: spec.replicas in body should be greater than or equal to 1",
            "Invalid value: -1: in body should be greater than or equal to 1",
        ),
        ("spec.password", "Invalid", 'Invalid value: "hunter2": must be unique', "Invalid value: must be unique"),
        ("spec.url", "Invalid", 'Invalid value: "https://ada:hunter2@db": must be unique', "Invalid value: must be unique"),
        ("spec.type", "TooLong", "Too long: may not be more than 63 bytes", None),
    ],
)
def test_a_field_error_of_what_git_declares_is_quoted(field: str, kind: str, message: str, told: str | None) -> None:
    assert invalid((field, kind, message)) == QuotedRefusal((f"{field}: {told or message}",), is_whole=True)


@pytest.mark.parametrize(
    ("field", "kind", "message"),
    [
        ("spec.ports[0].nodePort", "Invalid", "Invalid value: 31234: provided port is already allocated"),
        ("spec.clusterIPs", "Invalid", 'Invalid value: ["10.0.0.1"]: failed to allocate IP 10.0.0.1: provided IP is already allocated'),
        ("spec.ports[0].nodePort", "Invalid", "Invalid value: 31234: provided port is not in the valid range. The range is 30000-32767"),
        ("spec.template", "Invalid", f"Invalid value: must be less than or equal to cpu limit of {CANARY}"),
        ("spec.replicas", "Invalid", "Invalid value: -1: must be less than or equal to cpu limit of 500m"),
        ("spec.type", "Invalid", f"Invalid value: can't change from {CANARY}"),
        ("spec.type", "Forbidden", "Forbidden"),
        ("spec.type", "Invalid", f'Invalid value: "{CANARY}"'),
        ("", "Invalid", "Invalid value: field is immutable"),
        ("spec", "Internal", "Internal error: field is immutable"),
        ("spec", "Invalid", f"{CANARY}: field is immutable"),
    ],
)
def test_what_another_object_or_the_cluster_decides_is_not(field: str, kind: str, message: str) -> None:
    assert invalid((field, kind, message)) == QuotedRefusal()
    both = invalid((field, kind, message), ("spec.replicas", "Invalid", "Invalid value: -1: must be greater than or equal to 0"))
    assert both == QuotedRefusal(("spec.replicas: Invalid value: -1: must be greater than or equal to 0",))


@pytest.mark.parametrize(
    ("field", "known"),
    [
        (f"spec.template.spec.containers[1].env[{CANARY}]", "spec.template.spec.containers"),
        (f"metadata.labels[{CANARY}]", "metadata.labels"),
        (f"spec.{CANARY}.x", "spec"),
    ],
)
@pytest.mark.parametrize(("kind", "word"), [("Duplicate", "Duplicate value"), ("Required", "Required value")])
def test_a_path_is_told_as_far_as_git_declares_it(field: str, known: str, kind: str, word: str) -> None:
    assert invalid((field, kind, word)) == QuotedRefusal((f"{known}: {word}",), is_whole=True)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ('pods "a" is forbidden: maximum cpu usage per Container is 1234m, but limit is 2', 403),
        ('pods "a" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=2, limited: pods=2', 403),
        ('pods "a" is forbidden: error looking up service account shop/web: serviceaccount "web" not found', 403),
        ('namespaces "theirs" not found', 404),
        (f'admission webhook "a.example.com" denied the request: {CANARY}', 422),
        (f'admission webhook "a.example.com" denied the request: Deployment.apps "web" is invalid: {CANARY}', 422),
        (f"deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: {CANARY}", 422),
        (f"failed to convert new object (shop/web; v1, Kind=Pod) to smd typed: .spec: duplicate entries for key [name={CANARY}]", 422),
        (f"something else: {CANARY}", 400),
        (f'Deployment in version "v1" cannot be handled as a Deployment: parsing time "{CANARY}"', 400),
        (f'admission webhook "a" denied the request: Deployment in version "v1" cannot be handled as a D: {CANARY}', 400),
    ],
)
def test_admission_and_what_is_missing_is_not_quoted_whatever_causes_it_gives(text: str, status: int) -> None:
    cause = ("spec.replicas", "Invalid", "Invalid value: -1: must be greater than or equal to 0")
    assert refused(text, cause, status=status) == refused(text, status=status) == QuotedRefusal()
    assert quoted(AccessDenied(Problem("x", text)), MANIFEST) == QuotedRefusal()


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        (f"{TYPED}: .spec.replica: field not declared in schema", 422, ".spec.replica: field not declared in schema"),
        (
            f"{TYPED}: errors:\n  .spec.a: field not declared in schema\n  .spec.b: field not declared in schema",
            422,
            ".spec.a: field not declared in schema",
        ),
        (f"{DECODED}: {UNKNOWN}", 400, UNKNOWN),
        (f"{DECODED}: {UNMARSHALLED}", 400, UNMARSHALLED),
    ],
)
def test_what_does_not_fit_its_schema_is_quoted(text: str, status: int, said: str) -> None:
    assert refused(text, status=status) == QuotedRefusal((said,), is_whole=True)


def test_without_causes_nothing_is_quoted() -> None:
    assert refused(f'Deployment.apps "web" is invalid: spec.replicas: Invalid value: {CANARY}') == QuotedRefusal()


def test_a_refusal_of_an_object_that_holds_what_isnt_in_git_tells_of_its_other_fields_alone() -> None:
    hidden = replace(MANIFEST, hidden=("/spec/type", "/spec/selector/matchLabels"))
    said = 'Deployment.apps "web" is invalid: [spec.replicas: Invalid value: -1: must be greater than or equal to 0, spec.type: …]'
    error = ApiRefused(Problem("Deployment/shop/web", said), status=422, reason="Invalid")
    error.causes = (
        FieldCause("spec.replicas", "FieldValueInvalid", "Invalid value: -1: must be greater than or equal to 0"),
        FieldCause("spec.type", "FieldValueNotSupported", 'Unsupported value: "NodePot": supported values: "A", "B"'),
    )
    assert told_refusal(error, MANIFEST) is error
    found = told_refusal(error, hidden)
    assert isinstance(found, ApiRefused)
    assert (found.status, found.reason) == (422, "Invalid")
    words = found.problems[0].message
    assert words == (
        '“spec.replicas: Invalid value: -1: must be greater than or equal to 0”; “spec.type: Unsupported value: supported values: "A", "B"”'
    )
    denied = ApiRefused(
        Problem("Deployment/shop/web", "admission webhook denied the request: NodePot is weak"), status=403, reason="Forbidden"
    )
    assert "NodePot" not in str(told_refusal(denied, hidden))
    assert str(told_refusal(denied, hidden)).startswith("Deployment/shop/web: Forbidden: the server's words aren't shown")
    odd = ApiRefused(Problem("Deployment/shop/web", "x"), status=422, reason="NodePot is a value")
    assert str(told_refusal(odd, hidden)).startswith("Deployment/shop/web: 422: ")
