"""A target under its old name and its new one, on one cluster in memory; each request may meet something."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.app.retiring import retire_of
from handler.config.settings import Settings, Target
from handler.engine.retire import Retire
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, STATE_NAMESPACE, Identity, state_name
from handler.model.result import Outcome, Result
from handler.plan.inventory import TargetMarks
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_cluster import DONE
from tests.unit.engine.killed_runs import Death, Killed

OLD = Target("shop", SHOP, ("shop", "jobs"), path="shop", cluster_scoped=("Namespace",))
NEW = replace(OLD, name="store", renamed_from="shop")
BESIDE = Target("beside", SHOP, ("elsewhere",), path="beside")
PROTECTED = {"anneal.dev/prune": "disabled"}
LEASES = "/apis/coordination.k8s.io/v1"
FORBIDDEN = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403}


def identity(name: str, namespace: str = "shop", kind: str = "ConfigMap") -> Identity:
    return Identity("", kind, namespace, name)


def mapped(name: str, namespace: str = "shop", value: str = "1", annotations: Mapping[str, str] | None = None) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace, **({"annotations": dict(annotations)} if annotations else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": value}}


def writes(name: str) -> Any:
    """Return what chooses the writes of one object, by its name."""
    return lambda asked: asked.method != "GET" and asked.path.endswith(f"/{name}") and not asked.dry


@dataclass
class Renamed:
    """`meet`: happens to requests on their way."""

    server: ApiServer = field(default_factory=lambda: cluster("shop", "jobs"))
    host: GitHost = field(default_factory=GitHost)
    meet: Way = straight

    # --- git
    def push(self, *documents: dict[str, Any]) -> None:
        """Declare exactly these objects."""
        self.host.push(self.host.commit({f"shop/{number}.json": json.dumps(each) for number, each in enumerate(documents)}))

    # --- runs
    def handler(self, *targets: Target, **settings: Any) -> Handler:
        return engine(self.server, self.host, Settings(targets=targets or (NEW,), **settings), way=self._way)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        return self.meet(call, do)

    def run(self, target: Target = NEW, trigger: str = "tick", **about: Any) -> Result:
        settings = about.pop("settings", {})
        return self.handler(target, **settings).run(Job(target.name, trigger, **about))

    def applied(self, target: Target = NEW, trigger: str = "tick", **about: Any) -> Result:
        result = self.run(target, trigger, **about)
        assert result.outcome in DONE, result
        return result

    def planted(self, *documents: dict[str, Any]) -> dict[Identity, str]:
        """Let the old name apply these; return their uids."""
        self.push(*documents)
        assert self.applied(OLD).outcome is Outcome.APPLIED
        return self.uids()

    def dies_at(self, number: int, act: Any, *, done: bool = True) -> bool:
        """Let what acts die at its write with this number; False: it has ended before."""
        death = Death(number, done)
        self.meet = death
        try:
            act()
        except Killed:
            pass
        finally:
            self.meet = straight
            for name in (OLD.name, NEW.name):  # the Leases of the dead run out
                path = f"{LEASES}/namespaces/{STATE_NAMESPACE}/leases/{state_name(name)}"
                self.server.answer(Asked("DELETE", path, {}, {}, "", ""))
        return death.dead

    def dies_once(self, holds: Callable[[], bool]) -> None:
        """Let runs of the new name die, each one write later, until something holds."""
        for number in range(1, 50):
            assert self.dies_at(number, self.run), "it has ended"
            if holds():
                return

    def open_records(self) -> set[str]:
        """Return the names whose records are there, and whose runs may write."""
        found = {target.name: self.handler(target).store(target).read().state for target in (OLD, NEW)}
        return {name for name, state in found.items() if state and not state.renamed_to}

    # --- retirements
    def retire(self, target: Target = OLD, *, prune: bool = True, beside: tuple[Target, ...] = (), **about: Any) -> Retire:
        """Return what retires a target that isn't configured any more. `beside`: those that are."""
        return retire_of(self.handler(*(beside or (BESIDE,))), target, prune=prune, **about)

    # --- cluster
    def body(self, which: Identity) -> dict[str, Any] | None:
        stored = self.server.store.get(which)
        return stored.body if stored else None

    def uids(self) -> dict[Identity, str]:
        """Return the uid of everything in the namespaces of the target."""
        return {found: stored.uid for found, stored in self.server.store.all() if found.namespace in OLD.namespaces}

    def marked(self, name: str, namespace: str = STATE_NAMESPACE) -> set[str]:
        """Return the names of the objects that carry a target's marks."""
        marks = TargetMarks.of(name, namespace)
        return {found.name for found, stored in self.server.store.all() if marks.are_on(stored.body, found)}

    def has_record(self, name: str, namespace: str = STATE_NAMESPACE) -> tuple[bool, bool]:
        """Whether a target's record and its Lease are there."""
        record, lease = (
            (group, kind, namespace, state_name(name)) for group, kind in (("", "ConfigMap"), ("coordination.k8s.io", "Lease"))
        )
        return self.body(Identity(*record)) is not None, self.body(Identity(*lease)) is not None

    def touch(self, which: Identity, **annotations: str) -> None:
        """Change an object as people do."""
        body = self.body(which)
        assert body
        metadata = {**body["metadata"], "annotations": {**(body["metadata"].get("annotations") or {}), **annotations}}
        path = f"/api/v1/namespaces/{which.namespace}/configmaps/{which.name}"
        self.server.must(Asked("PUT", path, {"fieldManager": "kubectl-edit"}, {**body, "metadata": metadata}, "", ""))

    def touch_amid(self, name: str) -> list[Asked]:
        """Let a person change an object right before the first write of it; return that write, once it has come."""
        met: list[Asked] = []

        def meet(call: Call, do: Callable[[], Reply]) -> Reply:
            if writes(name)(call.asked) and not met:
                met.append(call.asked)
                self.touch(identity(name), by="hand")
            return do()

        self.meet = meet
        return met

    def mark(self, document: dict[str, Any], name: str = OLD.name) -> None:
        """Make an object that carries a target's marks, as a run that is late does."""
        found = identity(document["metadata"]["name"], document["metadata"]["namespace"])
        marks = TargetMarks.of(name, STATE_NAMESPACE)
        metadata = {**document["metadata"], "labels": {PART_OF: marks.applyset}, "annotations": {IDENTITY: found.mark(name)}}
        path = f"/api/v1/namespaces/{found.namespace}/configmaps"
        self.server.must(Asked("POST", path, {"fieldManager": "anneal"}, {**document, "metadata": metadata}, "", ""))


def by_namespaces(*allowed: str, records: str = "", cluster_wide: tuple[str, ...] = ()) -> Way:
    """Return rights by namespace, by which discovery may be read, and each Namespace by its name.

    `records`: a namespace in which ConfigMaps and Leases may only be read and written by name; `cluster_wide`: resources that may be used
    everywhere.
    """

    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        parts = call.asked.path.strip("/").split("/")
        group, rest = (parts[1], parts[3:]) if parts[0] == "apis" and len(parts) > 2 else ("", parts[2:])
        where, inside = (rest[1], rest[2:]) if rest[:1] == ["namespaces"] and len(rest) > 2 else ("", rest)
        by_name = len(inside) > 1 or call.asked.method == "POST"
        named = inside[:1] == ["namespaces"] and by_name and call.asked.method == "GET"
        if not rest or where in allowed or named or (where == records and by_name) or (not where and inside[0] in cluster_wide):
            return do()
        place = f' in the namespace "{where}"' if where else ""
        said = f'{inside[0]} is forbidden: User "shop" cannot list resource "{inside[0]}" in API group "{group}"{place}'
        return 403, {**FORBIDDEN, "message": said}, {}

    return meet
