"""An operator of its own kind: its definition, a template that renders ConfigMaps for each object, and servers that follow it."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.githost import Host, Work
from tests.e2e.serve_process import Serving
from tests.in_process import ran
from tests.kubectl import Kubectl
from tests.patience import until

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PROGRAM = """\
local c = import 'generic-operator/config';
local owner = {apiVersion: c.apiVersion, kind: c.kind, name: c.metadata.name, uid: c.metadata.uid, controller: true};
local made(i) = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: {name: '%s-%d' % [c.metadata.name, i]} + (if std.get(c.spec, 'owns', false) then {ownerReferences: [owner]} else {}),
  data: {size: std.toString(c.spec.size)},
};
assert std.get(c.spec, 'size', 0) >= 0 : 'a size below nothing';
{ objects: { ['made-%d' % i]: made(i) for i in std.range(1, c.spec.count) } }
"""
Live = dict[str, Any]


@dataclass
class WidgetOperator:
    """`name`: of the template, its namespace, and the API group's first part. `trigger`, `settings`: more of the target's settings."""

    host: Host
    kubectl: Kubectl
    place: Path
    program: str = PROGRAM
    subresource: bool = True
    trigger: dict[str, Any] = field(default_factory=dict)
    listed: list[dict[str, Any]] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"w-{secrets.token_hex(4)}")
    servers: list[Serving] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = f"{self.name}.example.com"
        self.work = Work.of(self.host, self.name)
        self.push(self.program)
        self.kubectl.create_namespace(self.name)
        self.define()
        self.configure()

    # --- what it is made of
    def push(self, program: str) -> str:
        """Commit a program and push it; return the commit."""
        commit = self.work.write("deploy/main.jsonnet", program).commit("widgets")
        self.work.push()
        return commit

    def define(self) -> None:
        """Install the kind, and wait until it is served."""
        version: Live = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        version |= {"subresources": {"status": {}}} if self.subresource else {}
        spec = {"group": self.group, "names": {"kind": "Widget", "plural": "widgets"}, "scope": "Namespaced", "versions": [version]}
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "spec": spec}
        assert self.kubectl.ask("POST", CRDS, body | {"metadata": {"name": f"widgets.{self.group}"}})
        until(lambda: self.kubectl.ask("GET", f"/apis/{self.group}/v1/widgets") is not None)

    def undefine(self) -> None:
        """Delete the kind, and all of it."""
        self.kubectl.ask("DELETE", f"{CRDS}/widgets.{self.group}")

    def configure(self, **trigger: Any) -> None:
        """Write the configuration; what is given stands above the trigger's settings."""
        main = {"name": "widget", "apiVersion": f"{self.group}/v1", "kind": "Widget"} | trigger.pop("main", {})
        target = {
            "name": self.name,
            "repository": {"url": self.host.url_of(self.name)},
            "path": "deploy",
            "namespaces": ["*"],
            "renderer": {"type": "jsonnet"},
            "cluster": {"kubeconfig": {"file": str(self.kubectl.kubeconfig)}},
            "trigger": {"resource": {"mainResource": "widget", "resources": [main, *self.listed], **self.trigger, **trigger}},
            **self.settings,
        }
        intervals = {"interval": "3s", "driftInterval": "1h", "leaseDuration": "3s", "healthInterval": "2s"}
        header = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "installation": self.name}
        self.config = self.place / f"{self.name}.json"
        self.config.write_text(json.dumps({**header, **intervals, "stateNamespace": self.name, "targets": [target]}))

    def serve(self) -> Serving:
        """Start a server."""
        server = Serving(self.config, self.place / f"{self.name}-{len(self.servers)}.log")
        self.servers.append(server)
        return server.start().ready()

    def close(self) -> None:
        """End all servers, and the kind."""
        for server in self.servers:
            server.stop()
        self.undefine()
        self.kubectl.leave_namespaces(self.name)

    # --- what users do
    def path(self, name: str = "") -> str:
        """Return the URL path of an object, or of all."""
        return f"/apis/{self.group}/v1/namespaces/{self.name}/widgets" + (f"/{name}" if name else "")

    def create(self, name: str, **spec: Any) -> Live:
        """Create an object."""
        body = {"apiVersion": f"{self.group}/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"count": 1, "size": 1, **spec}}
        made = self.kubectl.ask("POST", self.path(), body)
        assert made
        return made

    def change(self, name: str, **spec: Any) -> None:
        """Change the spec of an object."""
        self.kubectl.ask("PATCH", self.path(name), {"spec": spec}, "application/merge-patch+json")

    def delete(self, name: str) -> None:
        """Delete an object."""
        self.kubectl.ask("DELETE", self.path(name))

    def cli(self, *arguments: str, code: int = 0) -> str:
        """Run a command as an administrator; return what it prints."""
        done = ran(["--kubeconfig", str(self.kubectl.kubeconfig), "-c", str(self.config), *arguments])
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout if code == 0 else done.stdout + done.stderr

    # --- what there is
    def widget(self, name: str) -> Live | None:
        """Return an object."""
        return self.kubectl.ask("GET", self.path(name))

    def made(self) -> dict[str, str]:
        """Return the size of each ConfigMap that instances have made, by its name."""
        listed = self.kubectl.ask("GET", f"/api/v1/namespaces/{self.name}/configmaps") or {}
        return {each["metadata"]["name"]: each["data"]["size"] for each in listed["items"] if "size" in (each.get("data") or {})}

    def records(self) -> set[str]:
        """Return the objects whose instances have a record."""
        listed = self.kubectl.ask("GET", f"/api/v1/namespaces/{self.name}/configmaps") or {}
        prefix = f"anneal-{self.name}.{self.name}."
        found = [each["metadata"]["name"] for each in listed["items"]]
        return {name.removeprefix(prefix) for name in found if name.startswith(prefix)}

    def differs(self, wanted: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
        """Return what is made otherwise than wanted: as it is, and as it should be."""
        found = self.made()
        return {name: (found.get(name), wanted.get(name)) for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name)}

    def unready(self) -> dict[str, str]:
        """Return the objects whose status doesn't say that their newest generation is applied."""
        listed = self.kubectl.ask("GET", self.path()) or {}
        found = {live["metadata"]["name"]: _ready(live) for live in listed["items"]}
        return {name: ready for name, ready in found.items() if ready != "True Applied"}

    def ready(self, name: str) -> str:
        """Return the Ready condition of an object as `unready` reads it; empty: it has none."""
        return _ready(self.widget(name) or {})

    def told(self) -> str:
        """Return the ends of the servers' logs, for what isn't reached."""
        return "\n".join(server.log.read_text()[-4000:] for server in self.servers)


def _ready(live: Live) -> str:
    for each in (live.get("status") or {}).get("conditions") or ():
        if each.get("type") == "Ready":
            current = "" if each.get("observedGeneration", 0) == live["metadata"]["generation"] else " (older)"
            return f"{each['status']} {each['reason']}{current}"
    return ""
