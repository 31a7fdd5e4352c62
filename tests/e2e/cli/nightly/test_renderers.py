"""Kustomizations and charts by the command line: rendered, planned and applied from a directory; which renderer it was is said."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.e2e.cli.conftest import SECRET, Shop, document
from tests.kubectl import Kubectl

KUSTOMIZE = {
    "base/kustomization.yaml": "resources: [map.yaml]\n",
    "base/map.yaml": document("ConfigMap", "web", data={"value": "1"}),
    "app/kustomization.yaml": f"resources: [../base]\nsecretGenerator:\n- name: login\n  literals: [password={SECRET}]\n",
}
HELM = {
    "app/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "app/templates/map.yaml": document("ConfigMap", "{{ .Release.Name }}", data={"value": "{{ .Values.value }}"}),
    "app/templates/login.yaml": document("Secret", "login", stringData={"password": SECRET}),
    "app/values.yaml": 'value: "1"\n',
}
TREES = pytest.mark.parametrize(("renderer", "files"), [("kustomize", KUSTOMIZE), ("helm", HELM)], ids=["kustomize", "helm"])
BROKEN = {
    "kustomize": ("app/kustomization.yaml", "resources: [../base, gone.yaml]\n", "kustomization.yaml:1"),
    "helm": ("app/templates/map.yaml", "\n{{ .Values.a.b }}\n", "templates/map.yaml:2"),
}


@TREES
def test_a_directory_is_rendered_planned_and_applied(
    shop: Shop, kubectl: Kubectl, renderers: Path, tmp_path: Path, renderer: str, files: Mapping[str, str]
) -> None:
    write(tmp_path, files)
    (tmp_path / ".git").mkdir()
    flags = ("-f", str(tmp_path / "app"), "--name", "web", "-n", shop.namespace, "--state-namespace", shop.namespace)
    shown = {each["metadata"]["name"]: each for each in yaml.safe_load_all(shop.cli("render", *flags[:6]).stdout)}
    assert shown["web"]["data"] == {"value": "1"}
    assert len(shown) == 2
    assert f", by {renderer}: 2 to create" in shop.cli("plan", *flags).stdout
    planned = shop.cli.json("plan", *flags)
    assert planned["renderer"] == renderer
    shop.cli("apply", *flags, "-y")
    assert kubectl("get", "configmap", "web", "-n", shop.namespace)["data"] == {"value": "1"}
    shop.cli("plan", *flags, "--exit-code")
    path, text, place = BROKEN[renderer]
    write(tmp_path, {path: text})
    assert place in shop.cli("plan", *flags, code=1).stderr
    assert place in shop.cli("render", *flags[:6], code=1).stderr


@TREES
def test_check_plan_and_status_name_the_renderer(shop: Shop, renderers: Path, renderer: str, files: Mapping[str, str]) -> None:
    shop.work.remove("deploy")
    write(shop.work.directory, {path.replace("app/", "deploy/"): text for path, text in files.items()})
    shop.push("A tree for a program")
    rows = {row["subject"]: row for row in shop.cli.json("check")["checks"]}
    assert (rows["render"]["verdict"], f"by {renderer}" in rows["render"]["seen"]) == ("ok", True)
    assert f", by {renderer}: 2 to create" in shop.cli("plan").stdout
    shop.cli("apply")
    assert ["renderer:", renderer] in [line.split() for line in shop.cli("status", "shop").stdout.splitlines()]
    assert json.dumps({"renderer": renderer})[1:-1] in json.dumps(shop.cli.json("status", "shop"))


def write(place: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(text)


def test_the_rights_that_rbac_prints_read_the_values_too(shop: Shop, kubectl: Kubectl, renderers: Path) -> None:
    shop.work.remove("deploy")
    write(shop.work.directory, {path.replace("app/", "deploy/"): text for path, text in HELM.items()})
    shop.push("A chart")
    account = f"{shop.namespace}/deployer"
    sources = "[{kind: ConfigMap, name: settings}, {kind: Secret, name: login-values, optional: true}]"
    shop.configure(f"renderer: {{type: helm, valuesFrom: {sources}}}\nimpersonate: {{serviceAccount: {account}}}")
    kubectl.run("create", "serviceaccount", "deployer", "-n", shop.namespace)
    metadata = {"name": "settings", "namespace": shop.namespace}
    kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"values.yaml": 'value: "of the cluster"\n'}})
    rows = {row["subject"]: row for row in shop.cli.json("check", code=1)["checks"]}
    assert (rows["render"]["verdict"], rows["rights"]["verdict"]) == ("failed", "failed")
    assert rows["rights"]["problems"][0]["fix"].endswith("rbac shop --user anneal-admin | kubectl --kubeconfig ADMIN apply -f -")
    assert "renderer.valuesFrom takes values from it, and it can't be read" in shop.cli("render", code=1).stderr
    kubectl.grant(shop.cli("rbac", "shop").stdout)
    shop.cli("check")
    shop.cli("apply")
    assert kubectl("get", "configmap", "shop", "-n", shop.namespace)["data"] == {"value": "of the cluster"}
