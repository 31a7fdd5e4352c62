"""What the API server says about an object is repeated without the values of its sensitive fields, whatever it dislikes about it."""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from handler.cluster.api import Api
from handler.cluster.connect import ClusterConnection
from handler.cluster.write import DryRunner, Writer
from handler.model.errors import AnnealError
from handler.model.names import Resource
from tests.e2e.documents import Document, config_map, definition, deployment, job
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until
from tests.rooms.cluster.conftest import Kind

CANARY, FORMER = "canary-7f3a9c", "former-55b0d2"
PASSWORD = {"name": "DB_PASSWORD", "value": CANARY}


def with_env(document: Document, env: Any) -> Document:
    document["spec"]["template"]["spec"]["containers"][0]["env"] = env
    return document


@pytest.fixture
def said(api: Api, kind: Kind) -> Callable[[Document], str]:
    """What becomes of the server's refusal of an apply."""

    def ask(document: Document) -> str:
        with pytest.raises(AnnealError) as error:
            DryRunner(api).apply(kind(document["apiVersion"], document["kind"]), document)
        return repr(error.value) + str(error.value) + error.value.said

    return ask


@pytest.mark.parametrize(
    ("env", "told"),
    [
        ([{"name": "DB_PASSWORD", "value": 86429753186}], 'env[name="DB_PASSWORD"].value: expected string, got ***'),
        ([{"name": "DB_PASSWORD", "value": [CANARY]}], 'env[name="DB_PASSWORD"].value: expected string, got ***'),
        ([{"name": "DB_PASSWORD", "value": {"deep": CANARY}}], 'env[name="DB_PASSWORD"].value: expected string, got ***'),
        (
            [{"name": "IMAGE", "value": 86429753186}, PASSWORD],
            'env[name="IMAGE"].value: expected string, got &value.valueUnstructured{Value:86429753186}',
        ),
        ({"DB_PASSWORD": CANARY}, "env: expected list, got ***"),
        ([PASSWORD, PASSWORD], 'duplicate entries for key [name="DB_PASSWORD"]'),
        ([{**PASSWORD, "valueFrom": {"fieldRef": {"fieldPath": CANARY}}}], 'fieldPath: Invalid value: "***": error converting fieldPath'),
    ],
)
def test_a_workload_is_refused_without_the_values_of_its_secret_variables(
    said: Callable[[Document], str], namespace: str, env: Any, told: str
) -> None:
    text = said(with_env(deployment(namespace, "api"), env))
    assert told in text
    assert CANARY not in text
    assert ("86429753186" in text) is ("IMAGE" in text)


def test_a_dump_and_a_diff_of_the_object_lose_their_values(
    said: Callable[[Document], str], writer: Writer, kind: Kind, kubectl: Kubectl, namespace: str
) -> None:
    kubectl.run("wait", "serviceaccount", "default", "-n", namespace, "--for=create", f"--timeout={PATIENCE:g}s")  # a controller makes it
    template = with_env(job(namespace, "migrate"), [{**PASSWORD, "value": FORMER}])
    pod = {**config_map(namespace, "p"), "kind": "Pod", "spec": copy.deepcopy(template["spec"]["template"]["spec"])}
    del pod["data"]
    for document in (template, pod):
        writer.apply(kind(document["apiVersion"], document["kind"]), document)
    text = said(with_env(job(namespace, "migrate"), [PASSWORD]))
    assert "spec.template: Invalid value: ***: field is immutable" in text
    assert CANARY not in text
    for env in ([PASSWORD], []):  # what lives is quoted, too, even where git declares none of it any more
        pod["spec"]["containers"][0]["env"] = env
        text = said(pod)
        assert "pod updates may not change fields other than `spec.containers[*].image`" in text
        assert '"Name": "DB_PASSWORD",\n-     "Value": ***,' in text
        assert CANARY not in text
        assert FORMER not in text


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"password": 86429753186}, ".data.password: expected string, got ***"),
        ({"password": [CANARY]}, ".data.password: expected string, got ***"),
        ({"pass word": CANARY, "token": CANARY}, 'data[pass word]: Invalid value: "pass word": a valid config key'),
    ],
)
def test_a_config_map_is_refused_without_its_sensitive_values(
    said: Callable[[Document], str], namespace: str, data: dict[str, Any], told: str
) -> None:
    text = said(config_map(namespace, "a", data))
    assert told in text
    assert CANARY not in text
    assert "86429753186" not in text


