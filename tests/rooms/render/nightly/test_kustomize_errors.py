"""What the real kustomize says of a build that fails -> what we say of it: the cause alone, with the line of the entry."""

from __future__ import annotations

import pytest

from handler.render import Sandbox
from tests.rooms.render.kustomize_trees import CHART, charted, config, refused
from tests.rooms.render.test_kustomize_errors import sandbox  # noqa: F401 - fixtures, too

COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
PATCH = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nope}\ndata: {x: y}\n"
TABLE = {
    "not YAML": ("", {"a.yaml": "a: b: c\n"}, "1: a.yaml: isn't YAML: “mapping values are not allowed in this context"),
    "no name": ("", {"a.yaml": "apiVersion: v1\nkind: ConfigMap\n"}, "1: a.yaml: holds an object of kind ConfigMap without metadata.name"),
    "no object": ("", {"a.yaml": "hello\n"}, "1: a.yaml: holds no Kubernetes object"),
    "twice": ("", {"a.yaml": f"{config('a')}---\n{config('a')}"}, "1: a.yaml: ConfigMap/a is declared twice"),
    "patch of nothing": (
        "patches:\n- path: p.yaml\n",
        {"p.yaml": PATCH},
        "2: kustomize: a patch is for ConfigMap/nope, which no resource declares",
    ),
    "merge of nothing": ("patchesStrategicMerge: [p.yaml]\n", {"p.yaml": PATCH}, "2: kustomize: a patch is for ConfigMap/nope"),
    "no patch": ("patches: [{path: p.yaml, target: {kind: ConfigMap}}]\n", {"p.yaml": "text\n"}, "2: kustomize: a patch is neither"),
    "JSON patch": (
        "patches:\n- patch: '- {op: replace, path: /data/no/q, value: x}'\n  target: {kind: ConfigMap}\n",
        {},
        "2: kustomize: a JSON patch fails: “replace operation does not apply: doc is missing path: /data/no/q",
    ),
    "merge of no ConfigMap": (
        "configMapGenerator:\n- {name: x, literals: [a=b]}\n- {name: c, behavior: merge, literals: [a=b]}\n",
        {},
        "4: kustomize: ConfigMap/c isn't among the resources",
    ),
    "literal": ("secretGenerator:\n- {name: s, literals: [hunter2]}\n", {}, "3: kustomize: a literal isn't written as key=value"),
    "key twice": ("configMapGenerator:\n- {name: s, literals: [a=b, a=c]}\n", {}, "3: kustomize: s has the key a twice"),
    "replacement source": (
        "replacements: [{source: {kind: ConfigMap, name: gone}, targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b]}]}]\n",
        {},
        "2: kustomize: a replacement takes a value of ConfigMap/gone, which no resource declares",
    ),
    "replacement field": (
        (
            "replacements:\n- source: {kind: ConfigMap, name: a, fieldPath: data.z}\n"
            "  targets: [{select: {kind: ConfigMap}, fieldPaths: [data.b]}]\n"
        ),
        {},
        "2: kustomize: a replacement takes data.z of ConfigMap/a, which has none",
    ),
    "replacement target": (
        (
            "replacements: [{source: {kind: ConfigMap, name: a, fieldPath: data.a}, targets: [{select: {kind: ConfigMap}, "
            "fieldPaths: [x.y]}]}]\n"
        ),
        {},
        "2: kustomize: “unable to find field",
    ),
    "variable": ("vars: [{name: X, objref: {kind: Foo, name: c, apiVersion: v1}}]\n", {}, "2: kustomize: variable X names an object"),
    "cycle": ("", {"a.yaml/kustomization.yaml": "resources: [../../deploy]\n"}, "is built of"),
    "component as resource": (
        "",
        {"a.yaml/kustomization.yaml": f"{COMPONENT}namePrefix: x-\n"},
        "1: a.yaml: deploy/a.yaml is a component; list it under",
    ),
    "resource as component": ("components: [c]\n", {"c/kustomization.yaml": "namePrefix: a-\n"}, "2: kustomize: deploy/c is no component"),
    "in a base": (
        "components: [../c]\n",
        {"../c/kustomization.yaml": f"{COMPONENT}resources:\n- x.yaml\n", "../c/x.yaml": "a: b: c\n"},
        "c/kustomization.yaml:4: x.yaml: isn't YAML",
    ),
    "unknown field of a base": (
        "components: [../c]\n",
        {"../c/kustomization.yaml": f"{COMPONENT}odd: 1\n"},
        "c/kustomization.yaml:3: odd: kustomize knows",
    ),
    "CRDs": ("crds: [c.yaml]\n", {"c.yaml": "x: [\n"}, "2: kustomize: “loading CRDs [c.yaml]: unable to parse"),
    "chart": (
        "namePrefix: x-\nhelmCharts:\n- {name: other}\n- {name: cache}\n",
        {**charted("charts/other"), **charted("charts/cache", {**CHART, "templates/f.yaml": "\n{{ fail `no size` }}\n"})},
        "5: kustomize: helm says: “execution error at (cache/templates/f.yaml:2:3): no size",
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_cause_alone_is_told_with_the_line_of_the_entry(sandbox: Sandbox, name: str) -> None:
    fields, files, expected = TABLE[name]
    given = {"deploy/a.yaml": config("a")} if not any(path.startswith("a.yaml") for path in files) else {}
    given |= {(path[3:] if path.startswith("../") else f"deploy/{path}"): text for path, text in files.items()}
    (found,) = refused(sandbox, {**given, "deploy/kustomization.yaml": f"resources: [a.yaml]\n{fields}"}, helm_charts=True)
    told = str(found)
    assert expected in told
    assert told.startswith(("deploy/", "c/"))
    assert not any(part in told for part in ("/tmp", "anneal-programs", "accumulat", "err=", "hunter2", "with env="))
