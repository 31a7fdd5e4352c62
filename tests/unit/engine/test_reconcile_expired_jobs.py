"""Runs of a target with a Job that removes itself: it runs once for each of its declarations, however many runs ask for it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.result import Outcome, Result
from handler.state.record import Ran
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine, state_of
from tests.fakes.git_host import GitHost
from tests.unit.engine.in_memory_cluster import config_map, group, step
from tests.unit.state.samples import as_format_1

pytestmark = pytest.mark.slow

JOBS = "/apis/batch/v1/namespaces/shop/jobs"
RECORD = "/api/v1/namespaces/anneal-system/configmaps/anneal-shop"
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)


def migration(image: str = "migrate:1") -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}}
    metadata = {"name": "brief", "namespace": "shop"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"ttlSecondsAfterFinished": 0, "template": template}}


@dataclass
class Migrating:
    """A target with Jobs that are gone as soon as a run has ended. `ran`: how often each was created."""

    target: Target = field(default_factory=lambda: Target("shop", SHOP, ("shop",), path="shop"))
    server: ApiServer = field(default_factory=lambda: cluster(served=WORKLOADS))
    host: GitHost = field(default_factory=GitHost)
    ran: Counter[str] = field(default_factory=Counter)
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.configure()

    def configure(self, **changes: Any) -> None:
        """Change settings, and begin with a fresh handler."""
        self.target = replace(self.target, **changes)
        self.handler = engine(self.server, self.host, Settings(targets=(self.target,)), way=self._way)

    def _way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        before = self._jobs()
        reply = do()
        self.ran.update(self._jobs() - before)
        return reply

    def _jobs(self) -> set[str]:
        return {identity.name for identity, _ in self.server.store.all() if identity.kind == "Job"}

    def push(self, *bodies: dict[str, Any], by: str = "") -> str:
        """Declare objects, the first of them by a step with an action where that is named."""
        files = {f"shop/{body['kind']}-{body['metadata']['name']}.json": json.dumps(body) for body in bodies}
        name = bodies[0]["metadata"]["name"]
        spec = {"groups": [group("main", step(by, name, object=f"{bodies[0]['kind']}-{name}.json"))]}
        head = {"apiVersion": "workflow.kubernetes.io/v1alpha1", "kind": "Rollout", "metadata": {"name": "r"}, "spec": spec}
        sha = self.host.commit({**files, **({"rollout.yaml": json.dumps(head)} if by else {})})
        self.host.push(sha)
        return sha

    def ask(self, trigger: str = "push", **about: Any) -> Result:
        """Run; let each Job that lives have finished and removed itself."""
        result = self.handler.run(Job("shop", trigger, **about))
        for name in self._jobs():
            self.server.must(Asked("DELETE", f"{JOBS}/{name}", {}, {}, "", ""))
        return result

    def run(self, trigger: str = "push", **about: Any) -> None:
        result = self.ask(trigger, **about)
        assert result.outcome in DONE, result

    def known(self) -> tuple[Ran, ...]:
        return state_of(self.handler).ran

    def assert_done(self, runs: int = 1) -> None:
        """Whatever is asked, nothing runs again, and the record knows the same."""
        record = (state_of(self.handler).commit, self.known())
        for trigger, fields in (("tick", {}), ("drift", {}), ("oneoff", {"dry_run": True, "force": True})):
            result = self.ask(trigger, **fields)
            assert result.outcome in (Outcome.UNCHANGED, Outcome.PLANNED), result
            assert not (result.plan and result.plan.writes)
        self.configure()
        assert self.ask("drift").outcome is Outcome.UNCHANGED
        assert (state_of(self.handler).commit, self.known()) == record
        self.run("oneoff", force=True)
        assert self.ran["brief"] == runs


@pytest.fixture
def shop() -> Migrating:
    made = Migrating()
    made.push(migration(), config_map("a", "1"))
    made.run()
    return made


def test_a_job_that_is_gone_is_done_until_its_declaration_changes(shop: Migrating) -> None:
    shop.assert_done()
    older = shop.push(migration(), config_map("a", "2"))
    shop.run()
    shop.assert_done()
    shop.push(migration("migrate:2"), config_map("a", "2"))
    shop.run()
    shop.assert_done(runs=2)
    assert shop.ask("replay", commit=older).outcome is Outcome.APPLIED
    assert shop.ran["brief"] == 3, "what another commit declares differs from what was recorded"
    assert shop.ask("drift").outcome is Outcome.UNCHANGED
    assert shop.ran["brief"] == 3
    shop.run("replay", unpin=True)
    shop.push(config_map("a", "2"))
    shop.run()
    assert (shop.known(), shop.ran["brief"]) == ((), 4)


def test_the_first_run_after_an_upgrade_takes_what_the_record_of_the_version_before_declares_for_done(shop: Migrating) -> None:
    stored = shop.server.store.get(Identity("", "ConfigMap", "anneal-system", "anneal-shop"))
    assert stored
    record = as_format_1(stored.body)
    assert not {"commit", "ran.json"} & record["data"].keys()
    shop.server.must(Asked("PUT", RECORD, {"fieldManager": "kubectl"}, record, "", ""))
    shop.configure()
    shop.run("drift")
    assert [bool(each.declared) for each in shop.known()] == [True]
    shop.assert_done()


@pytest.mark.parametrize("action", ["CreateOrUpdate", "CreateIfNotExist"])
def test_a_step_runs_a_ttl_job_once_for_each_declaration(shop: Migrating, action: str) -> None:
    shop.configure(rollout="rollout.yaml")
    for value in "12":
        shop.push(migration(), config_map("a", value), by=action)
        shop.run()
        shop.assert_done()
    shop.push(migration("migrate:2"), config_map("a", "2"), by=action)
    shop.run()
    assert shop.ran["brief"] == 2


def test_a_recreate_step_runs_a_ttl_job_once_a_rollout() -> None:
    shop = Migrating()
    shop.configure(rollout="rollout.yaml")
    for value in "12":
        shop.push(migration(), config_map("a", value), by="Recreate")
        shop.run()
        assert shop.ask("drift").outcome is Outcome.UNCHANGED
        assert shop.ran["brief"] == int(value)
