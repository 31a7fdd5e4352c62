"""A target of any documents on a cluster and a git host in memory, with hands that change what lives; each request may meet something."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.names import Identity, Resource, identity_of
from handler.model.result import Outcome, Result
from handler.state.record import State
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.kinds import VERBS, WORKLOADS, Served
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost

Body = dict[str, Any]
OFFERS = Served(Resource("acme.io", "v1", "Offer", "offers", True, VERBS), frozenset({"spec"}))
KINDS = (*WORKLOADS, OFFERS)
PLACES = {(row.resource.group, row.resource.kind): row.resource for row in KINDS}
RECORD = Identity("", "ConfigMap", "anneal-system", "anneal-shop")
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)
MERGE = "application/merge-patch+json"


def body(name: str, kind: str = "ConfigMap", version: str = "v1", space: str = "shop", **more: Any) -> Body:
    """Return an object; `metadata` is added to its name and namespace."""
    place = {"name": name, "namespace": space} if space else {"name": name}
    return {"apiVersion": version, "kind": kind, "metadata": {**place, **more.pop("metadata", {})}, **more}


def config_map(name: str, value: str = "1", space: str = "shop", **metadata: Any) -> Body:
    return body(name, space=space, metadata=metadata, data={"key": value})


def path_of(identity: Identity) -> str:
    """Return where the API server has an object."""
    resource = PLACES[identity.group, identity.kind]
    root = f"/apis/{resource.group}/v1" if resource.group else "/api/v1"
    inside = f"/namespaces/{identity.namespace}" if identity.namespace else ""
    return f"{root}{inside}/{resource.plural}/{identity.name}"


@dataclass
class InMemoryShop:
    """`clock`: of the API server and of the runs; `meet`: what happens to each request of a run; `written`: what a run wrote of objects."""

    target: Target = field(default_factory=lambda: Target("shop", SHOP, ("shop",), path="shop", cluster_scoped=("Namespace",)))
    server: ApiServer = field(default_factory=lambda: cluster("shop", "jobs", served=KINDS))
    host: GitHost = field(default_factory=GitHost)
    meet: Way = straight
    written: list[str] = field(default_factory=list)
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.configure()

    @classmethod
    def holding(cls, *documents: Body) -> InMemoryShop:
        """Return one that has applied these documents."""
        made = cls()
        made.push(*documents)
        made.applied()
        made.written.clear()
        return made

    def configure(self, **changes: Any) -> None:
        """Change settings, and begin with a fresh handler, as after a restart."""
        self.target = replace(self.target, **changes)
        self.handler = self.another()

    def another(self, **options: Any) -> Handler:
        """Return another worker, with options of its own."""
        made = engine(self.server, self.host, Settings(targets=(self.target,)), way=self._way)
        made._options = replace(made._options, **options)
        return made

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        reply = self.meet(call, do)
        if call.writes and "/namespaces/anneal-system" not in call.asked.path and reply[0] < 300:
            self.written.append(f"{call.asked.method} {call.asked.path.rpartition('/')[2]}")
        return reply

    # --- git
    def push(self, *documents: Body, **files: str) -> str:
        """Declare exactly these objects, and files of a text."""
        declared = {f"shop/{each['kind']}-{each['metadata']['name']}.json": json.dumps(each) for each in documents}
        sha = self.host.commit({**declared, **{f"shop/{name}": text for name, text in files.items()}})
        self.host.push(sha)
        return sha

    def roll(self, documents: Iterable[Body], *steps: dict[str, Any]) -> str:
        """Declare exactly these objects, each in a file of its name, and a Rollout of one group `all` over them."""
        if not self.target.rollout:
            self.configure(rollout="rollout.yaml")
        head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}}
        files = {f"shop/{each['metadata']['name']}.yaml": json.dumps(each) for each in documents}
        rollout = {**head, "spec": {"groups": [{"name": "all", "steps": [*steps]}]}}
        sha = self.host.commit({**files, "rollout.yaml": json.dumps(rollout)})
        self.host.push(sha)
        return sha

    # --- runs
    def run(self, trigger: str = "push", **about: Any) -> Result:
        return self.handler.run(Job("shop", trigger, **about))

    def applied(self, trigger: str = "push", **about: Any) -> Result:
        """Run; it must end well."""
        result = self.run(trigger, **about)
        assert result.outcome in DONE, result
        return result

    def meeting(self, method: str, name: str, act: Callable[[], object], *, dry: bool = False, **about: Any) -> Result:
        """Run; `act` comes in ahead of the first request of this method and name."""
        left = [act]
        lock = threading.Lock()

        def meet(call: Call, do: Callable[[], Reply]) -> Reply:
            with lock:
                chosen = left and (call.asked.method, call.asked.path.rpartition("/")[2], call.asked.dry) == (method, name, dry)
                acts = [left.pop()] if chosen else []
            for each in acts:
                each()
            return do()

        self.meet = meet
        result = self.run(**about)
        self.meet = straight
        assert not left, "the chosen request never came"
        return result

    def state(self) -> State:
        return state_of(self.handler)

    # --- hands
    def live(self, document: Body) -> Body | None:
        """Return what lives under a document's name."""
        stored = self.server.store.get(identity_of(document))
        return stored.body if stored else None

    def uid(self, document: Body) -> str:
        return str((self.live(document) or {})["metadata"]["uid"])

    def create(self, document: Body, manager: str = "kubectl-create") -> Body:
        path = path_of(identity_of(document)).rpartition("/")[0]
        return self.server.must(Asked("POST", path, {"fieldManager": manager}, document, "", ""))

    def patch(self, document: Body, changes: Body, manager: str = "kubectl-edit") -> Body:
        return self.server.must(Asked("PATCH", path_of(identity_of(document)), {"fieldManager": manager}, changes, MERGE, ""))

    def annotate(self, document: Body, **annotations: str) -> Body:
        return self.patch(document, {"metadata": {"annotations": annotations}}, "kubectl-annotate")

    def delete(self, document: Body) -> None:
        self.server.must(Asked("DELETE", path_of(identity_of(document)), {}, {}, "", ""))

    def free_lease(self) -> None:
        """The Lease of a killed holder runs out."""
        self.server.must(Asked("DELETE", "/apis/coordination.k8s.io/v1/namespaces/anneal-system/leases/anneal-shop", {}, {}, "", ""))

    def lose_record(self) -> None:
        """Delete the record, and forget it."""
        self.server.must(Asked("DELETE", path_of(RECORD), {}, {}, "", ""))
        self.configure()
