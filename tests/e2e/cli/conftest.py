"""A shop in a git repository, a configuration for it, and `anneal` as a function: real git host, real control plane."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.cli.group import anneal
from infra.controlplane.pod_failures import FATE
from infra.githost import Host, Work

SECRET = "canary-5b1e6c-password"


@dataclass(frozen=True)
class Cli:
    """`cli("plan", "--exit-code")` runs a command in this process; no terminal is there."""

    config: Path
    kubeconfig: Path
    environ: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, *arguments: str, code: int = 0, kubeconfig: Path | None = None, stdin: str | bytes | None = None) -> Result:
        """Run it; it must exit with `code`. `stdin`: what is piped into it."""
        environ = {"ANNEAL_CONFIG": str(self.config), "KUBECONFIG": str(kubeconfig or self.kubeconfig), **self.environ}
        result = CliRunner(env=environ).invoke(anneal, arguments, input=stdin)
        assert result.exit_code == code, f"{' '.join(arguments)}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        shown = "--show-secrets" in arguments
        assert shown or not any(each in result.output for each in (SECRET, base64.b64encode(SECRET.encode()).decode()))
        return result

    def json(self, *arguments: str, code: int = 0, kubeconfig: Path | None = None) -> Any:
        """Run it with `-o json` and return what it printed."""
        return json.loads(self(*arguments, "-o", "json", code=code, kubeconfig=kubeconfig).stdout)


@dataclass(frozen=True)
class Shop:
    """A repository and the target `shop` that follows it into one namespace, its state beside it."""

    namespace: str
    host: Host
    work: Work
    cli: Cli

    def push(self, message: str) -> str:
        """Commit everything and push."""
        sha = self.work.commit(message)
        self.work.push()
        return sha

    def configure(self, extra: str = "", repository: str = "", top: str = "") -> None:
        """Write anneal.yaml. `extra`: lines of the target, `top`: lines of the file."""
        url = repository or self.host.url_of(self.work.directory.name)
        lines = [
            "apiVersion: anneal.dev/v1alpha1",
            "kind: Config",
            f"stateNamespace: {self.namespace}",
            *top.splitlines(),
            "targets:",
            "  - name: shop",
            f"    repository: {{url: {url}}}",
            "    path: deploy",
            f"    namespaces: [{self.namespace}]",
            f"    namespace: {self.namespace}",
            *(f"    {line}" for line in extra.splitlines()),
        ]
        self.cli.config.write_text("\n".join(lines) + "\n")

    def declare(self, *names: str, value: str = "1") -> None:
        """Declare just these ConfigMaps, and a Secret."""
        self.work.remove("deploy")
        for name in names:
            self.work.write(f"deploy/{name}.yaml", document("ConfigMap", name, data={"value": value}))
        self.work.write("deploy/secret.yaml", document("Secret", "login", stringData={"password": SECRET}))


def document(kind: str, name: str, version: str = "v1", **body: Any) -> str:
    """Return one manifest."""
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **body})


def crash_looping(container: dict[str, Any] | None = None, pod: dict[str, Any] | None = None, **spec: Any) -> str:
    """Return the manifest of a Deployment `api` whose container crashes again and again."""
    labels = {"app": "api"}
    pods = {"containers": [{"name": "main", "image": "api:1", **(container or {})}], **(pod or {})}
    template = {"metadata": {"labels": labels, "annotations": {FATE: "crash-loop"}}, "spec": pods}
    return document("Deployment", "api", "apps/v1", spec={"replicas": 1, "selector": {"matchLabels": labels}, "template": template, **spec})


@pytest.fixture(scope="session")
def host() -> Iterator[Host]:
    """A git host for all of them."""
    with Host() as started:
        yield started


@pytest.fixture
def shop(host: Host, namespace: str, kubeconfig: Path, tmp_path: Path) -> Shop:
    """Three ConfigMaps and a Secret, pushed; nothing applied yet."""
    made = Shop(namespace, host, Work.of(host, namespace), Cli(tmp_path / "anneal.yaml", kubeconfig))
    made.configure()
    made.declare("one", "two", "three")
    made.push("First")
    return made
