"""The bench's bed: one control plane, one git host, warm handlers in this process, and kubectl of the server's own version."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from handler.app.build import Handler
from handler.config.git_settings import Repository
from handler.config.secrets import Secrets
from handler.config.settings import Prune, Settings, Target
from handler.model.event import Job
from handler.model.result import Result
from handler.render.sandbox import Sandbox
from infra.bench.objects import Body, as_files
from infra.controlplane import controlplane
from infra.githost import Host, Work

KINDS = ("Namespace", "CustomResourceDefinition", "ClusterRole", "ClusterRoleBinding", "APIService")


@dataclass(slots=True)
class Bed:
    """Where everything is measured. `kubectl` is the built one; its discovery cache is kept, as on a used machine."""

    kubeconfig: Path
    host: Host
    sandbox: Sandbox
    directory: Path
    count: int = 0
    handlers: dict[str, Handler] = field(default_factory=dict)

    def kubectl(self, *arguments: str, **environment: str) -> str:
        """Run kubectl and return what it prints."""
        cache = str(self.directory / "kubectl-cache")
        command = [str(controlplane.binaries() / "kubectl"), "--kubeconfig", str(self.kubeconfig), "--cache-dir", cache, *arguments]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={**os.environ, **environment})
        return done.stdout

    def files(self, bodies: list[Body]) -> Path:
        """Write objects into a directory for `kubectl apply -f`."""
        self.count += 1
        place = self.directory / f"files-{self.count}"
        place.mkdir()
        for name, text in as_files(bodies).items():
            (place / name).write_text(text)
        return place

    def namespace(self) -> str:
        """Make a namespace of its own for one measurement."""
        self.count += 1
        name = f"bench-{self.count}"
        self.kubectl("create", "namespace", name)
        return name

    def shop(self, bodies: list[Body], **settings: Any) -> Shop:
        """Make a repository with these objects and a target that deploys it."""
        self.count += 1
        name = f"shop-{self.count}"
        work = Work.of(self.host, name)
        shop = Shop(self, work, target(name, self.host.url_of(name), settings))
        shop.write(bodies)
        return shop

    def again(self, shop: Shop, **settings: Any) -> Shop:
        """Return a shop's target with other settings, and a handler of its own."""
        self.handlers.pop(shop.target.name, None)
        return Shop(self, shop.work, target(shop.target.name, shop.target.repository.url, settings))


@dataclass(slots=True)
class Shop:
    """One repository and its target."""

    bed: Bed
    work: Work
    target: Target

    def write(self, bodies: list[Body]) -> str:
        """Push these objects as the whole content of `deploy` and return the commit."""
        shutil.rmtree(self.work.directory / "deploy", ignore_errors=True)
        for name, text in as_files(bodies).items():
            self.work.write(f"deploy/{name}", text)
        sha = self.work.commit("Bench")
        self.work.push()
        return sha

    def handler(self) -> Handler:
        """Return the target's warm handler: connected, discovered."""
        known = self.bed.handlers.get(self.target.name)
        if known is None:
            known = self.fresh()
            known.discovery(self.target).listable()
            self.bed.handlers[self.target.name] = known
        return known

    def fresh(self) -> Handler:
        """Return a handler that has seen nothing yet."""
        settings = Settings(targets=(self.target,))
        return Handler(settings, Secrets(), self.bed.sandbox, {"KUBECONFIG": str(self.bed.kubeconfig)})

    def run(self, trigger: str = "push", **asked: Any) -> Result:
        """Run a job and insist that it ends well."""
        result = self.handler().run(Job(self.target.name, trigger, **asked))
        if result.problems:
            raise RuntimeError(str(result.problems))
        return result

    def requests(self) -> int:
        """Return how many requests the target's handler has sent so far."""
        return self.handler().api(self.target).requests


def target(name: str, url: str, settings: dict[str, Any]) -> Target:
    """Return a target that may declare anything."""
    facts: dict[str, Any] = {"namespaces": ("*",), "path": "deploy", "cluster_scoped": KINDS, "prune": Prune(kinds=KINDS[:2]), **settings}
    return Target(name=name, repository=Repository(url=url), **facts)


@contextmanager
def bed() -> Iterator[Bed]:
    """Start everything, and end it."""
    with tempfile.TemporaryDirectory(prefix="anneal-bench-") as private, Sandbox() as sandbox, Host() as host:
        directory = Path(private)
        kubeconfig = controlplane.up(directory / "controlplane")
        try:
            yield Bed(kubeconfig, host, sandbox, directory)
        finally:
            controlplane.down(directory / "controlplane")
