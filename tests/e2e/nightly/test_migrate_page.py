"""Each procedure of docs/migrate.md, its commands read from the page and run by a shell, on what the tools really leave."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.model.names import IDENTITY, PART_OF
from infra.githost import Host, Work
from infra.house.pages import DOCS, FENCE
from infra.house.sources import ROOT
from tests.e2e.documents import Document, any_definition, config_map, deployment, service
from tests.e2e.left_by import bring_about, entries
from tests.kubectl import Kubectl
from tests.patience import until

KINDS = ("configmap", "service", "deployment")
REVISION = "deployment.kubernetes.io/revision"
FLUX, ARGO, KAPP = "toolkit.fluxcd.io", "argoproj.io", "kappctrl.k14s.io"


def procedure(heading: str) -> list[str]:
    """Return the blocks of commands below a heading of the page, up to the next one."""
    (section,) = re.findall(rf"^##+ {re.escape(heading)}\n(.*?)(?=^##+ |\Z)", (DOCS / "migrate.md").read_text(), re.MULTILINE | re.DOTALL)
    return [text for language, text in FENCE.findall(section) if language == "sh"]


@dataclass(frozen=True)
class Desk:
    """Where a person sits: a directory with anneal.yaml, kubectl, helm and anneal on the PATH, a cluster and a repository of their own."""

    directory: Path
    kubectl: Kubectl
    host: Host
    work: Work
    tools: Path

    @property
    def url(self) -> str:
        return self.host.url_of(self.work.directory.name)

    def runs(self, commands: str, code: int = 0) -> str:
        """Run commands as they stand; the first that fails ends them. Return what they printed."""
        path = (self.directory / "bin", self.kubectl.program.parent, self.tools, os.environ["PATH"])
        environ = {"PATH": ":".join(map(str, path)), "KUBECONFIG": str(self.kubectl.kubeconfig), "HOME": str(self.directory)}
        environ["ANNEAL_CONFIG"] = "anneal.yaml"  # at a terminal it would be asked for once
        environ |= {"PYTHONPATH": str(ROOT), "ANNEAL_TOOLS": str(self.tools), "KUBECTL_APPLYSET": "true"}
        shell = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(shell, cwd=self.directory, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, f"{commands}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def configure(self, **more: Any) -> None:
        """Write a target `shop`, as `anneal init` does."""
        repository = {"url": self.url}
        target = {"name": "shop", "repository": repository, "path": "deploy", "namespaces": ["shop"], "namespace": "shop", **more}
        config = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "targets": [target]}
        (self.directory / "anneal.yaml").write_text(yaml.safe_dump(config))

    def drops_adopt(self) -> None:
        """Take `adopt` out of the printed target."""
        config = yaml.safe_load((self.directory / "anneal.yaml").read_text())
        for target in config["targets"]:
            assert target.pop("adopt")
        (self.directory / "anneal.yaml").write_text(yaml.safe_dump(config))

    def push(self, *documents: Document, folder: str = "deploy") -> None:
        """Make these documents the whole of the path."""
        self.work.remove("deploy")
        for each in documents:
            self.work.write(f"{folder}/{each['kind'].lower()}.yaml", json.dumps(each, indent=1))
        if folder != "deploy":
            self.work.write("deploy/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n")
            self.work.write("deploy/values.yaml", "{}\n")
        self.work.commit("What the tool deploys")
        self.work.push()

    def parent(self, group: str, kind: str, namespace: str, name: str, spec: Mapping[str, Any]) -> None:
        """Make what a tool's controller works by; none runs, so that it has none of its finalizers."""
        version = "v1alpha1" if group in (ARGO, KAPP) else "v2" if kind == "HelmRelease" else "v1"
        self.kubectl.apply(any_definition(group, kind, version))
        crd = f"crd/{kind.lower()}s.{group}".replace("rys.", "ries.")
        self.kubectl.run("wait", "--for=condition=Established", crd)
        if not self.kubectl.run("get", "namespace", namespace, "--ignore-not-found"):
            self.kubectl.create_namespace(namespace)
        metadata = {"name": name, "namespace": namespace}
        self.kubectl.apply({"apiVersion": f"{group}/{version}", "kind": kind, "metadata": metadata, "spec": dict(spec)})

    def git_repository(self) -> None:
        self.parent(
            f"source.{FLUX}", "GitRepository", "flux-system", "shop", {"interval": "1m", "url": self.url, "ref": {"branch": "main"}}
        )

    def live(self) -> dict[str, Document]:
        return {kind: self.kubectl("get", kind, "web", "-n", "shop", "--show-managed-fields") for kind in KINDS}

    def running(self) -> set[str]:
        """The uids of ReplicaSets and Pods: a rollout would make others."""
        found = self.kubectl("get", "replicasets,pods", "-n", "shop")["items"]
        return {each["metadata"]["uid"] for each in found}


