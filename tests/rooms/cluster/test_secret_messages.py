"""What a real API server refuses of a Secret: its author learns the mistake and the field; no value, key or policy's words are repeated."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.write import DryRunner
from handler.model.errors import AnnealError, ApiRefused
from tests.rooms.cluster.both_api_servers import MERGE
from tests.rooms.cluster.conftest import Apply, Kind

CANARY = "CANARY-db"
POLICIES = "/apis/admissionregistration.k8s.io/v1"


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


VALUE = encoded(CANARY)
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a key that isn't allowed": (
        {"data": {f"{CANARY} a/b": VALUE}},
        "Invalid, Invalid value: a key may have letters, digits, '-', '_' and '.' only (field data[…]) ",
    ),
    "no base64": ({"data": {CANARY: "%%%"}}, "500, a value of data isn't base64; text goes into stringData "),
    "a map as a value": ({"data": {CANARY: {CANARY: CANARY}}}, "500, expected string (field data.…) "),
    "a list as a value": ({"stringData": {CANARY: [CANARY]}}, "500, expected string (field stringData.…) "),
    "two mistakes": (
        {"data": {CANARY: [CANARY]}, "stringData": {CANARY: {}}},
        "expected string (field data.…), expected string (field stringData.…)",
    ),
    "a text as data": ({"data": CANARY}, "500, expected map (field data) "),
    "an unknown field": (
        {CANARY: {"a": "b"}},
        "500, field not declared in schema (field …): a Secret has data, stringData, type, immutable ",
    ),
    "another case": ({"stringdata": {CANARY: CANARY}}, "500, field not declared in schema (field …): did you mean stringData? "),
    "a typing error": ({"dta": {CANARY: VALUE}}, "500, field not declared in schema (field …): did you mean data? "),
    "a label's": (
        {"metadata": {"lables": {CANARY: "x"}}},
        "500, field not declared in schema (field metadata.…): did you mean metadata.labels? ",
    ),
    "an unknown field of metadata": ({"metadata": {CANARY: "x"}}, "500, field not declared in schema (field metadata.…) "),
    "a field that looks like another": ({"data": {f"{CANARY}: x": {}}}, "500, expected string (field data.…) "),
    "a type of another kind": ({"type": 5}, "500, expected string (field type) "),
    "a certificate that is missing": (
        {"type": "kubernetes.io/tls", "data": {CANARY: VALUE}},
        "Invalid, Required value (field data[tls.crt]), Required value (field data[tls.key]) ",
    ),
    "a login that isn't JSON": (
        {"type": "kubernetes.io/dockerconfigjson", "data": {".dockerconfigjson": VALUE}},
        "Invalid, Invalid value: the value isn't JSON (field data[.dockerconfigjson]) ",
    ),
    "an account that isn't named": (
        {"type": "kubernetes.io/service-account-token", "data": {CANARY: VALUE}},
        "Invalid, Required value (field metadata.annotations[kubernetes.io/service-account.name]) ",
    ),
    "too large": (
        {"data": {CANARY: encoded("x" * 1_100_000)}},
        "Invalid, Too long: the values may have 1048576 bytes together (field data) ",
    ),
    "a label": ({"metadata": {"labels": {f"{CANARY} x": f"{CANARY} y"}}}, "Invalid, Invalid value (field metadata.labels) "),
    "an annotation": ({"metadata": {"annotations": {f"{CANARY} x": "y"}}}, "Invalid, Invalid value (field metadata.annotations) "),
}


def body(namespace: str, change: dict[str, Any], name: str = "login") -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        **change,
        "metadata": {"name": name, "namespace": namespace, **change.get("metadata", {})},
    }


def said(error: AnnealError, namespace: str) -> str:
    text = str(error)
    assert text.startswith(f"Secret/{namespace}/login: ")
    assert "CANARY" not in text + repr(error)
    assert "(the server's text is left out: it may quote values; kubectl apply --server-side --dry-run=server -f FILE shows it)" in text
    return text.removeprefix(f"Secret/{namespace}/login: ")


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_refused_secret_says_the_mistake_and_its_field(mistake: str, api: Api, kind: Kind, namespace: str) -> None:
    change, told = REFUSED[mistake]
    with pytest.raises(ApiRefused) as caught:
        DryRunner(api).apply(kind("v1", "Secret"), body(namespace, change))
    text = said(caught.value, namespace)
    assert told in text
    assert caught.value.status == 422


def test_an_immutable_secret_says_so_in_words_that_a_recreation_is_decided_by(apply: Apply, namespace: str) -> None:
    apply(body(namespace, {"immutable": True, "data": {CANARY: VALUE}}))
    for change, told in (
        ({"immutable": True, "data": {CANARY: encoded("other")}}, "Invalid, Forbidden: field is immutable (field data) "),
        ({"immutable": True, "type": CANARY, "data": {CANARY: VALUE}}, "Invalid, Invalid value: field is immutable (field type) "),
        ({"immutable": False, "data": {CANARY: VALUE}}, "Invalid, Forbidden: field is immutable (field immutable) "),
    ):
        with pytest.raises(ApiRefused) as caught:
            apply(body(namespace, change))
        assert said(caught.value, namespace).startswith(told)


def test_messages_about_a_secret_are_masked_for_patch_and_create_too(api: Api, apply: Apply, namespace: str) -> None:
    apply(body(namespace, {"data": {"a": VALUE}}))
    place = f"/api/v1/namespaces/{namespace}/secrets"
    wrong = {"metadata": {"name": "other"}, "data": {CANARY: 5}, CANARY: 1}
    for send, told in (
        (lambda: api.patch(f"{place}/login", {"data": {CANARY: 5}}, MERGE), "Invalid, Invalid value (field …)"),
        (lambda: api.patch(f"{place}/login", {"data": {CANARY: "%%"}}, MERGE), "a value isn't base64"),
        (lambda: api.post(place, wrong, {"fieldValidation": "Strict"}), "BadRequest, a field has another type than it is declared with"),
        (lambda: api.post(place, {**wrong, "data": {}}, {"fieldValidation": "Strict"}), "BadRequest, unknown field"),
        (lambda: api.post(place, {"metadata": {"name": f"{CANARY} x"}}), "Invalid, Invalid value (field metadata.name)"),
    ):
        with pytest.raises(ApiRefused) as caught:
            send()  # type: ignore[no-untyped-call]  # a lambda
        assert told in str(caught.value)
        assert "CANARY" not in str(caught.value)


def test_a_policys_message_isnt_repeated_and_never_read_as_the_servers_own(api: Api, apply: Apply, namespace: str) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["secrets"]}
    message = "'data: Forbidden: field is immutable, keys ' + object.data.map(k, k).join(',')"
    policy = {
        "metadata": {"name": namespace},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "!has(object.data) || !('refused' in object.data)", "messageExpression": message}],
        },
    }
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
    binding = {"metadata": {"name": namespace}, "spec": {"policyName": namespace, "validationActions": ["Deny"], "matchResources": here}}
    api.post(f"{POLICIES}/validatingadmissionpolicies", policy)
    api.post(f"{POLICIES}/validatingadmissionpolicybindings", binding)
    try:
        while True:  # until the server has compiled it
            try:
                apply(body(namespace, {"data": {"refused": VALUE, CANARY: VALUE}}))
            except ApiRefused as error:
                text = said(error, namespace)
                break
    finally:
        api.delete(f"{POLICIES}/validatingadmissionpolicybindings/{namespace}")
        api.delete(f"{POLICIES}/validatingadmissionpolicies/{namespace}")
    assert text.startswith(f"Invalid, ValidatingAdmissionPolicy {namespace} denied request (")
    assert "immutable" not in text
