"""Jobs that remove themselves: each runs once for each of its declarations, however many runs ask for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.config.settings import Wait
from handler.model.names import state_name
from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from handler.state.record import Ran
from infra.controlplane.pod_failures import FATE
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import Document, config_map, deployment, job
from tests.e2e.killed_runs import killed_moves
from tests.e2e.one_target import DONE, STATES, Shop, outwaited, told
from tests.e2e.rollouts import ROLLOUT, group, push, step
from tests.e2e.serve_process import until
from tests.e2e.two_targets import Pair
from tests.unit.state.samples import as_format_1

PATIENT = Wait(120.0, 120.0)


def brief(shop: Shop, name: str = "brief", image: str = "migrate:1", ttl: int = 0) -> Document:
    made = job(shop.name, name, image)
    made["spec"]["ttlSecondsAfterFinished"] = ttl
    return made


def ran(shop: Shop, name: str = "brief") -> int:
    """Return how many Jobs of a name have made their pods, as the events tell."""
    chosen = f"--field-selector=involvedObject.kind=Job,reason=SuccessfulCreate,involvedObject.name={name}"
    events = shop.kubectl("get", "events", "-n", shop.name, chosen)["items"]
    return len({event["involvedObject"]["uid"] for event in events})


def carried_out(shop: Shop, action: str, *documents: Document) -> None:
    """Push documents with a Rollout over the first of them, and apply that."""
    push(shop, [*documents], group("main", step(action, documents[0])))
    shop.applied()


def gone(shop: Shop, *documents: Document) -> None:
    """Wait until Jobs have removed themselves."""
    until(lambda: not any(shop.live(document) for document in documents))


def assert_done(shop: Shop, runs: int = 1) -> None:
    """Whatever is asked, nothing runs again, and the record knows the same."""
    record = remembered(shop)
    for fields in ({"trigger": "tick"}, {"trigger": "drift"}, {"trigger": "drift"}, {"trigger": "oneoff", "dry_run": True, "force": True}):
        result = shop.run(**fields)
        assert result.outcome in (Outcome.UNCHANGED, Outcome.PLANNED), told(result)
        assert not (result.plan and result.plan.writes)
    shop.configure()
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert remembered(shop) == record
    assert shop.run("oneoff", force=True).outcome in DONE
    assert ran(shop) == runs


def remembered(shop: Shop) -> tuple[str, tuple[Ran, ...]]:
    """What the record says of Jobs; when live is looked at again, which it says, too, comes and goes with time."""
    state = shop.handler.store(shop.target).read().state
    assert state
    return state.commit, state.ran


def test_a_job_removed_by_its_ttl_is_done_until_its_declaration_changes(shop: Shop) -> None:
    shop.push(brief(shop), config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    assert_done(shop)
    older = shop.push(brief(shop), config_map(shop.name, "a", {"key": "2"}))
    shop.applied()
    assert_done(shop)
    shop.push(brief(shop, image="migrate:2"), config_map(shop.name, "a", {"key": "2"}))
    shop.applied()
    gone(shop, brief(shop))
    assert_done(shop, runs=2)
    assert shop.run("replay", commit=older).outcome is Outcome.APPLIED
    gone(shop, brief(shop))
    assert ran(shop) == 3, "what another commit declares differs from what was recorded"
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert ran(shop) == 3
    assert shop.run("replay", unpin=True).outcome in DONE
    gone(shop, brief(shop))
    shop.push(config_map(shop.name, "a", {"key": "2"}))
    plan = shop.run().plan
    assert plan is None or not plan.writes
    assert shop.state().ran == ()
    assert ran(shop) == 4


def test_a_job_under_another_name_runs_and_after_a_lost_record_all_run_again(shop: Shop) -> None:
    shop.push(brief(shop), config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    shop.push(brief(shop, "other"), config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop, "other"))
    assert (ran(shop), ran(shop, "other")) == (1, 1)
    shop.kubectl.run("delete", "configmap", f"anneal-{shop.name}", "-n", STATES)
    shop.configure()
    assert shop.run("tick").outcome in DONE
    gone(shop, brief(shop, "other"))
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert (ran(shop), ran(shop, "other")) == (1, 2)


@pytest.mark.parametrize("first", ["drift", "tick", "oneoff"])
def test_the_first_run_after_an_upgrade_takes_what_the_record_of_the_version_before_declares_for_done(shop: Shop, first: str) -> None:
    shop.push(brief(shop), config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    record = as_format_1(shop.kubectl("get", "configmap", state_name(shop.name), "-n", STATES))
    assert not {"commit", "ran.json"} & record["data"].keys()
    shop.kubectl.run("replace", "-f", "-", given=json.dumps(record))
    shop.configure()
    assert shop.run(first, force=first == "oneoff").outcome in DONE
    for trigger in ("drift", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert ran(shop) == 1
    assert [bool(each.declared) for each in shop.state().ran] == [True]
    assert_done(shop)


def test_drift_report_omits_a_job_removed_by_its_ttl(shop: Shop) -> None:
    shop.configure(drift="report")
    shop.push(brief(shop), config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    assert_done(shop)


def test_a_wait_over_several_runs_runs_a_ttl_job_once(shop: Shop) -> None:
    """As functions wait: each run ends at once, and the next one finds the Job gone and the commit not recorded."""
    slow = deployment(shop.name, "slow", replicas=1)
    slow["spec"]["template"]["metadata"]["annotations"] = {FATE: "never-ready"}
    shop.configure(wait=PATIENT)
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    shop.push(brief(shop), slow)
    assert shop.run().outcome is Outcome.WAITING
    gone(shop, brief(shop))
    assert [shop.run("tick").outcome for _ in range(2)] == [Outcome.WAITING] * 2
    assert ran(shop) == 1
    shop.push(brief(shop), deployment(shop.name, "slow", replicas=0))
    shop.run()
    assert outwaited(shop).outcome in DONE
    assert_done(shop)


def test_a_failed_rollout_runs_only_its_own_failed_job_again(shop: Shop) -> None:
    broken = deployment(shop.name, "broken", replicas=1)
    broken["spec"] |= {"progressDeadlineSeconds": 1}
    broken["spec"]["template"]["metadata"]["annotations"] = {FATE: "crash-loop"}
    shop.configure(wait=PATIENT)
    shop.push(brief(shop), broken)
    assert shop.run().code == "rollout-failed"
    gone(shop, brief(shop))
    assert shop.run("tick").code == "rollout-failed"
    assert ran(shop) == 1
    failing = brief(shop, "failing", ttl=8)
    failing["spec"] |= {"backoffLimit": 0}
    failing["spec"]["template"]["metadata"]["annotations"] = {FATE: "failed"}
    shop.push(brief(shop), failing)
    assert shop.run().code == "rollout-failed"
    gone(shop, failing)
    assert shop.run("tick").code == "rollout-failed", "it isn't taken for done"
    assert (ran(shop), ran(shop, "failing")) == (1, 2)


@pytest.mark.parametrize("action", ["CreateOrUpdate", "CreateIfNotExist"])
def test_a_step_runs_a_ttl_job_once_for_each_declaration(shop: Shop, action: str) -> None:
    shop.configure(rollout=ROLLOUT)
    carried_out(shop, action, brief(shop), config_map(shop.name, "a"))
    gone(shop, brief(shop))
    assert_done(shop)
    carried_out(shop, action, brief(shop), config_map(shop.name, "a", {"key": "2"}))
    assert_done(shop)
    carried_out(shop, action, brief(shop, image="migrate:2"), config_map(shop.name, "a", {"key": "2"}))
    gone(shop, brief(shop))
    assert ran(shop) == 2


def test_a_recreate_step_runs_a_ttl_job_once_a_rollout(shop: Shop) -> None:
    shop.configure(rollout=ROLLOUT)
    carried_out(shop, "Recreate", brief(shop), config_map(shop.name, "a"))
    gone(shop, brief(shop))
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert ran(shop) == 1
    carried_out(shop, "Recreate", brief(shop), config_map(shop.name, "a", {"key": "2"}))
    gone(shop, brief(shop))
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert ran(shop) == 2


def test_a_hook_job_with_ttl_runs_with_its_rollout_alone(shop: Shop) -> None:
    made = brief(shop)
    made["metadata"]["annotations"] = {ARGO_HOOK: "Sync"}
    shop.push(made, config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    for trigger in ("tick", "drift", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert ran(shop) == 1


# --- moved to a sibling
def done_in(pair: Pair) -> tuple[Document, Shop]:
    """Let one run under a; return it, and what asks of the namespace."""
    space = replace(pair.a, name=pair.space)
    made = brief(space)
    pair.push(a=(made,))
    pair.applied(pair.a, pair.b)
    gone(space, made)
    return made, space


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_ttl_job_handed_over_to_a_sibling_is_done_whichever_runs_first(pair: Pair, first: str) -> None:
    made, space = done_in(pair)
    pair.push(b=(made,))
    pair.applied(*((pair.a, pair.b) if first == "a" else (pair.b, pair.a)))
    for shop in (pair.a, pair.b, pair.a):
        assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert ([bool(shop.state().ran) for shop in (pair.a, pair.b)], ran(space)) == ([False, True], 1)
    pair.push(b=(brief(space, image="migrate:2"),))
    pair.applied(pair.a, pair.b)
    gone(space, made)
    assert ran(space) == 2


@pytest.mark.slow
@pytest.mark.parametrize("first", ["giver", "taker"])
def test_a_hand_over_killed_after_any_write_doesnt_run_the_ttl_job_again(pair: Pair, wired: Callable[[], Wired], first: str) -> None:
    made, space = done_in(pair)
    for number, taker in killed_moves(pair, wired, first, lambda number: (made, config_map(pair.space, "move", {"number": str(number)}))):
        assert (ran(space), [each.identity.name for each in taker.state().ran]) == (1, ["brief"]), number
