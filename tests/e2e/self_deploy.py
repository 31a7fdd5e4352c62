"""A cluster of its own in which Anneal deploys Anneal, with the names that its manifests have: namespaces, accounts, rights, a git host."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner

from handler.app.build import Handler, Options
from handler.cli.group import anneal
from handler.config.load import load
from handler.config.secrets import resolve_all
from handler.render.sandbox import Sandbox
from handler.state.record import State
from infra.githost import Host, Work
from tests.e2e.serve_process import SECRET, Serving
from tests.fakes.clock import NEVER
from tests.kubectl import Kubectl
from tests.manifests import NAMESPACE, OVERLAYS, Manifest, documents
from tests.patience import until

SELF = "anneal"
ACCOUNT = f"{NAMESPACE}/anneal"
PASSWORD = "the git host's password"
RBAC = ("Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")
KINDS = {
    "v1": ("ConfigMap", "Secret", "Service", "ServiceAccount"),
    "apps/v1": ("Deployment", "StatefulSet"),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "batch/v1": ("CronJob", "Job"),
    "networking.k8s.io/v1": ("Ingress", "NetworkPolicy"),
    "policy/v1": ("PodDisruptionBudget",),
}
"""What an application is usually made of; the overlays grant it."""


def application(namespace: str) -> list[Manifest]:
    """Return one small object of each kind."""
    pod = {"containers": [{"name": "web", "image": "web:1"}]}
    selector, template = {"matchLabels": {"app": "web"}}, {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    once = {"template": {"spec": {**pod, "restartPolicy": "Never"}}}
    bodies: dict[str, dict[str, Any]] = {
        "Service": {"spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
        "Deployment": {"spec": {"selector": selector, "template": template}},
        "StatefulSet": {"spec": {"serviceName": "web", "selector": selector, "template": template}},
        "HorizontalPodAutoscaler": {
            "spec": {"maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}
        },
        "CronJob": {"spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": once}}},
        "Job": {"spec": once},
        "Ingress": {"spec": {"defaultBackend": {"service": {"name": "web", "port": {"number": 80}}}}},
        "NetworkPolicy": {"spec": {"podSelector": selector}},
        "PodDisruptionBudget": {"spec": {"maxUnavailable": 1, "selector": selector}},
    }
    meta = {"name": "web", "namespace": namespace}
    kinds = [(version, kind) for version, each in KINDS.items() for kind in each]
    return [{"apiVersion": version, "kind": kind, "metadata": meta, **bodies.get(kind, {})} for version, kind in kinds]


@dataclass
class Bed:
    """`kubectl` is the administrator's; `account` is the kubeconfig of the ServiceAccount that the manifests declare."""

    kubectl: Kubectl
    host: Host
    place: Path
    account: Path = field(init=False)
    servers: list[Serving] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.host.accounts = {"anneal": PASSWORD}
        for name, value in {"git": PASSWORD, "webhook": SECRET}.items():
            (self.place / name).write_text(value)
        for name in (NAMESPACE, "shop"):
            self.kubectl.create_namespace(name)
        self.kubectl.run("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
        self.account = self.kubectl.account(f"{NAMESPACE}/anneal", self.place)

    def close(self) -> None:
        for server in self.servers:
            server.stop()

    # --- git
    def work(self, name: str) -> Work:
        return Work.of(self.host, name)

    def push(self, work: Work, text: str, message: str = "As rendered") -> str:
        """Make this stream of documents the whole of the path and push it; return the commit."""
        shutil.rmtree(work.directory / "deploy", ignore_errors=True)
        work.write("deploy/all.yaml", text)
        sha = work.commit(message)
        work.push()
        return sha

    # --- configurations
    def own(self, work: Work, **more: Any) -> Path:
        """Write the configuration in which Anneal deploys itself."""
        scoped = [f"{kind}.rbac.authorization.k8s.io" for kind in RBAC if kind.startswith("Cluster")]
        target = {
            "name": SELF,
            "repository": self._repository(work),
            "path": "deploy",
            "namespaces": [NAMESPACE, "shop"],
            "clusterScoped": scoped,
            "cluster": {"kubeconfig": {"file": str(self.account)}},
        }
        webhooks = {"github": {"secrets": [{"file": str(self.place / "webhook")}]}}
        config = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "webhooks": webhooks, "targets": [target], "leaseDuration": "6s"}
        return self._written({**config, **more})

    def of_overlay(self, overlay: str, work: Work) -> Path:
        """Write an overlay's own configuration, as it is but for what is elsewhere here: git host, secret files, the pod's account."""
        config = yaml.safe_load((OVERLAYS / overlay / "anneal.yaml").read_text().replace("/etc/anneal-secrets", str(self.place)))
        (target,) = config["targets"]
        target["repository"] = {**target["repository"], **self._repository(work)}
        target["cluster"] = {"kubeconfig": {"file": str(self.account)}}
        config.pop("queue", None)
        config["metrics"]["bind"] = "127.0.0.1:0"
        return self._written(config)

    def _repository(self, work: Work) -> dict[str, Any]:
        password = {"file": str(self.place / "git")}
        return {"url": self.host.url_of(work.directory.name), "auth": {"basic": {"username": "anneal", "password": password}}}

    def _written(self, config: dict[str, Any]) -> Path:
        path = self.place / f"anneal-{next(self.numbers)}.yaml"
        path.write_text(yaml.safe_dump({"driftInterval": NEVER, **config}))
        return path

    # --- Anneal
    def cli(self, config: Path, *arguments: str, kubeconfig: Path | None = None, code: int = 0) -> str:
        """Run a command in this process and return what it printed."""
        command = ["--config", str(config), "--kubeconfig", str(kubeconfig or self.account), *arguments]
        result = CliRunner().invoke(anneal, command)
        assert result.exit_code == code, f"{' '.join(arguments)}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        return result.output if code else result.stdout

    def authorize(self, config: Path) -> None:
        """Be the administrator: grant the account what `anneal rbac` prints for the only target."""
        printed = self.cli(config, "rbac", "--service-account", ACCOUNT, kubeconfig=self.kubectl.kubeconfig)
        self.kubectl.grant(printed)

    def unauthorize(self) -> None:
        """Take all of that back: what is left is what the manifests give."""
        self.kubectl.run("delete", "clusterrole,clusterrolebinding", f"anneal-{SELF}", "--ignore-not-found")
        for namespace in (NAMESPACE, "shop"):
            self.kubectl.run("delete", "role,rolebinding", f"anneal-{SELF}", "-n", namespace, "--ignore-not-found")

    def serve(self, config: Path) -> Serving:
        """Start a server of a configuration."""
        number = len(self.servers)
        self.servers.append(Serving(config, self.place / f"serve-{number}.log").start())
        return self.servers[-1]

    def state(self, config: Path) -> State | None:
        """Return the record of a configuration's only target."""
        settings = load(config)
        handler = Handler(settings, resolve_all(settings, os.environ), Sandbox(), {}, Options(kubeconfig=str(self.kubectl.kubeconfig)))
        return handler.store(settings.targets[0]).read().state

    def recorded(self, config: Path, commit: str, server: Serving) -> State:
        """Wait until a commit is recorded, and nothing is open; return the record."""
        found: list[State] = []

        def holds() -> bool:
            state = self.state(config)
            found[:] = [state] if state else []
            return bool(state and state.commit == commit and not state.attempt and state.status.phase == "applied")

        until(holds, lambda: f"{found}\n{server.log.read_text()[-4000:]}")
        return found[0]

    # --- the cluster
    def pods(self, component: str) -> list[Manifest]:
        """Return the pods of a part of Anneal that aren't ending."""
        found = self.kubectl("get", "pods", "-n", NAMESPACE, "-l", f"app.kubernetes.io/component={component}")["items"]
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def running(self, component: str, count: int, holds: Callable[[Manifest], bool] = lambda pod: True) -> None:
        """Wait until exactly so many pods of a part run, all of them as they should be."""

        def stand() -> bool:
            pods = self.pods(component)
            return len(pods) == count and all(pod["status"].get("phase") == "Running" and holds(pod) for pod in pods)

        until(stand, lambda: json.dumps(self.kubectl("get", "events", "-n", NAMESPACE)["items"][-5:], indent=1))

    def may(self, *asked: str, kubeconfig: Path | None = None) -> bool:
        """Ask the API server what the account may do."""
        return Kubectl(self.kubectl.program, kubeconfig or self.account).tried("auth", "can-i", *asked).stdout.strip() == "yes"


def image_of(pod: Manifest) -> str:
    """Return what a pod runs."""
    return str(pod["spec"]["containers"][0]["image"])


def live(bed: Bed, text: str) -> None:
    """Assert that each object of a stream is there."""
    for each in documents(text):
        meta = each["metadata"]
        scope = ["-n", meta["namespace"]] if meta.get("namespace") else []
        bed.kubectl.run("get", each["kind"], meta["name"], *scope)