# --- custom resources
TEXT = {"type": "string"}
WEAK = {"rule": "self.startsWith('x')", "messageExpression": "'the password ' + self + ' is weak'"}
PROPERTIES = {
    "apiKey": {**TEXT, "pattern": "^[a-z]+$"},
    "token": {**TEXT, "enum": ["red", "blue"]},
    "password": {**TEXT, "x-kubernetes-validations": [WEAK]},
    "pinToken": {"type": "integer", "maximum": 20},
    "auth": {
        "type": "object",
        "properties": {"password": TEXT},
        "x-kubernetes-validations": [{"rule": "false", "messageExpression": "'found ' + self.password"}],
    },
    "logins": {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["password"],
        "items": {"type": "object", "required": ["password"], "properties": {"password": TEXT}},
    },
}


@pytest.fixture(scope="module")
def offers(connection: ClusterConnection, kubectl: Kubectl) -> Iterator[Resource]:
    api = Api(connection)
    group = f"{secrets.token_hex(4)}.example.com"
    crd = definition(group)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = PROPERTIES
    kubectl.apply(crd)
    kubectl.run("wait", "crd", crd["metadata"]["name"], "--for=condition=Established", f"--timeout={PATIENCE:g}s")
    resource = Resource(group, "v1", "Offer", "offers", namespaced=True)
    until(lambda: api.get(resource.path("default")))
    yield resource
    kubectl.run("delete", "crd", crd["metadata"]["name"])


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"apiKey": CANARY}, "spec.apiKey: Invalid value: ***: spec.apiKey in body should match '^[a-z]+$'"),
        ({"apiKey": "A1"}, "spec.apiKey: Invalid value: ***: spec.apiKey in body should match '^[a-z]+$'"),
        ({"apiKey": 86429753186}, ".spec.apiKey: expected string, got ***"),
        ({"apiKey": [CANARY]}, ".spec.apiKey: expected string, got ***"),
        ({"token": CANARY}, 'spec.token: Unsupported value: ***: supported values: "red", "blue"'),
        ({"password": CANARY}, "spec.password: Invalid value: ***: the password *** is weak"),
        ({"password": "pw"}, "spec.password: Invalid value: ***: the password *** is weak"),
        ({"pinToken": 86429753186}, "spec.pinToken: Invalid value: ***: spec.pinToken in body should be less than or equal to 20"),
        ({"auth": {"password": CANARY}}, "spec.auth: Invalid value: found ***"),
        ({"auth": CANARY, "token": CANARY}, ".spec.auth: expected map, got &{***}"),
        ({"logins": [{"password": CANARY}] * 2}, '.spec.logins: duplicate entries for key [password="***"]'),
        ({"logins": [{"password": "pw"}] * 2}, '.spec.logins: duplicate entries for key [password="***"]'),
        ({"passwrod": CANARY, "token": CANARY}, ".spec.passwrod: field not declared in schema"),
    ],
)
def test_a_custom_resource_is_refused_without_its_sensitive_values(
    api: Api, offers: Resource, namespace: str, spec: dict[str, Any], told: str
) -> None:
    body = {"apiVersion": offers.api_version, "kind": "Offer", "metadata": {"name": "o", "namespace": namespace}, "spec": spec}
    with pytest.raises(AnnealError) as error:
        DryRunner(api).apply(offers, body)
    text = str(error.value)
    assert told in text
    assert CANARY not in repr(error.value)
    assert "86429753186" not in text


def test_an_admission_policy_that_quotes_a_value_is_told_without_it(
    api: Api, writer: Writer, kind: Kind, kubectl: Kubectl, namespace: str
) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["configmaps"]}
    here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}, "resourceRules": [rule]}
    judged = {"expression": "!('password' in object.data)", "messageExpression": "'no ' + object.data.password + ' here, please'"}
    admission: Document = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": namespace}}
    policy: Document = {**admission, "kind": "ValidatingAdmissionPolicy", "spec": {"matchConstraints": here, "validations": [judged]}}
    binding: Document = {
        **admission,
        "kind": "ValidatingAdmissionPolicyBinding",
        "spec": {"policyName": namespace, "validationActions": ["Deny"]},
    }
    resource = kind("v1", "ConfigMap")

    def refusal() -> str:
        try:
            DryRunner(api).apply(resource, config_map(namespace, "a", {"password": CANARY}))
        except AnnealError as error:
            return str(error)
        return ""

    for document in (policy, binding):
        writer.apply(kind(document["apiVersion"], document["kind"]), document)
    try:
        text = until(refusal)  # the server reads its policies by a watch
        live = writer.apply(resource, config_map(namespace, "b"))
        with pytest.raises(AnnealError) as refused:
            DryRunner(api).become(resource, {**live, "data": {}}, config_map(namespace, "b", {"password": CANARY}))
    finally:
        for document in (binding, policy):
            kubectl.run("delete", document["kind"], namespace)
    for told in (text, str(refused.value)):
        assert "denied request: no *** here, please" in told
        assert CANARY not in told
