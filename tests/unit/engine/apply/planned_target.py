"""A target on a cluster in memory: what is declared is planned, then applied or pruned; each request may meet something."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from handler.cluster.api import Api
from handler.cluster.discovery import Discovery
from handler.config.git_settings import Repository
from handler.config.settings import Prune, Target
from handler.engine.apply.apply import Applier
from handler.engine.apply.prune import Pruner
from handler.engine.planner.planner import Planned, Planner, PlanRequest
from handler.model.errors import LeaseLost
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF, GroupKind, applyset_id, identity_of
from handler.model.plan import Action, Change
from handler.plan.admission import Admission
from tests.fakes.apiserver import ApiServer, Call, FakeConnection
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked

Body = dict[str, Any]
APPLYSET = applyset_id("anneal-shop", "anneal-system")
TARGET = Target(
    "shop",
    Repository("https://git.example.com/acme/shop.git"),
    ("shop",),
    namespace="shop",
    cluster_scoped=("Namespace",),
    prune=Prune(kinds=("Namespace",), allow_empty=True),
)
MAPS = "/api/v1/namespaces/shop/configmaps"


def config_map(name: str, value: str = "1", **more: Any) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"key": value}, **more}


def ours(body: Body) -> Body:
    """An object with the marks that an apply gives it."""
    marks = {"labels": {PART_OF: APPLYSET}, "annotations": {IDENTITY: identity_of(body).mark("shop")}}
    return {**body, "metadata": {**body["metadata"], **marks}}


@dataclass
class PlannedTarget:
    """`meet`: what happens to a request on its way; `written`: method and name of each write that was done."""

    target: Target = TARGET
    meet: Way = straight
    fence: Callable[[], None] = lambda: None
    written: list[str] = field(default_factory=list)
    propagations: list[str] = field(default_factory=list)
    server: ApiServer = field(default_factory=lambda: ApiServer(time.time, WORKLOADS))
    planner: Planner = field(init=False)

    def __post_init__(self) -> None:
        self.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        api = Api(FakeConnection(self.server, self._way))
        self.planner = Planner(self.target, APPLYSET, api, Discovery(api))

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        def done() -> Reply:
            reply = do()
            if call.writes and reply[0] < 300:
                self.written.append(f"{call.asked.method} {call.asked.path.rpartition('/')[2]}")
                if call.asked.method == "DELETE":
                    self.propagations.append(call.asked.body["propagationPolicy"])
            return reply

        return self.meet(call, done)

    # --- what persons and controllers do
    def post(self, path: str, body: Body) -> Body:
        return self.server.must(Asked("POST", path, {"fieldManager": "kubectl-create"}, body, "", ""))

    def patch(self, name: str, **fields: Any) -> Body:
        return self.server.must(Asked("PATCH", f"{MAPS}/{name}", {"fieldManager": "kubectl"}, fields, "application/merge-patch+json", ""))

    def delete(self, name: str) -> None:
        self.server.must(Asked("DELETE", f"{MAPS}/{name}", {}, {}, "", ""))

    def live(self, name: str) -> Body | None:
        status, body = self.server.answer(Asked("GET", f"{MAPS}/{name}", {}, None, "", ""))
        return body if status == 200 else None

    def value(self, name: str) -> str | None:
        live = self.live(name)
        return live["data"]["key"] if live else None

    # --- what a run does
    def plan(self, *bodies: Body, recorded: Collection[GroupKind] = (), **ask: Any) -> Planned:
        find = self.planner.discovery.find
        admission = Admission(self.target, APPLYSET, "anneal-system", find, self.planner.discovery.listable())
        declared = admission.admit([Manifest.of(body, f"{index}.yaml:1") for index, body in enumerate(bodies)])
        known = frozenset({GroupKind("", "ConfigMap"), GroupKind("", "Secret"), GroupKind("", "Namespace"), *recorded})
        return self.planner.plan(PlanRequest("c" * 40, "reads", "settings", (tuple(declared),), known, **ask))

    def applier(self, planned: Planned) -> Applier:
        return Applier(self.planner, planned, self.fence, lambda: None)

    def apply(self, planned: Planned) -> Applier:
        made = self.applier(planned)
        for stage in planned.plan.stages:
            made.apply(stage)
        made.settle()
        return made

    def pruner(self, planned: Planned, keep: Collection[str] = ()) -> Pruner:
        return Pruner(self.planner, planned, self.fence, lambda: None, keep)

    def prune(self, planned: Planned, keep: Collection[str] = ()) -> list[tuple[Action, str, str]]:
        made = self.pruner(planned, keep)
        made.prune()
        return outcomes(made.outcomes)


class Lease:
    """A Lease that may be lost."""

    def __init__(self, shop: PlannedTarget) -> None:
        self.held = True
        shop.fence = self.check

    def lose(self) -> None:
        self.held = False

    def check(self) -> None:
        if not self.held:
            raise LeaseLost.of("Lease/anneal-system/anneal-shop", "is held by another")


def both(*actions: Callable[[], Any]) -> Callable[[], None]:
    def do() -> None:
        for action in actions:
            action()

    return do


def outcomes(changes: Collection[Change]) -> list[tuple[Action, str, str]]:
    return [(change.action, change.identity.name, change.reason) for change in changes]


def before(method: str, name: str, do: Callable[[], Any], times: int = 1) -> Way:
    """Make something happen right before the first writes (`times` of them) of this method and name."""
    left = [do] * times

    def way(call: Call, send: Callable[[], Reply]) -> Reply:
        if left and call.writes and (call.asked.method, call.asked.path.rpartition("/")[2]) == (method, name):
            left.pop()()
        return send()

    return way


def after(method: str, name: str, do: Callable[[], Any]) -> Way:
    """Make something happen right after the first write of this method and name."""
    left = [do]

    def way(call: Call, send: Callable[[], Reply]) -> Reply:
        reply = send()
        if left and call.writes and (call.asked.method, call.asked.path.rpartition("/")[2]) == (method, name):
            left.pop()()
        return reply

    return way


def answering(method: str, name: str, status: int, message: str) -> Way:
    """Have the server refuse a request of this method and name, dry-runs included."""

    def way(call: Call, send: Callable[[], Reply]) -> Reply:
        if (call.asked.method, call.asked.path.rpartition("/")[2]) == (method, name):
            return status, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": message}, {}
        return send()

    return way
