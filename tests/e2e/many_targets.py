"""Many small targets: each follows a branch of its own, and each version of it declares one to three ConfigMaps in a shared namespace.

Commits are made in advance, so that a push is nothing but a ref that moves, as it is for a git host.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from handler.app.build import Handler, Options
from handler.config.load import load
from handler.config.secrets import resolve_all
from handler.model.names import IDENTITY, PART_OF, applyset_id, state_name
from handler.render.sandbox import Sandbox
from handler.state.record import State
from infra.githost import Host
from infra.gitwork import run_git
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import PATH, STATES
from tests.e2e.serve_process import SECRET, TOKEN, Serving
from tests.kubectl import Kubectl
from tests.patience import until


@dataclass
class Fleet:
    """`name` begins the names of its targets and is its namespace. `heads`: the version that each target's branch is at.

    `clusters`: kubeconfigs of targets that have another; `git`: the way to the host, where it isn't the direct one.
    """

    name: str
    host: Host
    kubectl: Kubectl
    place: Path
    size: int
    versions: int
    clusters: dict[int, Path] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    git: str = ""
    heads: dict[int, int] = field(default_factory=dict)
    servers: list[Serving] = field(default_factory=list)
    moving: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.bare = self.host.create(self.name)
        self.url = f"{self.git or self.host.url}/{self.name}.git"
        run_git(self.bare, "fast-import", "--quiet", f"--export-marks={self.place / 'marks'}", stdin=self._history())
        marks = dict(line.split() for line in (self.place / "marks").read_text().splitlines())
        self.commits = {
            (number, version): marks[f":{self._mark(number, version)}"] for number in range(self.size) for version in range(self.versions)
        }
        self.kubectl.create_namespace(self.name)
        self.config = self.place / "anneal.json"
        self.config.write_text(json.dumps(self._configuration()))
        loaded = load(self.config)
        secrets = resolve_all(loaded, {"HOOK": SECRET, "OPS": TOKEN})
        self.reader = Handler(loaded, secrets, Sandbox(), {}, Options(kubeconfig=str(self.kubectl.kubeconfig)))
        for number in range(self.size):
            self.move(number, 0)

    # --- what is declared
    def target(self, number: int) -> str:
        return f"{self.name}-{number}"

    def declared(self, number: int, version: int) -> list[Document]:
        """One object that stays, one of odd versions, one of every third."""
        data = {"version": str(version)}
        there = [True, version % 2 == 1, version % 3 == 0]
        return [config_map(self.name, f"{self.target(number)}-{index}", data) for index, is_there in enumerate(there) if is_there]

    def _mark(self, number: int, version: int) -> int:
        return 1 + number * self.versions + version

    def _history(self) -> bytes:
        """Write every version of every target as a git fast-import stream."""
        lines: list[str] = []
        for number in range(self.size):
            for version in range(self.versions):
                who = f"anneal <anneal@example.invalid> {1_700_000_000 + version} +0000"
                message = f"version {version}"
                lines += [f"commit refs/staged/{number}", f"mark :{self._mark(number, version)}", f"committer {who}"]
                lines += [f"data {len(message)}", message]
                lines += [f"from :{self._mark(number, version - 1)}"] if version else []
                lines += ["deleteall"]
                for document in self.declared(number, version):
                    text = json.dumps(document)
                    lines += [f"M 644 inline {PATH}/{document['metadata']['name']}.json", f"data {len(text)}", text]
        return "\n".join([*lines, "done", ""]).encode()

    def _configuration(self) -> dict[str, Any]:
        targets = [
            {
                "name": self.target(number),
                "repository": {"url": self.url},
                "revision": {"branch": f"t{number}"},
                "path": PATH,
                "namespaces": [self.name],
                "cluster": {"kubeconfig": {"file": str(self.clusters.get(number, self.kubectl.kubeconfig))}},
            }
            for number in range(self.size)
        ]
        return {
            "apiVersion": "anneal.dev/v1alpha1",
            "kind": "Config",
            "stateNamespace": STATES,
            "webhooks": {"github": {"secrets": [{"env": "HOOK"}]}},
            "replay": {"tokens": [{"name": "ops", "secret": {"env": "OPS"}, "may": ["replay", "approve", "rollback"]}]},
            "targets": targets,
        } | self.settings

    # --- git
    def move(self, number: int, version: int) -> str:
        """Push: move a target's branch to a version; return the commit."""
        sha = self.commits[number, version]
        with self.moving:
            run_git(self.bare, "update-ref", f"refs/heads/t{number}", sha)
            self.heads[number] = version
        return sha

    def ref(self, number: int) -> str:
        return f"refs/heads/t{number}"

    # --- servers
    def serve(self, module: str = "handler") -> Serving:
        """Start another server of this configuration."""
        number = len(self.servers)
        self.servers.append(Serving(self.config, self.place / f"serve-{number}.log", module=module).start())
        return self.servers[-1]

    def close(self) -> None:
        for server in self.servers:
            server.stop()
        self.kubectl.leave_namespaces(self.name)

    # --- the cluster
    def state(self, number: int) -> State | None:
        """Return a target's record."""
        target = self.reader.target(self.target(number))
        return self.reader.store(target).read().state

    def behind(self) -> list[str]:
        """Return what isn't as git says, a few words each: records first, then live objects; nothing: converged."""
        return [words for number in self.heads if (words := self._unrecorded(number))] or self._wrong_objects()

    def converge(self) -> None:
        """Wait until nothing is behind: one target after the other reaches its head, on a busy machine each in its time."""
        for number in self.heads:
            until(partial(self._is_recorded, number), partial(self._unrecorded, number))
        until(lambda: not self.behind(), lambda: "\n".join(self.behind()))

    def _is_recorded(self, number: int) -> bool:
        return not self._unrecorded(number)

    def _unrecorded(self, number: int) -> str:
        """Return what a target's record says, if that isn't its head; else nothing."""
        state = self.state(number)
        if state and state.commit == self.commits[number, self.heads[number]] and not state.attempt and state.status.phase == "applied":
            return ""
        return f"{self.target(number)}: {state and (state.commit[:8], state.attempt, state.status)}"

    def _wrong_objects(self) -> list[str]:
        live = {item["metadata"]["name"]: item for item in self.kubectl("get", "configmaps", "-n", self.name)["items"]}
        found = []
        for number, version in self.heads.items():
            applyset = applyset_id(state_name(self.target(number)), STATES)
            for document in self.declared(number, version):
                name = document["metadata"]["name"]
                item = live.pop(name, None)
                if item is None or item["data"] != document["data"] or not self._is_ours(item, number, applyset):
                    found.append(f"{name} is {item and item['data']} with {item and item['metadata'].get('labels')}")
        ours = [name for name in live if name.startswith(f"{self.name}-")]
        return found + [f"{name} is left over" for name in ours]

    def _is_ours(self, item: dict[str, Any], number: int, applyset: str) -> bool:
        meta = item["metadata"]
        identity = f"{self.target(number)}:/ConfigMap:{self.name}/{meta['name']}"
        return bool(meta["labels"][PART_OF] == applyset and meta["annotations"][IDENTITY] == identity)

    def held(self) -> list[int]:
        """Return the targets whose Lease names a holder, alive or dead."""
        items = self.kubectl("get", "leases", "-n", STATES)["items"]
        names = {item["metadata"]["name"] for item in items if item["spec"].get("holderIdentity")}
        return [number for number in range(self.size) if f"anneal-{self.target(number)}" in names]
