"""`anneal` as a function in a shop on a cluster and a git host in memory: what people type, what they read, what a script gets."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from handler.app.connections import Connections
from handler.cli.group import anneal
from handler.cli.session import Session
from tests.fakes.apiserver import Call, FakeConnection
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.git_host import GitHost, HostSource
from tests.fakes.sandbox import InProcess
from tests.unit.engine.in_memory_shop import Body, InMemoryShop

SECRET = "canary-5b1e6c-password"
URL = "https://git.example.com/acme/shop.git"


def config_map(name: str) -> Body:
    """Return what a live ConfigMap is found by."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}}


def document(kind: str, name: str, version: str = "v1", **more: Any) -> str:
    """Return one manifest."""
    return json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}, **more})


class Sandboxed(InProcess):
    """One that a session starts."""

    def start(self) -> None: ...


@dataclass
class CliShop:
    """The target `shop` of a configuration; `files`: what its branch has. No terminal is there. `hands`: what changes what lives;
    `asked`: what the commands asked of the cluster.
    """

    config: Path
    hosts: dict[str, GitHost] = field(default_factory=lambda: {URL: GitHost()})
    hands: InMemoryShop = field(default_factory=InMemoryShop)
    files: dict[str, str] = field(default_factory=dict)
    environ: dict[str, str] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    @classmethod
    def of(cls, place: Path, monkeypatch: pytest.MonkeyPatch) -> CliShop:
        """Return one with three ConfigMaps and a Secret, pushed; nothing is applied yet."""
        made = cls(place / "anneal.yaml")
        connection = FakeConnection(made.hands.server, made._way)
        monkeypatch.setattr(Connections, "_connection", lambda _self, _target: connection)
        monkeypatch.setattr(Connections, "git_host", lambda _self, target: HostSource(made.hosts[target.repository.url], lambda _: None))
        monkeypatch.setattr(Session, "sandbox", Sandboxed())
        made.configure()
        made.declare("one", "two", "three")
        made.push()
        return made

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        self.asked.append(call.asked)
        return self.hands.meet(call, do)

    # --- git
    @property
    def host(self) -> GitHost:
        return self.hosts[URL]

    def declare(self, *names: str, value: str = "1", **more: str) -> None:
        """Declare just these ConfigMaps and a Secret, and more files of the path."""
        self.files = {f"deploy/{name}.yaml": document("ConfigMap", name, data={"value": value}) for name in names}
        self.files["deploy/secret.yaml"] = document("Secret", "login", stringData={"password": SECRET})
        self.files |= {f"deploy/{name}.yaml": text for name, text in more.items()}

    def push(self) -> str:
        sha = self.host.commit(self.files)
        self.host.push(sha)
        return sha

    # --- the configuration
    def configure(self, extra: str = "", repository: str = URL, top: str = "") -> None:
        """Write anneal.yaml. `extra`: lines of the target, `top`: lines of the file."""
        lines = ["apiVersion: anneal.dev/v1alpha1", "kind: Config", "stateNamespace: shop", *top.splitlines(), "targets:", "  - name: shop"]
        lines += [f"    repository: {{url: {repository}}}", "    path: deploy", "    namespaces: [shop]", "    namespace: shop"]
        self.config.write_text("\n".join([*lines, *(f"    {line}" for line in extra.splitlines())]) + "\n")

    # --- the command line
    def cli(self, *arguments: str, code: int = 0, stdin: str | bytes | None = None, environ: Mapping[str, str] | None = None) -> Result:
        """Run it; it must exit with `code`, and show no secret unless that is asked for. `stdin`: what is piped into it."""
        environ = {"ANNEAL_CONFIG": str(self.config), **self.environ, **(environ or {})}
        result = CliRunner(env=environ).invoke(anneal, arguments, input=stdin)
        assert result.exit_code == code, f"{' '.join(arguments)}: {result.exit_code}\n{result.output}\n{result.exception!r}"
        shown = "--show-secrets" in arguments
        assert shown or not any(each in result.output for each in (SECRET, base64.b64encode(SECRET.encode()).decode()))
        return result

    def json(self, *arguments: str, code: int = 0, **more: Any) -> Any:
        """Run it with `-o json` and return what it printed."""
        return json.loads(self.cli(*arguments, "-o", "json", code=code, **more).stdout)

    # --- the cluster
    def has(self, name: str, kind: str = "ConfigMap") -> bool:
        return self.hands.live({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}}) is not None
