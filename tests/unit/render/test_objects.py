"""Documents -> objects: what is refused, what is dropped, how Lists open."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from handler.model.errors import Problem
from handler.model.manifest import Manifest, canonical
from handler.model.names import Identity
from handler.render.documents import documents
from handler.render.frames import decode, encode
from handler.render.objects import objects

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"


def _rows(text: str, path: str = "a.yaml") -> list[Manifest | Problem]:
    return list(objects(documents(text.encode(), path)))


def _mistakes(text: str) -> list[str]:
    return [str(row) for row in _rows(text) if isinstance(row, Problem)]


def _body(text: str) -> dict[str, Any]:
    (row,) = _rows(text)
    assert isinstance(row, Manifest), row
    return row.body()


HOOKED = "apiVersion: batch/v1\nkind: Job\nmetadata:\n  {name}\n  annotations: {{{mark}: {phase}}}\nspec: {{completions: {count}}}\n"


def hooked(name: str = "generateName: migrate-", mark: str = "argocd.argoproj.io/hook", phase: str = "PreSync", count: int = 1) -> str:
    return HOOKED.format(name=name, mark=mark, phase=phase, count=count)


def test_a_hook_that_leaves_its_name_to_the_server_has_one_that_lasts_until_git_changes_it() -> None:
    metadata = _body(hooked())["metadata"]
    assert metadata.keys() == {"name", "annotations"}
    assert re.fullmatch("migrate-[0-9a-f]{7}", metadata["name"])
    assert _body(hooked() + "status: {succeeded: 1}\n")["metadata"] == metadata
    assert _body(hooked(count=2))["metadata"]["name"] != metadata["name"]
    assert _body(hooked(mark="helm.sh/hook", phase="pre-install"))["metadata"]["name"].startswith("migrate-")
    assert len(_body(hooked("generateName: " + "m" * 80))["metadata"]["name"]) == 63


def test_two_hooks_that_only_their_place_tells_apart_are_declared_twice() -> None:
    (told,) = _mistakes(hooked() + "---\n" + hooked())
    assert "declared twice, first at a.yaml:1" in told
    assert not _mistakes(hooked() + "---\n" + hooked(count=2))


@pytest.mark.parametrize("text", [hooked("generateName: a-\n  name: a"), hooked(mark="argocd.argoproj.io/sync-wave", phase='"1"')])
def test_only_a_hook_may_leave_its_name_to_the_server(text: str) -> None:
    (told,) = _mistakes(text)
    assert "generateName makes another object each time" in told
    assert "only a hook (argocd.argoproj.io/hook, helm.sh/hook) may have generateName instead" in told


def test_a_made_name_begins_with_text() -> None:
    (told,) = _mistakes(hooked("generateName: [a]"))
    assert "metadata.generateName is a list, not text" in told


def test_an_object_is_its_identity_its_canonical_form_and_its_place() -> None:
    (row,) = _rows("# Überschrift\n\nkind: Deployment\napiVersion: apps/v1\nmetadata: {name: api, namespace: shop}\nspec: {b: é, a: 1}\n")
    assert row == Manifest(
        Identity("apps", "Deployment", "shop", "api"),
        "apps/v1",
        canonical(
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "api", "namespace": "shop"}, "spec": {"a": 1, "b": "é"}}
        ),
        "a.yaml:3",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("just text", "document: is text, not a Kubernetes object"),
        ("- a", "document: is a list, not a Kubernetes object"),
        ("kind: ConfigMap\nmetadata: {name: a}", "ConfigMap/a: apiVersion is missing"),
        ("apiVersion: v1\nmetadata: {name: a}", "a: kind is missing"),
        ("apiVersion: 1\nkind: ConfigMap\nmetadata: {name: a}", "ConfigMap/a: apiVersion is a number, not text; quote it"),
        ("apiVersion: a/b/c\nkind: ConfigMap\nmetadata: {name: a}", "ConfigMap/a: apiVersion can't be 'a/b/c'"),
        ("apiVersion: v1\nkind: Config/Map\nmetadata: {name: a}", "kind can't be 'Config/Map'"),
        ("apiVersion: v1\nkind: ConfigMap", "ConfigMap: metadata is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: [a]", "ConfigMap: metadata is a list, not a mapping"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "ConfigMap: metadata.name is missing"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 8080}", "ConfigMap: metadata.name is a number, not text; quote it"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: on}", "metadata.name is true or false, not text"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ../../nodes/a}", "metadata.name can't be '../../nodes/a'"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ..}", "metadata.name can't be '..'"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%2fb}", "metadata.name can't be 'a%2fb'"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: 1}", "ConfigMap/a: metadata.namespace is a number, not text"),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: a-}", "ConfigMap/a-: generateName makes another object each time"),
        (CONFIG + "  labels: {applyset.kubernetes.io/part-of: x}", "ConfigMap/a: metadata.labels holds applyset.kubernetes.io/part-of"),
        (CONFIG + "  annotations: {anneal.dev/identity: x}", "ConfigMap/a: metadata.annotations holds anneal.dev/identity"),
        (CONFIG + "  managedFields: []", "ConfigMap/a: metadata.managedFields is the API server's own record"),
        (CONFIG + "  deletionTimestamp: '2026-01-31T00:00:00Z'", "ConfigMap/a: metadata.deletionTimestamp is that of an object"),
        (CONFIG + "  deletionGracePeriodSeconds: 0", "ConfigMap/a: metadata.deletionGracePeriodSeconds is that of an object"),
        (CONFIG + "  labels: {v: 1.10}", "ConfigMap/a: metadata.labels.v is a number, not text; quote it"),
        (CONFIG + "  annotations: [a]", "ConfigMap/a: metadata.annotations is a list, not a mapping"),
        ("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization", "kustomize reads this as kustomization.yaml alone: rename it"),
        ("replicas: 3\nimage: x", "add the file to .annealignore if it isn't for the cluster"),
    ],
)
def test_an_object_that_may_not_be_in_git_is_refused_by_name(text: str, message: str) -> None:
    mistakes = _mistakes(text)
    assert any(mistake.startswith("a.yaml:1: ") and message in mistake for mistake in mistakes), mistakes


def test_a_secret_that_sops_still_encrypts_is_refused_and_nothing_of_it_is_shown() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {x: canary}\nsops: {mac: canary}\n"
    (mistake,) = _mistakes(text)
    assert "Secret/a: is still encrypted by SOPS" in mistake
    assert "canary" not in mistake
    for field, kind in (("stringData", "Secret"), ("data", "ConfigMap")):
        variables = f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n{field}: {{x: canary, sops_mac: canary, sops_version: 3.8.1}}\n"
        (mistake,) = _mistakes(variables)
        assert "/a: is still encrypted by SOPS" in mistake
    (mistake,) = _mistakes(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: 'http://a:ENC[AES256_GCM,data:canary,iv:x]@b'}\n"
    )
    assert "/a: is still encrypted by SOPS" in mistake
    operator = "apiVersion: isindir.github.com/v1alpha3\nkind: SopsSecret\nmetadata: {name: a}\nsops: {mac: x}\n"
    assert not _mistakes(operator)


def test_a_secret_that_holds_an_encrypted_file_is_refused_unless_it_says_so() -> None:
    file = f'{{"data": "ENC[AES256_GCM,data:canary,iv:x,tag:x,type:str]", "sops": {{"mac": "{"x" * 300}"}}}}'
    for field, value in (("data", base64.b64encode(file.encode()).decode()), ("stringData", file)):
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, field: {"k": value}}
        (mistake,) = _mistakes(json.dumps(body))
        assert f"Secret/a: holds a file that is still encrypted by SOPS, in {field}.k" in mistake
        assert "canary" not in mistake
        kept = {"name": "a", "annotations": {"kustomize.toolkit.fluxcd.io/decrypt": "disabled"}}
        assert not _mistakes(json.dumps({**body, "metadata": kept}))


def test_a_container_that_is_given_an_encrypted_value_is_refused() -> None:
    env = {"name": "P", "value": "ENC[AES256_GCM,data:canary,iv:x,tag:x,type:str]"}
    spec = {"template": {"spec": {"containers": [{"name": "a", "image": "a", "env": [env]}]}}}
    (mistake,) = _mistakes(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}, "spec": spec}))
    assert "Deployment/a: holds a value that is still encrypted by SOPS" in mistake
    assert "canary" not in mistake


def test_string_data_becomes_data_and_wins() -> None:
    text = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\ndata: {x: b2xk, k: a2VwdA==}\nstringData: {x: new, z: é, e: ''}\n"
    body = _body(text)
    assert body["data"] == {"x": "bmV3", "k": "a2VwdA==", "z": "w6k=", "e": ""}
    assert "stringData" not in body
    (mistake,) = _mistakes("apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {port: 5432}\n")
    assert "stringData.port is a number, not text; quote it" in mistake
    assert "5432" not in mistake


def test_status_and_server_set_metadata_are_dropped() -> None:
    body = _body(
        "apiVersion: apps/v1\nkind: StatefulSet\nstatus: {replicas: 1}\n"
        "metadata: {name: a, namespace: '', uid: u, resourceVersion: '1', generation: 2, "
        "selfLink: /x, creationTimestamp: null, managedFields: null, deletionTimestamp: null}\n"
        "spec:\n  template: {metadata: {creationTimestamp: null, labels: {a: b}}, spec: {}}\n"
        "  volumeClaimTemplates: [{metadata: {name: d, creationTimestamp: null}}]\n"
    )
    assert body == {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "a"},
        "spec": {"template": {"metadata": {"labels": {"a": "b"}}, "spec": {}}, "volumeClaimTemplates": [{"metadata": {"name": "d"}}]},
    }
    job = _body(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\n"
        "spec: {jobTemplate: {spec: {template: {metadata: {creationTimestamp: null}}}}}"
    )
    assert job["spec"] == {"jobTemplate": {"spec": {"template": {"metadata": {}}}}}


def test_rules_beside_an_aggregation_rule_are_dropped() -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules: []\n"
    selected = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
    assert "rules" not in _body(f"{role}aggregationRule: {json.dumps(selected)}\n")
    assert _body(f"{role}aggregationRule: null\n")["rules"] == []
    assert _body(role)["rules"] == []


def test_aliases_that_share_parts_are_cleaned_apart() -> None:
    rows = _rows(
        "apiVersion: v1\nkind: List\nitems:\n"
        "- &a {apiVersion: v1, kind: Secret, metadata: {name: a}, stringData: {k: v}}\n- {<<: *a, metadata: {name: b}}\n"
    )
    assert [row.body()["data"] for row in rows if isinstance(row, Manifest)] == [{"k": "dg=="}, {"k": "dg=="}]


def test_lists_are_flattened_and_every_item_has_its_line() -> None:
    text = (
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleList\nitems:\n- metadata: {name: a}\n"
        "- apiVersion: v1\n  kind: List\n  items:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n- metadata: {}\n"
    )
    rows = _rows(text)
    assert [(str(row.identity), row.api_version, row.place) for row in rows if isinstance(row, Manifest)] == [
        ("Role/a", "rbac.authorization.k8s.io/v1", "a.yaml:4"),
        ("ConfigMap/b", "v1", "a.yaml:1"),
    ]
    assert [(row.place, row.message) for row in rows if isinstance(row, Problem)] == [("a.yaml:9", "metadata.name is missing")]
    assert not _rows("apiVersion: v1\nkind: ConfigMapList\nitems: []\n---\napiVersion: v1\nkind: List\nitems:\n")


def test_a_kind_that_only_ends_in_list_stays_one_object() -> None:
    assert _body("apiVersion: example.com/v1\nkind: AllowList\nmetadata: {name: a}\nspec: {items: [1]}")["kind"] == "AllowList"


def test_empty_documents_are_no_objects() -> None:
    assert not _rows("---\n# nothing\n---\n~\n---\n")


def test_two_documents_for_one_object_name_both_places() -> None:
    other_version = "apiVersion: apps/v1beta1\nkind: Deployment\nmetadata: {name: a, namespace: x}\n"
    rows = list(
        objects(
            [
                *documents(f"{CONFIG}---\n{CONFIG}".encode(), "b.yaml"),
                *documents(other_version.encode(), "c.yaml"),
                *documents(other_version.replace("v1beta1", "v1").encode(), "d.yaml"),
            ]
        )
    )
    assert [str(row) for row in rows if isinstance(row, Problem)] == [
        "b.yaml:6: ConfigMap/a: declared twice, first at b.yaml:1",
        "d.yaml:1: Deployment/x/a: declared twice, first at c.yaml:1",
    ]


def test_all_mistakes_of_all_documents_are_in_one_list() -> None:
    assert len(_mistakes("kind: A\n---\n- 1\n---\n a: [\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: 1, labels: {a: 2}}\n")) == 6


@pytest.mark.parametrize("row", [*_rows(CONFIG), Problem("a", "b", "c", "d\n")])
def test_an_object_survives_its_frame(row: Manifest | Problem) -> None:
    assert decode(encode(row)) == row


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"Z",
        b"P",
        b"P[1]",
        b'P["a","b","c",1]',
        b"M",
        b'M["a",0]\n[]',
        b'M1\n{"metadata":{}}',
        b'M["a",true]\n{"metadata":{}}',
        b'M["a",0]\n{"metadata":1}',
        b"M\xff\n{}",
    ],
)
def test_a_malformed_frame_is_refused(frame: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever kind of ValueError, the conversation takes it as nonsense
        decode(frame)


def test_an_identity_comes_from_the_body_never_from_the_child() -> None:
    row = decode(b'M["a.yaml:1",2]\n{"kind":"Secret", "apiVersion":"v1","metadata":{"namespace":"kube-system","name":"a"}}')
    assert isinstance(row, Manifest)
    assert str(row.identity) == "Secret/kube-system/a"
    assert row.raw == canonical(row.body())
    assert (row.place, row.item) == ("a.yaml:1", 2)


# --- what must be text
VALUES = {"a number": 864253, "true or false": True, "a list": [864253], "a mapping": {"a": 864253}}


def told(body: dict[str, Any]) -> list[str]:
    text = f"# one\n---\n{json.dumps(body)}\n"
    rows = list(objects(documents(text.encode(), "a.yaml")))
    return [str(row) for row in rows if isinstance(row, Problem)] if not all(isinstance(row, Manifest) for row in rows) else []


def workload(kind: str, api_version: str, value: Any, *path: str, field: str = "containers") -> dict[str, Any]:
    spec: Any = {"spec": {field: [{"name": "web", "env": [{"name": "MODE", "value": "x"}, {"name": "DB_PASSWORD", "value": value}]}]}}
    for step in reversed(path):
        spec = {step: spec}
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, **spec}


@pytest.mark.parametrize("seen", VALUES)
def test_a_variable_that_isnt_text_is_named_with_its_container(seen: str) -> None:
    (problem,) = told(workload("Deployment", "apps/v1", VALUES[seen], "spec", "template"))
    assert problem.startswith(f"a.yaml:3: Deployment/a: spec.template.spec.containers[web].env[DB_PASSWORD].value is {seen}, not text; ")
    assert problem.endswith("(valueFrom)" if seen in ("a list", "a mapping") else 'quote it: value: "…"')
    assert "864253" not in problem


@pytest.mark.parametrize(
    ("kind", "api_version", "path"),
    [
        ("Pod", "v1", ()),
        ("PodTemplate", "v1", ("template",)),
        ("StatefulSet", "apps/v1", ("spec", "template")),
        ("DaemonSet", "apps/v1", ("spec", "template")),
        ("Job", "batch/v1", ("spec", "template")),
        ("CronJob", "batch/v1", ("spec", "jobTemplate", "spec", "template")),
    ],
)
@pytest.mark.parametrize("field", ["containers", "initContainers", "ephemeralContainers"])
def test_every_kind_with_pods_is_looked_at_and_every_container(kind: str, api_version: str, path: tuple[str, ...], field: str) -> None:
    (problem,) = told(workload(kind, api_version, 1, *path, field=field))
    assert f"{'.'.join((*path, 'spec'))}.{field}[web].env[DB_PASSWORD].value is a number" in problem
    assert told(workload(kind, api_version, "1", *path, field=field)) == []
    assert told(workload(kind, api_version, None, *path, field=field)) == [], "the server takes null for none"


def test_kinds_of_others_are_left_to_their_schema() -> None:
    assert told(workload("Deployment", "example.com/v1", 1, "spec", "template")) == []


@pytest.mark.parametrize("field", ["data", "binaryData"])
def test_data_of_a_config_map_must_be_strings(field: str) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, field: {"b": 864253, "c": "x", "d": None}}
    assert told(body) == [f'a.yaml:3: ConfigMap/a: {field}.b is a number, not text; quote it: b: "…"']
    assert told({**body, field: [1]}) == [f"a.yaml:3: ConfigMap/a: {field} is a list, not a mapping"]


@pytest.mark.parametrize("marks", ["labels", "annotations"])
def test_labels_and_annotations_of_a_pod_template_must_be_strings(marks: str) -> None:
    body = workload("Deployment", "apps/v1", "x", "spec", "template")
    body["spec"]["template"]["metadata"] = {marks: {"version": 1.5}}
    assert told(body) == [f'a.yaml:3: Deployment/a: spec.template.metadata.{marks}.version is a number, not text; quote it: version: "…"']


@pytest.mark.parametrize("env", [None, "x", [1], [{"value": 1}], {"a": 1}])
def test_other_shapes_of_env_are_left_to_the_server(env: Any) -> None:
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"env": env}, 7]}}
    assert all("containers[?].env[?].value is a number" in each for each in told(body))
