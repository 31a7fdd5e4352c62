"""Actions against a cluster in memory: what each does, and that a kill at any request leaves nothing done twice and nothing lost."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from handler.build import Handler
from handler.config.settings import Settings
from handler.model.event import Job
from handler.model.manifest import Manifest
from handler.model.resource import Resource
from handler.model.result import Outcome, Result
from handler.plan.admit import Desired
from handler.run.actions import ACTIONS
from handler.run.actions.recreate import _scratch
from tests.fakes.apiserver import ApiServer, Call
from tests.fakes.apiserver.connection import Reply, Way, straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster, engine, state_of
from tests.fakes.githost import GitHost

ROLLED = replace(ONE, targets=(replace(ONE.targets[0], rollout="rollout.yaml"),))
MAPS = "/api/v1/namespaces/shop/configmaps"
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)


class Killed(BaseException):
    """The process is gone: nothing of it goes on."""


@dataclass
class Town:
    """One cluster and one git host, and what was done on the cluster."""

    server: ApiServer = field(default_factory=cluster)
    host: GitHost = field(default_factory=GitHost)
    deleted: Counter[str] = field(default_factory=Counter)
    written: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    meet: Way = straight

    def way(self, call: Call, do: Callable[[], Reply]) -> Reply:
        """Do one call; count what is deleted, by name and uid."""

        def done() -> Reply:
            reply = do()
            with self.lock:
                if call.writes and call.asked.path.startswith(f"{MAPS}/") and reply[0] < 300:
                    name = call.asked.path.rpartition("/")[2]
                    self.written.append(f"{call.asked.method} {name}")
                    if call.asked.method == "DELETE":
                        self.deleted[f"{name} {call.asked.body['preconditions']['uid']}"] += 1
            return reply

        return self.meet(call, done)

    def handler(self, settings: Settings = ROLLED) -> Handler:
        return engine(self.server, self.host, settings, way=self.way)

    def run(self, trigger: str = "push", **about: Any) -> Result:
        return self.handler().run(Job("shop", trigger, **about))

    # --- git
    def push(self, maps: Mapping[str, str], *groups: dict[str, Any]) -> str:
        """Push a commit with these ConfigMaps and these groups."""
        files = {f"shop/{name}.yaml": json.dumps(config_map(name, value)) for name, value in maps.items()}
        body = {
            "apiVersion": "workflow.kubernetes.io/v1alpha1",
            "kind": "Rollout",
            "metadata": {"name": "r"},
            "spec": {"groups": [*groups]},
        }
        sha = self.host.commit({**files, **({"rollout.yaml": json.dumps(body)} if groups else {})})
        self.host.push(sha)
        return sha

    # --- cluster
    def live(self, name: str) -> dict[str, Any] | None:
        status, body = self.server.answer(Asked("GET", f"{MAPS}/{name}", {}, None, "", ""))
        return body if status == 200 else None

    def data(self, *names: str) -> list[str | None]:
        found = [self.live(name) for name in names]
        return [body["data"]["key"] if body else None for body in found]

    def uid(self, name: str) -> str:
        body = self.live(name)
        return str(body["metadata"]["uid"]) if body else ""

    def free_lease(self) -> None:
        """The Lease of a killed holder runs out."""
        self.server.answer(Asked("DELETE", "/apis/coordination.k8s.io/v1/namespaces/anneal-system/leases/anneal-shop", {}, {}, "", ""))

    def outcomes(self) -> dict[str, str]:
        known = state_of(self.handler()).rollout
        assert known
        return {step.step: step.outcome for step in known.steps}


def config_map(name: str, value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": {"key": value}}


def step(action: str, name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "object": f"{name}.yaml", "action": action, **more}


def group(name: str, *steps: dict[str, Any], parallel: bool = False) -> dict[str, Any]:
    return {"name": name, "steps": list(steps), "parallel": parallel}


NAMES = ("free", "old", "anew", "kept", "changed", "same", "last")
GROUPS = (
    group("prepare", step("DeleteIfExist", "old"), step("Recreate", "anew")),
    group("at once", step("CreateIfNotExist", "kept"), step("CreateOrUpdate", "changed"), step("CreateOrUpdate", "same"), parallel=True),
    group("finish", step("CreateOrUpdate", "last")),
)


def planted() -> Town:
    """A town where everything lives, by an earlier commit without a Rollout."""
    town = Town()
    town.push(dict.fromkeys(NAMES, "1"))
    assert town.handler(ONE).run(Job("shop", "push")).outcome in DONE
    town.written.clear()
    return town


def wanted(value: str = "2") -> dict[str, str]:
    return {**dict.fromkeys(NAMES, value), "same": "1"}


def assert_carried_out(town: Town, before: Mapping[str, str]) -> None:
    assert town.data(*NAMES) == ["2", None, "2", "1", "2", "1", "2"]
    assert town.uid("anew") != before["anew"]
    assert {name: town.uid(name) for name in NAMES if name not in ("old", "anew")} == {
        name: uid for name, uid in before.items() if name not in ("old", "anew")
    }
    assert set(town.outcomes().values()) == {"done"}
    assert town.deleted == {f"old {before['old']}": 1, f"anew {before['anew']}": 1}


# --- each action
def test_every_action_does_its_own_and_nothing_else() -> None:
    town = planted()
    before = {name: town.uid(name) for name in NAMES}
    town.push(wanted(), *GROUPS)
    result = town.run()
    assert result.outcome is Outcome.APPLIED, result
    assert_carried_out(town, before)
    assert town.written == ["PATCH free", "DELETE old", "DELETE anew", "PATCH anew", "PATCH changed", "PATCH last"]


def test_nothing_is_deleted_where_nothing_lives() -> None:
    town = Town()
    town.push(wanted(), *GROUPS)
    assert town.run().outcome in DONE
    assert town.data(*NAMES) == ["2", None, "2", "2", "2", "1", "2"]
    assert not town.deleted


def test_the_next_commit_recreates_again_and_still_leaves_alone_what_was_only_created() -> None:
    town = planted()
    town.push(wanted(), *GROUPS)
    town.run()
    first = town.uid("anew")
    town.push({**wanted("3")}, *GROUPS)
    assert town.run().outcome is Outcome.APPLIED
    assert town.uid("anew") != first
    assert town.data("anew", "kept", "changed") == ["3", "1", "3"]


def test_a_run_of_the_same_commit_carries_nothing_out_again() -> None:
    town = planted()
    town.push(wanted(), *GROUPS)
    town.run()
    town.written.clear()
    assert town.run("drift").outcome is Outcome.UNCHANGED
    assert town.run("tick").outcome is Outcome.UNCHANGED
    assert town.written == []


def test_a_person_who_asks_again_has_it_carried_out_again() -> None:
    town = planted()
    town.push(wanted(), *GROUPS)
    town.run()
    first = town.uid("anew")
    assert town.run("oneoff", force=True).outcome is Outcome.APPLIED
    assert town.uid("anew") not in ("", first)


# --- kills
@dataclass
class Death:
    """Kills the process at its call with this number, once that is done or just before; whatever it still sends is never done."""

    number: int
    done: bool
    count: int = 0
    dead: bool = False

    def __call__(self, call: Call, do: Callable[[], Reply]) -> Reply:
        if self.dead:
            raise Killed
        if call.asked.method != "GET":
            self.count += 1
        if self.count == self.number and call.asked.method != "GET":
            self.dead = True
            if self.done:
                do()
            raise Killed
        return do()


def killed(town: Town, number: int, *, done: bool) -> bool:
    """Run, and die; False: the run had ended before."""
    death = Death(number, done)
    town.meet = death
    try:
        town.run()
    except Killed:
        pass
    finally:
        town.meet = straight
        town.free_lease()
    return death.dead


@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_kill_at_any_request_leaves_nothing_done_twice_and_nothing_lost(done: bool) -> None:
    kills = 0
    for number in range(1, 200):
        town = planted()
        before = {name: town.uid(name) for name in NAMES}
        town.push(wanted(), *GROUPS)
        if not killed(town, number, done=done):
            break
        kills += 1
        result = town.run("tick")
        assert result.outcome in DONE, (number, result)
        assert_carried_out(town, before)
    assert kills > 25


def test_a_rollout_that_is_killed_twice_at_the_same_request_ends_all_the_same() -> None:
    for number in range(1, 60, 3):
        town = planted()
        before = {name: town.uid(name) for name in NAMES}
        town.push(wanted(), *GROUPS)
        if not killed(town, number, done=True):
            break
        killed(town, number, done=True)
        assert town.run("tick").outcome in DONE, number
        assert_carried_out(town, before)


def test_the_plan_of_a_resumed_rollout_counts_no_deletion_that_was_done() -> None:
    """What a person has approved by its uid would otherwise be held again, with the uid of what was made anew."""
    town = planted()
    town.push(wanted(), *GROUPS)
    town.meet = after_write(town, "PATCH anew")
    with pytest.raises(Killed):
        town.run()
    town.meet = straight
    town.free_lease()
    planned = town.run("tick", dry_run=True)
    assert planned.plan
    assert [str(change.action) for change in planned.plan.changes if change.removes] == []
    assert ("prepare", "anew") in [(due.group, due.step) for due in planned.plan.due]


def after_write(town: Town, write: str) -> Way:
    """Die as soon as this is written."""

    def meet(_: Call, do: Callable[[], Reply]) -> Reply:
        if write in town.written:
            raise Killed
        return do()

    return meet


# --- refusals
def refusing(
    chosen: Callable[[Asked], bool], status: int = 422, message: str = "spec: Invalid value"
) -> Callable[[Call, Callable[[], Reply]], Reply]:
    def meet(call: Call, do: Callable[[], Reply]) -> Reply:
        if not chosen(call.asked):
            return do()
        return status, {"kind": "Status", "status": "Failure", "reason": "Invalid", "message": message, "code": status}, {}

    return meet


def is_scratch(asked: Asked) -> bool:
    return asked.method == "PATCH" and asked.dry and asked.path.endswith("/anew-anew")


def test_what_the_server_would_refuse_anew_isnt_deleted() -> None:
    town = planted()
    uid = town.uid("anew")
    town.push(wanted(), *GROUPS)
    town.meet = refusing(is_scratch)
    result = town.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed")
    assert "would be refused once it is deleted" in result.message
    assert (town.uid("anew"), town.outcomes()["anew"]) == (uid, "failed")


@pytest.mark.parametrize(
    ("status", "message"),
    [(400, "admission webhook does not support dry run"), (403, "exceeded quota: one"), (409, "already exists")],
)
def test_what_only_a_scratch_copy_meets_refuses_nothing(status: int, message: str) -> None:
    town = planted()
    uid = town.uid("anew")
    town.push(wanted(), *GROUPS)
    town.meet = refusing(is_scratch, status, message)
    assert town.run().outcome is Outcome.APPLIED
    assert town.uid("anew") not in ("", uid)


def test_one_that_is_deleted_and_refused_is_told_loudly_and_made_by_what_mends_it() -> None:
    town = planted()
    town.push(wanted(), *GROUPS)
    town.meet = refusing(lambda asked: asked.method == "PATCH" and not asked.dry and asked.path.endswith("/anew"))
    result = town.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed")
    assert "IS MISSING NOW" in result.message
    assert town.data("anew", "last") == [None, "1"]
    town.meet = straight
    town.push(wanted("3"), *GROUPS)
    assert town.run().outcome in DONE
    assert town.data("anew", "last") == ["3", "3"]


def test_one_that_somebody_replaced_since_the_plan_isnt_deleted() -> None:
    """The plan showed another uid: what is there now is brought to what git declares, as any object is."""
    town = planted()
    before = {name: town.uid(name) for name in NAMES}
    town.push(wanted(), *GROUPS)

    def replaced(call: Call, do: Callable[[], Reply]) -> Reply:
        if "DELETE old" in town.written and town.uid("anew") == before["anew"]:
            body = town.live("anew")
            assert body
            town.server.must(Asked("DELETE", f"{MAPS}/anew", {}, {}, "", ""))
            fresh = {
                **config_map("anew", "1"),
                "metadata": {key: body["metadata"][key] for key in ("name", "namespace", "labels", "annotations")},
            }
            town.server.must(Asked("POST", MAPS, {}, fresh, "", ""))
        return do()

    town.meet = replaced
    result = town.run()
    assert result.outcome in DONE, result
    assert not [key for key in town.deleted if key.startswith("anew ")]
    assert town.data("anew") == ["2"]


# --- parts
def test_every_row_reads_no_keys_of_its_own_but_those_it_names() -> None:
    assert {name for name, row in ACTIONS.items() if not row.keys} >= {"CreateOrUpdate", "CreateIfNotExist", "DeleteIfExist", "Recreate"}
    for name in ("CreateOrUpdate", "CreateIfNotExist", "DeleteIfExist", "Recreate"):
        assert ACTIONS[name].read({}, "spec") == {}


def test_a_scratch_service_takes_no_address_that_only_one_can_have() -> None:
    spec = {"clusterIP": "10.0.0.7", "clusterIPs": ["10.0.0.7"], "type": "NodePort", "ports": [{"port": 80, "nodePort": 30080}]}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": spec}
    made = _scratch(Desired(Manifest.of(body, "web.yaml:1"), Resource("", "v1", "Service", "services", namespaced=True)))
    assert made["metadata"]["name"] == "web-anew"
    assert made["spec"] == {"type": "NodePort", "ports": [{"port": 80}]}


def test_a_scratch_name_is_no_longer_than_a_label_may_be() -> None:
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a" * 51 + "." + "b" * 11, "namespace": "shop"}}
    made = _scratch(Desired(Manifest.of(body, "job.yaml:1"), Resource("batch", "v1", "Job", "jobs", namespaced=True)))
    assert made["metadata"]["name"] == "a" * 51 + "-anew"


def test_a_headless_service_stays_headless_in_its_scratch_copy() -> None:
    body = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db", "namespace": "shop"}, "spec": {"clusterIP": "None"}}
    made = _scratch(Desired(Manifest.of(body, "db.yaml:1"), Resource("", "v1", "Service", "services", namespaced=True)))
    assert made["spec"] == {"clusterIP": "None"}
