"""Jobs that remove themselves: each runs once for each of its declarations, however many runs ask for it."""

from __future__ import annotations

from handler.config.settings import Wait
from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from handler.state.record import Ran
from infra.controlplane.pod_failures import FATE
from tests.e2e.documents import Document, config_map, deployment, job
from tests.e2e.one_target import DONE, Shop, outwaited, told
from tests.patience import until

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


def gone(shop: Shop, document: Document) -> None:
    """Wait until a Job has removed itself."""
    until(lambda: not shop.live(document))


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


def test_a_hook_job_with_ttl_runs_with_its_rollout_alone(shop: Shop) -> None:
    made = brief(shop)
    made["metadata"]["annotations"] = {ARGO_HOOK: "Sync"}
    shop.push(made, config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    for trigger in ("tick", "drift", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert ran(shop) == 1
