"""Jobs that remove themselves: each runs once for each of its declarations, however many runs ask for it."""

from __future__ import annotations

from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from handler.state.record import Ran
from tests.e2e.documents import Document, config_map, job
from tests.e2e.one_target import DONE, Shop, told
from tests.patience import until


def brief(shop: Shop, image: str = "migrate:1") -> Document:
    made = job(shop.name, "brief", image)
    made["spec"]["ttlSecondsAfterFinished"] = 0
    return made


def ran(shop: Shop) -> int:
    """Return how many Jobs of the name have made their pods, as the events tell."""
    chosen = "--field-selector=involvedObject.kind=Job,reason=SuccessfulCreate,involvedObject.name=brief"
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


def test_a_hook_job_with_ttl_runs_with_its_rollout_alone(shop: Shop) -> None:
    made = brief(shop)
    made["metadata"]["annotations"] = {ARGO_HOOK: "Sync"}
    shop.push(made, config_map(shop.name, "a"))
    shop.applied()
    gone(shop, brief(shop))
    for trigger in ("tick", "drift", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert ran(shop) == 1
