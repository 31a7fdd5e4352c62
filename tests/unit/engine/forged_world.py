"""Targets of two repositories on one cluster, one of which follows another, and a judge of what was deleted, written and deployed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.git_settings import Promoted, Repository, Revision
from handler.config.settings import Prune, Rollback, Settings, Target
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, Identity, applyset_id, state_name
from handler.model.result import Outcome, Result
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost

STATES = "anneal-system"
BANK = Repository("https://git.example.com/acme/bank.git")
TARGETS = (
    Target("shop", SHOP, ("shop",), path="shop", exclusive=("shop",), rollback=Rollback(on_failure=True), prune=Prune(allow_empty=True)),
    Target("vic", BANK, ("bank",), path="vic"),
    Target("prod", SHOP, ("prod",), path="prod", revision=Revision(promoted=Promoted(("shop",), 0.0))),
)
NAMES = tuple(target.name for target in TARGETS)
LONG_AGO, FAR = "2001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
WEB, MINE = (Identity("", "ConfigMap", "shop", name) for name in ("web", "mine"))
DATABASE, PROD = Identity("", "ConfigMap", "bank", "db"), Identity("", "ConfigMap", "prod", "web")
STRAY = Identity("", "ConfigMap", "elsewhere", "stray")
ZERO = "0" * 64


def document(identity: Identity, value: str) -> str:
    metadata = {"name": identity.name, "namespace": identity.namespace}
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}})


@dataclass
class World:
    """`strange`: a commit that was never on the branch: it declares less, and other values. `runs`: the target whose run writes."""

    host: GitHost = field(default_factory=GitHost)
    sent: list[tuple[str, str, str]] = field(default_factory=list)
    runs: str = ""
    values: set[str] = field(default_factory=set)
    handler: Handler = field(init=False)
    old: str = ""
    head: str = ""
    strange: str = ""

    def __post_init__(self) -> None:
        self.server = cluster("shop", "bank", "prod", "elsewhere")
        self.restart()
        self.old = self.push("1")
        for name in NAMES:
            assert self.run(name).outcome is Outcome.APPLIED
        strange = {"shop/web.json": document(WEB, "strange"), "prod/web.json": document(PROD, "strange"), "vic/README": ""}
        self.strange = self.host.commit(strange)
        self.head = self.push("2")
        for name in NAMES:
            assert self.run(name).outcome is Outcome.APPLIED
        self.create(MINE)
        marks = {"labels": {PART_OF: applyset_id(state_name("shop"), STATES)}, "annotations": {IDENTITY: STRAY.mark("shop")}}
        self.create(STRAY, **marks)
        self.run("shop", "drift")
        self.sent.clear()
        self.values.clear()

    def restart(self) -> None:
        self.handler = engine(self.server, self.host, Settings(targets=TARGETS), way=self._way)

    def push(self, value: str) -> str:
        sha = self.host.commit(
            {
                "shop/web.json": document(WEB, value),
                "shop/own.json": document(replace(WEB, name="own"), value),
                "vic/db.json": document(DATABASE, value),
                "prod/web.json": document(PROD, value),
            }
        )
        self.host.push(sha)
        return sha

    def create(self, identity: Identity, **metadata: Any) -> None:
        body = json.loads(document(identity, "a person's"))
        body["metadata"] |= metadata
        path = f"/api/v1/namespaces/{identity.namespace}/configmaps"
        self.server.must(Asked("POST", path, {"fieldManager": "kubectl-create"}, body, "", ""))

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and not call.asked.dry and not call.asked.path.endswith("reviews"):
            self.sent.append((self.runs, call.asked.method, call.asked.path))
        reply = do()
        for live in map(self.server.store.get, (WEB, PROD)):
            self.values.add(live.body["data"]["key"] if live else "deleted")
        return reply

    def run(self, name: str, trigger: str = "push", **asked: Any) -> Result:
        self.runs = name
        return self.handler.run(Job(name, trigger, **asked))

    def everything(self) -> None:
        """All that runs by itself, and what may be asked over HTTP by a token."""
        for name in NAMES:
            for trigger in ("tick", "drift", "push"):
                self.run(name, trigger)
            self.run(name, "oneoff", force=True)
        for asked in ({"rollback": True}, {"commit": self.strange}, {"unpin": True}):
            for name in ("shop", "prod"):
                self.run(name, "replay", actor="mallory", **asked)
                self.run(name, "drift")

    def edit(self, kind: str, name: str, patch: dict[str, Any]) -> None:
        """Write as a person does, past all that this code checks."""
        group = {"configmaps": "/api/v1", "leases": "/apis/coordination.k8s.io/v1"}[kind]
        path = f"{group}/namespaces/{STATES}/{kind}/{name}"
        self.server.answer(Asked("PATCH", path, {"fieldManager": "kubectl-edit"}, patch, "application/merge-patch+json", ""))

    @contextlib.contextmanager
    def edited(self, kind: str, name: str, patch: dict[str, Any]) -> Iterator[None]:
        """Patch a record or a Lease for a while, before a process that knows nothing yet."""
        identity = Identity(*{"configmaps": ("", "ConfigMap"), "leases": ("coordination.k8s.io", "Lease")}[kind], STATES, state_name(name))
        before = self.server.store.get(identity)
        assert before
        gone = dict.fromkeys(before.body.get("data") or {}) if "binaryData" in patch else {}
        self.edit(kind, state_name(name), {**patch, "data": {**gone, **patch["data"]}} if "data" in patch else patch)
        self.restart()
        yield
        after = self.server.store.get(identity)
        assert after
        parts = ("data", "binaryData", "spec")
        back = {
            part: {**dict.fromkeys(after.body.get(part) or {}), **(before.body.get(part) or {})}
            for part in parts
            if part in after.body or part in before.body
        }
        was, now = before.body["metadata"], after.body["metadata"]
        both = {part: {**dict.fromkeys(now.get(part) or {}), **(was.get(part) or {})} for part in ("labels", "annotations")}
        self.edit(kind, state_name(name), {**back, "metadata": both})

    def judge(self) -> None:
        """Nothing was deleted, nothing outside was written, and no value lived that the branch doesn't hold."""
        deleted = [path for _, method, path in self.sent if method == "DELETE" and "/leases/" not in path]
        assert not deleted, deleted
        spaces = {target.name: f"/namespaces/{target.namespaces[0]}/" for target in TARGETS}
        outside = [each for each in self.sent if spaces.get(each[0], "/leases/") not in each[2] and f"/namespaces/{STATES}/" not in each[2]]
        assert not outside, outside
        assert self.values <= {"1", "2"}, self.values
        for identity in (MINE, DATABASE, STRAY, WEB, PROD):
            assert self.server.store.get(identity), identity
        for name in NAMES:
            assert self.server.store.get(Identity("", "ConfigMap", STATES, state_name(name))), name
