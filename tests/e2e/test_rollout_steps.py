"""The steps of a Rollout on a real cluster: every action, in their order, and through failures."""

from __future__ import annotations

import pytest

from handler.config.settings import Wait
from handler.model.result import Outcome
from tests.e2e import rollouts
from tests.e2e.canary_target import LET_GO, SEEN, Running
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, definition, deployment, offer
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import DONE, Shop, outwaited, told
from tests.e2e.rollouts import assert_carried_out, data, everything, group, opened, outcomes, planted, progress, recorded, step, written
from tests.e2e.serve_process import until


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """Here every shop has a Rollout."""
    return opened(open_shop, 15.0)


def test_every_action_is_carried_out_in_the_order_of_groups(shop: Shop, wired: Wire) -> None:
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert result.outcome is Outcome.APPLIED, told(result)
    assert_carried_out(shop, uids, "2")
    names = written(wire.seen)
    assert names[:4] == [("PATCH", "free"), ("DELETE", "old"), ("DELETE", "migration"), ("PATCH", "migration")]
    assert sorted(names[4:-1]) == [("PATCH", "fresh"), ("PATCH", "settings"), ("PATCH", "web")]
    assert names[-1] == ("PATCH", "last")


def test_a_run_that_carries_no_rollout_out_repairs_in_order_and_neither_deletes_nor_recreates(shop: Shop, wired: Wire) -> None:
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    shop.applied()
    done = progress(shop)
    migration = shop.versions()[f"ConfigMap/{shop.name}/migration"]
    stray = config_map(shop.name, "old", {"key": "another's"})
    shop.kubectl.apply(stray)
    for name in ("last", "settings", "seed"):
        shop.kubectl.run("patch", "configmap", name, "-n", shop.name, "-p", '{"data":{"key":"drifted"}}')
    wire = wired()
    result = shop.handler_at(wire.kubeconfig).run(shop.job("drift"))
    assert result.outcome is Outcome.APPLIED, told(result)
    assert written(wire.seen) == [("PATCH", "settings"), ("PATCH", "last")]
    assert data(shop, "seed") == {"key": "drifted"}
    assert data(shop, "old") == {"key": "another's"}
    assert shop.versions()[f"ConfigMap/{shop.name}/migration"] == migration
    assert progress(shop) == done
    assert uids


def test_force_carries_the_rollout_of_the_same_commit_out_again(shop: Shop) -> None:
    planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    shop.applied()
    uid = shop.versions()[f"ConfigMap/{shop.name}/migration"][0]
    shop.applied("oneoff", force=True)
    assert shop.versions()[f"ConfigMap/{shop.name}/migration"][0] != uid
    assert set(outcomes(shop).values()) == {"done"}


# --- failures
def never(*, seconds: int = 1) -> list[Document]:
    """A check of success that nothing ever meets."""
    expected = [{"name": "done", "path": "{.data.key}", "value": {"static": "another"}}]
    return [{"fieldComparisons": {"expectedValues": expected, "timeout": f"{seconds}s", "pollInterval": "1s"}}]


def test_a_failed_step_stops_the_rollout_and_isnt_tried_again_until_somebody_asks(shop: Shop) -> None:
    first, second, third = (config_map(shop.name, name) for name in ("first", "second", "third"))
    groups = [
        group("one", step("CreateOrUpdate", first), step("CreateOrUpdate", second, success=never())),
        group("two", step("CreateOrUpdate", third)),
    ]
    rollouts.push(shop, [first, second, third], *groups)
    result = shop.run()
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert "step second of group one" in result.message
    assert outcomes(shop) == {"first": "done", "second": "failed", "third": ""}
    assert progress(shop).outcome == "failed"
    assert shop.live(third) is None
    again = shop.run("tick")
    assert (again.outcome, again.code) == (Outcome.FAILED, "rollout-failed"), told(again)
    assert shop.live(third) is None
    rollouts.push(shop, [first, second, third], group("one", *(step("CreateOrUpdate", each) for each in (first, second, third))))
    assert shop.run().outcome in DONE
    assert outcomes(shop) == dict.fromkeys(("first", "second", "third"), "done")


def test_a_step_with_continue_on_error_is_shown_as_failed_and_the_rollout_is_done(shop: Shop) -> None:
    first, second = (config_map(shop.name, name) for name in ("first", "second"))
    rollouts.push(
        shop,
        [first, second],
        group("one", step("CreateOrUpdate", first, success=never(), continueOnError=True), step("CreateOrUpdate", second)),
    )
    shop.applied()
    assert outcomes(shop) == {"first": "failed", "second": "done"}
    assert progress(shop).outcome == "done"
    assert recorded(shop, "first").message