@pytest.fixture
def desk(own_cluster: Kubectl, host: Host, renderers: Path, tmp_path: Path) -> Desk:
    program = tmp_path / "bin" / "anneal"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m handler "$@"\n')
    program.chmod(0o755)
    own_cluster.create_namespace("shop")
    return Desk(tmp_path, own_cluster, host, Work.of(host, tmp_path.name), renderers)


def manifests() -> list[Document]:
    """What git declares: as the tools were given it, but for a key of the ConfigMap."""
    found = [config_map("", "web"), service("", "web"), deployment("", "web", replicas=1)]
    for each in found:
        each["metadata"].pop("namespace", None)
    return found


def at_rest(desk: Desk) -> tuple[dict[str, Document], set[str]]:
    """Return what lives once the Deployment has rolled out."""
    desk.kubectl.run("rollout", "status", "deployment/web", "-n", "shop")
    until(lambda: "NewReplicaSetAvailable" in json.dumps(desk.kubectl("get", "deployment", "web", "-n", "shop")))
    return desk.live(), desk.running()


def assert_taken_over(desk: Desk, before: tuple[dict[str, Document], set[str]]) -> None:
    """The same objects and pods, of Anneal alone, as git declares them."""
    was, ran = before
    now = desk.live()
    for kind, each in now.items():
        metadata = each["metadata"]
        assert metadata["uid"] == was[kind]["metadata"]["uid"]
        assert metadata["labels"].keys() == {PART_OF}
        assert metadata["annotations"].keys() - {REVISION} == {IDENTITY}
        assert {entry["manager"] for entry in entries(each)} == {"anneal"}
    assert now["configmap"]["data"] == {"key": "1"}
    assert now["service"]["spec"]["selector"] == {"app": "web"}
    assert now["deployment"]["spec"]["template"] == was["deployment"]["spec"]["template"]
    assert desk.running() == ran


def test_a_flux_kustomization(desk: Desk) -> None:
    desk.push(*manifests())
    bring_about(desk.kubectl, "flux")
    before = at_rest(desk)
    desk.git_repository()
    source = {"kind": "GitRepository", "name": "shop"}
    spec = {"interval": "10m", "path": "./deploy", "prune": True, "targetNamespace": "shop", "sourceRef": source}
    desk.parent(f"kustomize.{FLUX}", "Kustomization", "flux-system", "apps", spec)
    take_over, detach = procedure("A live Flux Kustomization")
    shown = desk.runs(take_over)
    assert "flux suspend kustomization apps -n flux-system" in shown
    assert_taken_over(desk, before)
    desk.drops_adopt()
    desk.runs(detach)
    assert not desk.kubectl.has(f"kustomizations.kustomize.{FLUX}", "apps", "flux-system")
    assert_taken_over(desk, before)


def test_a_flux_helm_release(desk: Desk) -> None:
    desk.push(*manifests(), folder="deploy/templates")
    stored = bring_about(desk.kubectl, "flux-helm")[-1]
    before = at_rest(desk)
    desk.git_repository()
    chart = {"spec": {"chart": "./deploy", "sourceRef": {"kind": "GitRepository", "name": "shop"}}}
    spec = {"interval": "10m", "chart": chart, "releaseName": "web", "targetNamespace": "shop", "storageNamespace": "shop"}
    desk.parent(f"helm.{FLUX}", "HelmRelease", "flux-system", "web", spec)
    take_over, detach = procedure("A live Flux HelmRelease")
    desk.runs(take_over)
    assert_taken_over(desk, before)
    desk.drops_adopt()
    desk.runs(detach)
    assert not desk.kubectl.has("secret", stored["metadata"]["name"], "shop")
    assert_taken_over(desk, before)


