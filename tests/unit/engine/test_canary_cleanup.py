"""What an overtaken rollout leaves of its canaries while the newer head is refused, and what becomes of it afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.event import Job
from handler.model.names import IDENTITY, Identity
from handler.model.result import Outcome
from handler.state.record import State
from handler.state.record_format import stamp
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply, straight
from tests.fakes.apiserver.server import Asked
from tests.unit.engine.canary_scenario import PLACE, CanaryScenario
from tests.unit.engine.in_memory_cluster import CANNOT, ROLLED, config_map, refusing
from tests.unit.engine.killed_runs import Killed

pytestmark = pytest.mark.slow


def test_a_canary_that_a_refused_head_has_overtaken_is_withdrawn_and_the_failure_stays_the_heads_own() -> None:
    trial = CanaryScenario.held()
    before = trial.live("api")
    broken = trial.broken()
    result = trial.run("push")
    assert (result.outcome, result.code, result.commit) == (Outcome.FAILED, "manifest-invalid", broken), result
    assert trial.live("api-canary") is None
    assert trial.live("api") == before
    said = f"Deployment/shop/api-canary: the canary of {trial.new[:12]} is withdrawn, for {broken[:12]} has overtaken it"
    assert result.problems[0].place.startswith("shop/more.yaml:")
    assert str(result.problems[-1]).startswith(said)
    state = trial.state
    assert (state.attempt and state.attempt.commit, state.commit, state.pin) == (trial.new, trial.old, None)
    assert state.status.message.splitlines()[-1].startswith(said)
    assert (trial.step.outcome, trial.step.message) == ("", f"the canary is withdrawn: {broken[:12]} has overtaken it, and is refused")


@pytest.mark.parametrize(("status", "code"), [(422, "plan-refused"), (403, "access-denied")])
def test_a_canary_overtaken_by_a_head_that_the_dry_run_refuses_is_withdrawn(status: int, code: str) -> None:
    trial = CanaryScenario.held()
    trial.push("shop:3", more=json.dumps(config_map("web", "1")))
    trial.fake.meet = refusing(lambda asked: asked.dry and asked.path.endswith("/configmaps/web"), status, CANNOT)
    result = trial.run("push")
    assert (result.outcome, result.code, trial.live("api-canary"), trial.image) == (Outcome.FAILED, code, None, "shop:1"), result


def test_ticks_after_a_withdrawn_canary_fail_alike_and_delete_nothing_again() -> None:
    trial = CanaryScenario.held()
    trial.broken()
    trial.run("push")
    calls: list[Call] = []

    def seen(call: Call, do: Callable[[], Reply]) -> Reply:
        calls.append(call)
        return do()

    trial.fake.meet = seen
    assert [trial.run().outcome for _ in range(2)] == [Outcome.FAILED, Outcome.FAILED]
    assert [call.asked.method for call in calls if call.asked.path.startswith(PLACE)] == ["GET", "GET"]
    (entry, *_) = trial.state.history
    assert (entry.outcome, entry.times) == ("failed", 3)


@pytest.mark.parametrize("image", ["shop:2", "shop:4"])
def test_once_the_head_is_mended_its_canary_begins_anew(image: str) -> None:
    """Also where it declares just what was being tried."""
    trial = CanaryScenario.held()
    trial.broken()
    trial.run("push")
    mended = trial.push(image)
    trial.holds()
    canary = trial.live("api-canary")
    assert canary
    assert (canary["spec"]["replicas"], canary["spec"]["template"]["spec"]["containers"][0]["image"]) == (1, image)
    assert (trial.image, trial.state.attempt and trial.state.attempt.commit) == ("shop:1", mended)


def test_a_head_reverted_to_the_recorded_commit_leaves_no_canary_behind() -> None:
    trial = CanaryScenario.held()
    trial.broken()
    trial.run("push")
    back = trial.push("shop:1")
    result = trial.run("push")
    assert (result.outcome, trial.state.commit, trial.state.attempt) == (Outcome.APPLIED, back, None), result
    assert (trial.image, trial.live("api-canary")) == ("shop:1", None)


@pytest.mark.parametrize("withdrawn", [False, True])
def test_a_rollback_by_hand_works_after_a_withdrawn_canary(withdrawn: bool) -> None:
    trial = CanaryScenario.held()
    trial.broken()
    if withdrawn:
        trial.run("push")
    result = trial.run("replay", rollback=True, actor="ann", run="shop.back")
    assert (result.outcome, result.commit) == (Outcome.APPLIED, trial.old), result
    assert (trial.image, trial.live("api-canary"), trial.state.attempt) == ("shop:1", None, None)
    assert trial.state.pin


# --- what stays
@pytest.mark.parametrize("mark", ["promote 0", "remove 0"])
def test_a_promoted_canary_isnt_withdrawn(mark: str) -> None:
    trial = CanaryScenario.held()
    as_if(trial, mark)
    trial.broken()
    result = trial.run("push")
    assert result.outcome is Outcome.FAILED
    assert (trial.mark.startswith(mark), trial.live("api-canary") is None) == (True, False)
    assert len(result.problems) == 1


def test_the_verdict_of_a_withdrawn_canary_counts_for_the_same_commit() -> None:
    """It was refused, and a kill came before its deletion: a head that is mended to the same fails by that."""
    trial = CanaryScenario.held()
    as_if(trial, "remove 0", " errors: 0.5")
    trial.broken()
    assert trial.run("push").outcome is Outcome.FAILED
    assert trial.live("api-canary") is None
    trial.push("shop:2")
    result = trial.run("push")
    assert (result.outcome, trial.image) == (Outcome.FAILED, "shop:1")
    assert "errors: 0.5" in result.message


def as_if(trial: CanaryScenario, phase: str, reason: str = "") -> None:
    """A worker was killed in this phase."""
    handler = trial.handler

    def killed(state: State) -> State:
        assert state.rollout
        (step,) = state.rollout.steps
        mark = f"{phase} {stamp(handler.dependencies('shop').clock())[:-1]}.000Z{reason}"
        return replace(state, rollout=replace(state.rollout, steps=(replace(step, mark=mark),)))

    handler.store(handler.target("shop")).update(killed)


@pytest.mark.parametrize(
    "metadata",
    [
        {"labels": {"anneal.dev/canary": None}},
        {"labels": {"applyset.kubernetes.io/part-of": None}},
        {"annotations": {"anneal.dev/identity": "x"}},
    ],
)
def test_a_canary_without_our_inventory_marks_isnt_deleted(metadata: dict[str, Any]) -> None:
    trial = CanaryScenario.held()
    trial.change("api-canary", {"metadata": metadata})
    trial.broken()
    result = trial.run("push")
    assert (result.outcome, len(result.problems)) == (Outcome.FAILED, 1)
    assert trial.live("api-canary")
    assert trial.mark.startswith("hold 0")


def test_a_protected_canary_stays_until_its_protection_is_lifted() -> None:
    trial = CanaryScenario.held()
    trial.change("api-canary", {"metadata": {"annotations": {"anneal.dev/prune": "disabled"}}})
    trial.broken()
    result = trial.run("push")
    assert trial.live("api-canary")
    assert trial.mark.startswith("hold 0")
    assert "stays as it is, unwatched: protected by anneal.dev/prune: disabled" in str(result.problems[-1])
    trial.change("api-canary", {"metadata": {"annotations": {"anneal.dev/prune": None}}})
    assert "is withdrawn" in str(trial.run().problems[-1])
    assert trial.live("api-canary") is None


def test_a_canary_in_a_namespace_off_the_whitelist_isnt_deleted() -> None:
    """Nothing is touched there."""
    trial = CanaryScenario.held()
    trial.broken()
    elsewhere = replace(ROLLED, targets=(replace(ROLLED.targets[0], namespaces=("other",)),))
    result = trial.fake.handler(elsewhere).run(Job("shop", "push"))
    assert (result.outcome, result.code) == (Outcome.FAILED, "manifest-invalid")
    assert "unwatched: outside: namespace shop left the whitelist" in str(result.problems[-1])
    assert trial.live("api-canary")


@pytest.mark.parametrize(
    ("about", "outcome"),
    [
        ({"dry_run": True}, Outcome.FAILED),
        ({"prune": False}, Outcome.FAILED),
        ({"commit": "broken", "force": True, "actor": "ann"}, Outcome.FAILED),
        ({"commit": "0" * 40, "actor": "ann"}, Outcome.REFUSED),
    ],
)
def test_a_dry_run_a_run_without_prune_or_a_request_by_hand_withdraws_no_canary(about: dict[str, Any], outcome: Outcome) -> None:
    """The head is what is being tried; a person's mistake doesn't overtake it."""
    trial = CanaryScenario.held()
    broken = trial.broken()
    if "commit" in about:
        trial.fake.host.push(trial.new)
        about = {**about, "commit": broken if about["commit"] == "broken" else about["commit"]}
    assert trial.run("replay", **about).outcome is outcome
    assert trial.live("api-canary")
    assert trial.mark.startswith("hold 0")


@pytest.mark.parametrize("down", [False, True])
def test_a_head_that_cant_be_fetched_withdraws_no_canary(*, down: bool) -> None:
    """What it says is unknown: the next look may find it."""
    trial = CanaryScenario.held()
    trial.fake.host.lost.add(trial.broken())
    trial.fake.host.down = down
    assert trial.run("push").outcome is Outcome.FAILED
    assert trial.live("api-canary")
    assert trial.mark.startswith("hold 0")


def test_a_run_killed_before_the_canarys_deletion_leaves_it_to_the_next_run() -> None:
    trial = CanaryScenario.held()
    broken = trial.broken()

    def dies(call: Call, do: Callable[[], Reply]) -> Reply:
        if call.asked.method == "DELETE":
            raise Killed
        return do()

    trial.fake.meet = dies
    with pytest.raises(Killed):
        trial.run("push")
    trial.fake.meet = straight
    trial.fake.free_lease()
    assert trial.live("api-canary")
    result = trial.run()
    assert (result.outcome, trial.live("api-canary")) == (Outcome.FAILED, None)
    assert f"is withdrawn, for {broken[:12]} has overtaken it" in str(result.problems[-1])


def test_a_canary_whose_deletion_is_forbidden_is_reported_and_tried_again() -> None:
    trial = CanaryScenario.held()
    trial.broken()
    trial.fake.meet = refusing(lambda asked: asked.method == "DELETE", 403, CANNOT)
    result = trial.run("push")
    assert (result.outcome, result.code) == (Outcome.FAILED, "manifest-invalid")
    assert f"the canary of {trial.new[:12]} stays as it is, unwatched" in str(result.problems[-1])
    assert "anneal rollback shop" in result.problems[-1].fix
    trial.fake.meet = straight
    trial.run()
    assert trial.live("api-canary") is None


def test_of_several_canaries_each_has_a_problem() -> None:
    trial = CanaryScenario.held()
    with_another(trial, "web")
    trial.broken()
    trial.fake.meet = refusing(lambda asked: asked.method == "DELETE" and asked.path.endswith("/api-canary"), 403, CANNOT)
    told = {problem.subject: problem.message for problem in trial.run("push").problems}
    assert "stays as it is, unwatched" in told["Deployment/shop/api-canary"]
    assert "is withdrawn" in told["Deployment/shop/web-canary"]
    assert (trial.live("api-canary") is None, trial.live("web-canary")) == (False, None)


def with_another(trial: CanaryScenario, name: str) -> None:
    """Another Deployment's canary is held beside it, by a step of its own."""
    body = trial.live("api-canary") or {}
    mark = Identity("apps", "Deployment", "shop", f"{name}-canary").mark("shop")
    labels, annotations = body["metadata"]["labels"], {**body["metadata"]["annotations"], IDENTITY: mark}
    made = {**body, "metadata": {"name": f"{name}-canary", "namespace": "shop", "labels": labels, "annotations": annotations}}
    trial.fake.server.must(Asked("POST", PLACE, {"fieldManager": "anneal"}, made, "application/json", ""))

    def doubled(state: State) -> State:
        assert state.rollout
        (step,) = state.rollout.steps
        other = replace(step, step=name, object=f"Deployment/shop/{name}")
        return replace(state, rollout=replace(state.rollout, steps=(step, other)))

    trial.handler.store(trial.handler.target("shop")).update(doubled)


def test_where_the_clusters_kinds_cant_be_asked_for_the_failure_stays_the_heads_own() -> None:
    """The record knows of the canary all the same."""
    trial = CanaryScenario.held()
    trial.broken()
    trial.fake.meet = refusing(lambda asked: asked.path in ("/api", "/apis"), 403, CANNOT)
    result = trial.run("push")
    assert (result.outcome, result.code) == (Outcome.FAILED, "manifest-invalid")
    assert f"the canary of {trial.new[:12]} stays as it is, unwatched" in str(result.problems[-1])
    assert trial.live("api-canary")