def test_a_failed_step_with_continue_on_error_isnt_waited_for_by_later_runs(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=60.0))
    stuck, after = deployment(shop.name, "stuck", replicas=1), config_map(shop.name, "after")
    stuck["spec"]["template"]["spec"]["nodeSelector"] = {"nowhere": "to-be-found"}
    rollouts.push(
        shop,
        [stuck, after],
        group("one", step("CreateOrUpdate", stuck, success=never(), continueOnError=True), step("CreateOrUpdate", after)),
    )
    assert shop.run().outcome in DONE
    assert outcomes(shop) == {"stuck": "failed", "after": "done"}
    shop.kubectl.run("patch", "configmap", "after", "-n", shop.name, "-p", '{"data":{"key":"drifted"}}')
    result = shop.run("drift")
    assert result.outcome is Outcome.APPLIED, told(result)


def test_parallel_steps_are_under_way_together_and_others_one_after_the_other(shop: Shop) -> None:
    """With `parallel` both live before either is done; the others are proven from the record."""
    maps = [config_map(shop.name, name) for name in ("a", "b", "c", "d")]
    held = [step("CreateOrUpdate", each, success=[LET_GO]) for each in maps[:2]]
    slow = [step("CreateOrUpdate", each, success=never(), continueOnError=True) for each in maps[2:]]
    rollouts.push(shop, maps, group("at once", *held, parallel=True), group("in order", *slow))
    running = Running.of(shop)
    until(lambda: all(shop.live(each) for each in maps[:2]), told=lambda: str(shop.state().rollout))
    assert [recorded(shop, name).outcome for name in "ab"] == ["", ""]
    shop.kubectl.run("label", "configmaps", "a", "b", "-n", shop.name, f"{SEEN}=yes")
    result = running.result()
    assert result.outcome is Outcome.APPLIED, told(result)
    a, b, c, d = (recorded(shop, name) for name in "abcd")
    assert max(a.started, b.started) <= min(a.finished, b.finished)
    assert max(a.finished, b.finished) <= c.started < c.finished <= d.started


def test_objects_of_a_new_kind_may_come_at_once_when_the_step_of_their_definition_is_done(shop: Shop) -> None:
    """Without dry-runs, whose tries would hide one that came too early."""
    shop.configure(validate="none")
    kind = definition(shop.group)
    offers = [offer(shop.group, shop.name, f"o{number}") for number in range(4)]
    groups = [
        group("kinds", step("CreateOrUpdate", kind)),
        group("objects", *(step("CreateOrUpdate", each) for each in offers), parallel=True),
    ]
    rollouts.push(shop, [kind, *offers], *groups)
    assert shop.run().outcome in DONE
    assert set(outcomes(shop).values()) == {"done"}
    assert all(shop.live(each) for each in offers)


def test_a_deployment_whose_target_waits_is_waited_for_by_its_step(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=60.0))
    web, after = deployment(shop.name, "web", replicas=1), config_map(shop.name, "after")
    rollouts.push(shop, [web, after], group("one", step("CreateOrUpdate", web), step("CreateOrUpdate", after)))
    shop.applied()
    live = shop.live(web)
    assert live
    assert live["status"]["readyReplicas"] == 1
    assert outcomes(shop) == {"web": "done", "after": "done"}


def test_a_step_that_never_gets_healthy_fails_by_its_patience_though_no_run_waits(shop: Shop) -> None:
    shop.configure(rollout=rollouts.ROLLOUT, wait=Wait(240.0, 3.0))
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    hangs, last = deployment(shop.name, "hangs", replicas=1), config_map(shop.name, "last")
    hangs["spec"]["template"]["spec"]["nodeSelector"] = {"there": "is-none"}
    rollouts.push(shop, [hangs, last], group("one", step("CreateOrUpdate", hangs)), group("two", step("CreateOrUpdate", last)))
    assert shop.run().outcome is Outcome.WAITING
    result = outwaited(shop)
    assert (result.outcome, result.code) == (Outcome.FAILED, "rollout-failed"), told(result)
    assert "isn't healthy, and nothing has changed for 3s" in recorded(shop, "hangs").message
    assert outcomes(shop) == {"hangs": "failed", "last": ""}
    assert shop.state().waiting is None
