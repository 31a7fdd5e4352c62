"""What a rollback leaves for those who come after it: the failed commit, once its pin ends, and a person who was quicker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.build import Handler
from handler.app.tables import Tables
from handler.engine.rollback import before as deployed_before
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.render import Rendered, RenderRequest
from handler.model.result import Outcome
from handler.model.run_event import RunEnded
from handler.model.tree import OUTSIDE, ReadSet, Tree
from handler.render import RENDERERS, Sandbox
from handler.rollout.hook_annotations import ROLLOUT
from handler.state.record import Pin, State
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.engine import ONE, state_of
from tests.unit.engine.in_memory_cluster import MAPS, NO_ROOM, InMemoryCluster, config_map, forbidden, group, step
from tests.unit.engine.rollback_commits import BACK, HOOK, push

pytestmark = pytest.mark.slow

REFUSED: Reply = (422, {"kind": "Status", "code": 422, "status": "Failure", "reason": "Invalid", "message": "no such table"}, {})
NO_RIGHT = forbidden('User "anneal" cannot patch resource "configmaps" in API group "" in the namespace "shop"')


def refusing(name: str, before: Callable[[], None] = lambda: None, said: Reply = REFUSED) -> Callable[[Call, Callable[[], Reply]], Reply]:
    """Return a way on which no write of a ConfigMap is taken; `before`: done right before that is said."""

    def way(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.writes and call.asked.path == f"{MAPS}/{name}":
            before()
            return said
        return do()

    return way


def test_unpin_tries_the_failed_commit_once_more_also_where_the_one_before_had_no_rollout() -> None:
    fake = InMemoryCluster()
    old = push(fake, "1")
    assert fake.handler(BACK).run(Job("shop", "push")).outcome is Outcome.APPLIED
    new = push(fake, "2", migrate=HOOK)
    fake.meet = refusing("migrate")
    assert fake.handler(BACK).run(Job("shop", "push")).outcome is Outcome.ROLLED_BACK
    assert fake.handler(BACK).run(Job("shop", "tick")).commit == old
    fake.meet = straight
    result = fake.handler(BACK).run(Job("shop", "replay", unpin=True, actor="jo"))
    assert (result.outcome, result.commit) == (Outcome.APPLIED, new), result.problems
    migrated = fake.live("migrate")
    assert migrated
    assert ROLLOUT in migrated["metadata"]["annotations"]


def test_a_rollout_that_failed_is_not_tried_again_by_a_tick() -> None:
    fake = InMemoryCluster()
    push(fake, "1")
    fake.handler(ONE).run(Job("shop", "push"))
    push(fake, "2", migrate=HOOK)
    fake.meet = refusing("migrate")
    assert fake.handler(ONE).run(Job("shop", "push")).outcome is Outcome.FAILED
    fake.meet = straight
    for trigger in ("tick", "push", "drift"):
        assert fake.handler(ONE).run(Job("shop", trigger)).outcome is Outcome.FAILED
    assert fake.live("migrate") is None


def test_a_persons_pin_stands_that_came_while_a_rollout_failed() -> None:
    fake = InMemoryCluster()
    first = push(fake, "0")
    fake.handler(BACK).run(Job("shop", "push"))
    push(fake, "1")
    fake.handler(BACK).run(Job("shop", "push"))
    push(fake, "2", migrate=HOOK)
    handler = fake.handler(BACK)

    def said() -> None:
        handler.store(handler.target("shop")).update(lambda state: replace(state, pin=Pin(first, "a" * 64, "jo", "wait for me")))

    fake.meet = refusing("migrate", said)
    result = fake.handler(BACK).run(Job("shop", "push"))
    assert result.outcome is Outcome.FAILED
    pin = state_of(handler).pin
    assert pin
    assert (pin.commit, pin.by) == (first, "jo")


def test_before_a_first_deployment_there_is_no_rollback() -> None:
    assert deployed_before(State("shop", "default", "c1")) == ""


def test_a_run_without_writes_is_a_deployment_of_its_own_where_it_rendered_otherwise() -> None:
    """What it drops another target of the repository had taken before."""
    fake = InMemoryCluster()
    first = push(fake, "1")
    fake.handler(ONE).run(Job("shop", "push"))
    second = push(fake, "2", web2={})
    fake.handler(ONE).run(Job("shop", "push"))
    fake.server.store.remove(Identity("", "ConfigMap", "shop", "web2"))
    third = push(fake, "2")
    assert fake.handler(ONE).run(Job("shop", "push")).outcome is Outcome.UNCHANGED
    state = state_of(fake.handler(ONE))
    assert (state.commit, deployed_before(state)) == (third, second)
    fake.host.push(fake.host.commit({"shop/web.yaml": json.dumps(config_map("web", "2")), "README.md": "read me"}))
    assert fake.handler(ONE).run(Job("shop", "push")).outcome is Outcome.UNCHANGED
    assert deployed_before(state_of(fake.handler(ONE))) == second, "a commit that rendered to the same is the same deployment"
    older = replace(state, history=tuple(replace(each, digest="") for each in state.history))
    assert deployed_before(older) == first, "a record of the version before tells no difference"


@pytest.mark.parametrize(
    ("said", "code", "who"), [(REFUSED, "apply-failed", "author"), (NO_ROOM, "quota-exceeded", "operator")], ids=["refused", "no room"]
)
def test_an_exceeded_quota_fails_a_rollout_as_a_refusal_does(said: Reply, code: str, who: str) -> None:
    fake = InMemoryCluster()
    push(fake, "1")
    fake.handler(ONE).run(Job("shop", "push"))
    late = {"argocd.argoproj.io/sync-wave": "1"}
    push(fake, "2", extra=late, tell={"argocd.argoproj.io/hook": "SyncFail"})
    fake.meet = refusing("extra", said=said)
    result = fake.handler(ONE).run(Job("shop", "push"))
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, code, who), result.problems
    assert result.counts == {"configured": 1}
    assert fake.live("tell"), "the SyncFail hook has run"
    rollout = state_of(fake.handler(ONE)).rollout
    assert rollout
    assert (rollout.outcome, [step.outcome for step in rollout.steps if step.group == "SyncFail"]) == ("failed", ["done"])


@pytest.mark.parametrize(("said", "code", "who"), [(REFUSED, "rollout-failed", "author"), (NO_ROOM, "quota-exceeded", "operator")])
def test_an_exceeded_quota_rolls_back_as_a_refusal_does(said: Reply, code: str, who: str) -> None:
    fake = InMemoryCluster()
    old = push(fake, "1")
    fake.handler(BACK).run(Job("shop", "push"))
    new = push(fake, "2", extra={"argocd.argoproj.io/sync-wave": "1"})
    fake.meet = refusing("extra", said=said)
    result = fake.handler(BACK).run(Job("shop", "push"))
    assert (result.outcome, result.commit, result.code, result.who) == (Outcome.ROLLED_BACK, old, code, who), result.problems
    assert fake.data("web", "extra") == ["1", None]
    state = state_of(fake.handler(BACK))
    assert [(run.outcome, run.commit) for run in state.history[:2]] == [("rolled-back", old), ("failed", new)]
    assert state.pin
    assert state.pin.automatic
    assert fake.handler(BACK).run(Job("shop", "tick")).outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("newer", [False, True], ids=["rolled back", "a newer commit"])
def test_a_runs_end_names_the_end_of_each_round_of_another_commit(*, newer: bool) -> None:
    fake, settings = InMemoryCluster(), ONE if newer else BACK
    old = push(fake, "1")
    fake.handler(settings).run(Job("shop", "push"))
    heads = [push(fake, "2", extra={"argocd.argoproj.io/sync-wave": "1"})]
    handler = fake.handler(settings)

    def mend() -> None:
        if newer and len(heads) == 1:
            heads.append(push(fake, "3"))
            handler.lock(handler.target("shop")).request()

    fake.meet = refusing("extra", mend)
    job = Job("shop", "push")
    event = RunEnded.of(job, handler.run(job), 1.0)
    first, last = event.result.rounds
    assert (first.commit, first.outcome, first.code) == (heads[0], Outcome.FAILED, "apply-failed")
    assert "no such table" in first.message
    ended = Outcome.APPLIED if newer else Outcome.ROLLED_BACK
    assert (last.commit, last.outcome) == (heads[1] if newer else old, ended)
    assert (event.result.outcome, event.result.commit) == (last.outcome, last.commit)


def test_a_missing_right_neither_fails_a_rollout_nor_rolls_back() -> None:
    fake = InMemoryCluster()
    push(fake, "1")
    fake.handler(BACK).run(Job("shop", "push"))
    new = push(fake, "2", extra={"argocd.argoproj.io/sync-wave": "1"}, tell={"argocd.argoproj.io/hook": "SyncFail"})
    fake.meet = refusing("extra", said=NO_RIGHT)
    result = fake.handler(BACK).run(Job("shop", "push"))
    assert (result.outcome, result.commit, result.code) == (Outcome.FAILED, new, "access-denied"), result.problems
    assert fake.live("tell") is None
    fake.meet = straight
    result = fake.handler(BACK).run(Job("shop", "tick"))
    assert (result.outcome, result.commit) == (Outcome.APPLIED, new), "the next run goes on"


def test_a_step_over_the_quota_fails_and_may_continue_on_error() -> None:
    fake = InMemoryCluster()
    fake.push({"one": "1", "two": "1"}, group("main", step("CreateOrUpdate", "one", continueOnError=True), step("CreateOrUpdate", "two")))
    fake.meet = refusing("one", said=NO_ROOM)
    assert fake.run().outcome is Outcome.APPLIED
    assert fake.outcomes() == {"one": "failed", "two": "done"}
    fake.meet = refusing("two", said=NO_ROOM)
    fake.push({"one": "2", "two": "2"}, group("main", step("CreateOrUpdate", "one"), step("CreateOrUpdate", "two")))
    result = fake.run()
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "quota-exceeded", "operator"), result.problems
    assert "(step two of group main)" in str(result.problems[0])
    assert fake.outcomes() == {"one": "done", "two": "failed"}


class WithBase:
    """Renders files, and reads `base` beside them, as a kustomization of `../base` does."""

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        found, base = RENDERERS["file"].render(tree, request, sandbox), tree.lookup("base")
        return replace(found, reads=ReadSet.of(dict(found.reads.paths) | {"base": base.oid if base else "", f"{OUTSIDE}a tool": "1"}))


def based(fake: InMemoryCluster) -> Handler:
    made = fake.handler(BACK)
    made.tables = Tables(renderers={"auto": WithBase()})
    return made


def push_based(fake: InMemoryCluster, value: str, base: str, **more: dict[str, str]) -> str:
    push(fake, value, **more)
    sha = fake.host.commit({**fake.host.commits[fake.host.head], "base/a.yaml": base})
    fake.host.push(sha)
    return sha


def test_what_mends_a_failed_rollout_may_lie_beside_the_targets_path() -> None:
    fake = InMemoryCluster()
    old = push_based(fake, "1", "1")
    assert based(fake).run(Job("shop", "push")).outcome is Outcome.APPLIED
    push_based(fake, "2", "1", migrate=HOOK)
    fake.meet = refusing("migrate")
    assert based(fake).run(Job("shop", "push")).outcome is Outcome.ROLLED_BACK
    pin = state_of(based(fake)).pin
    assert pin
    assert pin.beside == ("base",)
    fake.meet = straight
    fake.host.push(fake.host.commit({**fake.host.commits[fake.host.head], "docs/a.md": "1"}))
    assert based(fake).run(Job("shop", "push")).commit == old
    mended = push_based(fake, "2", "2", migrate=HOOK)
    result = based(fake).run(Job("shop", "push"))
    assert (result.outcome, result.commit) == (Outcome.APPLIED, mended), result.problems


def test_a_persons_way_back_ends_with_what_changes_beside_the_targets_path() -> None:
    fake = InMemoryCluster()
    old = push_based(fake, "1", "1")
    based(fake).run(Job("shop", "push"))
    push_based(fake, "2", "1")
    based(fake).run(Job("shop", "push"))
    assert based(fake).run(Job("shop", "replay", commit=old, actor="jo")).commit == old
    assert based(fake).run(Job("shop", "tick")).commit == old
    new = push_based(fake, "2", "2")
    assert based(fake).run(Job("shop", "push")).commit == new