@pytest.mark.parametrize("tool", ["argocd", "argocd-server-side"])
def test_an_argo_cd_application(desk: Desk, tool: str) -> None:
    desk.push(*manifests())
    bring_about(desk.kubectl, tool)
    before = at_rest(desk)
    source = {"repoURL": desk.url, "path": "deploy", "targetRevision": "main"}
    destination = {"server": "https://kubernetes.default.svc", "namespace": "shop"}
    policy = {"automated": {"prune": True, "selfHeal": True}}
    desk.parent(
        ARGO, "Application", "argocd", "web", {"project": "default", "source": source, "destination": destination, "syncPolicy": policy}
    )
    held = {"metadata": {"finalizers": ["resources-finalizer.argocd.argoproj.io"]}}
    desk.kubectl.run("patch", f"applications.{ARGO}", "web", "-n", "argocd", "--type=merge", "-p", json.dumps(held))
    take_over, detach = procedure("A live Argo CD Application")
    desk.runs(take_over)
    assert_taken_over(desk, before)
    desk.drops_adopt()
    desk.runs(detach)
    assert not desk.kubectl.has(f"applications.{ARGO}", "web", "argocd")
    assert_taken_over(desk, before)


def test_helm(desk: Desk) -> None:
    theirs = manifests()
    theirs[0]["data"]["dropped"] = "1"
    desk.push(*theirs, folder="deploy/templates")
    desk.runs(f"helm install web {desk.work.directory}/deploy -n shop")
    before = at_rest(desk)
    desk.push(*manifests(), folder="deploy/templates")
    desk.configure(renderer={"type": "helm", "releaseName": "web"})
    (commands,) = procedure("Helm")
    desk.runs(commands)
    assert json.loads(desk.runs("helm list -n shop -o json")) == []
    assert_taken_over(desk, before)


def test_kapp(desk: Desk) -> None:
    kept = bring_about(desk.kubectl, "kapp")
    before = at_rest(desk)
    desk.configure()
    desk.parent(KAPP, "App", "shop", "shop", {"deploy": [{"kapp": {}}]})
    pause, detach = procedure("kapp-controller")
    desk.runs(pause)
    assert desk.kubectl("get", f"apps.{KAPP}", "shop", "-n", "shop")["spec"].items() >= {"paused": True, "noopDelete": True}.items()
    find, look, commands = procedure("kapp")
    found = desk.runs(find)
    assert kept[0]["metadata"]["labels"]["kapp.k14s.io/app"] in found
    assert re.search(r"^shop +shop ", found, re.MULTILINE), found
    shown = desk.runs(look)
    theirs = next(each for each in kept if each["kind"] == "Deployment")["spec"]
    labels = theirs["template"]["metadata"]["labels"]
    assert all(f"{key}:{value}" in shown for key, value in labels.items()), shown
    desk.push(*manifests())
    assert "field is immutable" in desk.runs("anneal adopt shop --from kapp -y", code=1)
    declared = manifests()
    declared[2]["spec"]["selector"] = theirs["selector"]
    declared[2]["spec"]["template"]["metadata"]["labels"] = labels
    desk.push(*declared)
    desk.runs(commands + detach)
    assert not desk.kubectl("get", "configmaps", "-n", "shop", "-l", "kapp.k14s.io/is-app-change")["items"]
    assert_taken_over(desk, before)


@pytest.mark.parametrize("prune", ["--prune-allowlist=core/v1/ConfigMap", "--prune-allowlist=apps/v1/Deployment"])
def test_kubectl_apply_prune(desk: Desk, prune: str) -> None:
    theirs = manifests()
    theirs[0]["data"]["dropped"] = "1"
    other = config_map("shop", "other")
    for each in (*theirs, other):
        each["metadata"]["labels"] = {"team": "shop"}
    apply(desk, f"--prune -l team=shop {prune}", *theirs, other)
    before = at_rest(desk)
    desk.push(*manifests())
    desk.configure()
    by_label, _ = procedure("kubectl apply --prune")
    desk.runs(by_label)
    assert_taken_over(desk, before)
    assert "pruned" not in apply(desk, f"--prune -l team=shop {prune}", other)
    assert_taken_over(desk, before)


def test_kubectl_apply_prune_by_applyset(desk: Desk) -> None:
    theirs = manifests()
    theirs[0]["data"]["dropped"] = "1"
    other = config_map("shop", "other")
    apply(desk, "--prune --applyset=configmap/tools", *theirs, other)
    before = at_rest(desk)
    desk.push(*manifests())
    desk.configure()
    _, by_applyset = procedure("kubectl apply --prune")
    desk.runs(by_applyset)
    assert not desk.kubectl.has("configmap", "tools", "shop")
    assert_taken_over(desk, before)
    assert "pruned" not in apply(desk, "--prune --applyset=configmap/tools", other)
    assert_taken_over(desk, before)


def apply(desk: Desk, options: str, *documents: Document) -> str:
    """Run `kubectl apply` with these documents as the whole set."""
    (desk.directory / "all.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
    return desk.runs(f"kubectl apply -n shop {options} -f all.json")
