"""The steps of a Rollout on a real cluster: every action, in their order, through failures, kills, takeovers and pauses."""

from __future__ import annotations

import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from handler.config.settings import Wait
from handler.model.result import Outcome
from handler.state.record import Suspend
from tests.e2e import rollouts
from tests.e2e.child import Child
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, deployment, job
from tests.e2e.killing import Wire, kill_after
from tests.e2e.rollouts import group, outcomes, progress, recorded, step
from tests.e2e.shop import DONE, MORTAL, Shop, told
from tests.e2e.wire import is_object_write, is_write
from tests.rooms.cluster.wire import Handler

AT_ONCE = 4


def opened(open_shop: Open, lease: float = MORTAL) -> Shop:
    shop = open_shop(lease=lease, rollout=rollouts.ROLLOUT)
    shop.create_namespace()
    return shop


@pytest.fixture
def shop(open_shop: Open) -> Shop:
    """Here every shop has a Rollout."""
    return opened(open_shop, 15.0)


def written(wire: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return what was written of the shop's objects, as (method, name)."""
    return [(method, path.partition("?")[0].rpartition("/")[2]) for method, path in wire if is_object_write(method, path)]


# --- every action
def before(shop: Shop) -> list[Document]:
    """What lives before the rollout that has every action, one of them changed by somebody since."""
    return [config_map(shop.name, name) for name in ("free", "settings", "seed", "migration", "old", "last")]


def everything(shop: Shop, version: str) -> tuple[list[Document], list[Document]]:
    """The documents and groups of a rollout that has every plain action, in order and at once."""
    free, settings, seed, migration, old, last = (
        config_map(shop.name, each["metadata"]["name"], {"key": version}) for each in before(shop)
    )
    fresh, web = config_map(shop.name, "fresh", {"key": version}), deployment(shop.name, "web", f"shop:{version}")
    groups = [
        group("prepare", step("DeleteIfExist", old), step("Recreate", migration)),
        group(
            "roll out",
            step("CreateOrUpdate", settings),
            step("CreateIfNotExist", seed),
            step("CreateIfNotExist", fresh),
            step("CreateOrUpdate", web, success=[{"healthy": {}}]),
            parallel=True,
        ),
        group("finish", step("CreateOrUpdate", last)),
    ]
    return [free, settings, seed, migration, old, last, fresh, web], groups


def data(shop: Shop, name: str) -> dict[str, str] | None:
    live = shop.live(config_map(shop.name, name))
    return live["data"] if live else None


def planted(shop: Shop) -> dict[str, str]:
    """Apply what is there before, without a Rollout; return the uids."""
    shop.configure(rollout="")
    shop.push(*before(shop))
    shop.applied()
    shop.configure(rollout=rollouts.ROLLOUT)
    return {name: uid for name, (uid, _) in shop.versions().items()}


def assert_carried_out(shop: Shop, uids: dict[str, str], version: str) -> None:
    """Live is what every action makes of it, and the record says that each step is done."""
    wanted = dict.fromkeys(("free", "settings", "migration", "last"), version)
    assert {name: data(shop, name) for name in wanted} == {name: {"key": each} for name, each in wanted.items()}
    assert data(shop, "seed") == {"key": "1"}, "CreateIfNotExist leaves what is there alone"
    assert data(shop, "fresh") is not None
    assert data(shop, "old") is None
    now = {name: uid for name, (uid, _) in shop.versions().items()}
    kept = [f"ConfigMap/{shop.name}/{name}" for name in ("free", "settings", "seed", "last")]
    assert [now[name] for name in kept] == [uids[name] for name in kept], "nothing but what is recreated was deleted"
    assert now[f"ConfigMap/{shop.name}/migration"] != uids[f"ConfigMap/{shop.name}/migration"]
    assert set(outcomes(shop).values()) == {"done"}
    assert (progress(shop).outcome, shop.state().attempt, shop.state().commit) == ("done", None, shop.head)


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


def test_the_same_commit_asked_for_again_by_a_person_is_carried_out_again(shop: Shop) -> None:
    planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    shop.applied()
    uid = shop.versions()[f"ConfigMap/{shop.name}/migration"][0]
    shop.applied("oneoff", force=True)
    assert shop.versions()[f"ConfigMap/{shop.name}/migration"][0] != uid
    assert set(outcomes(shop).values()) == {"done"}


# --- failures
def failing(shop: Shop) -> Document:
    """A Job whose failure is sure: its step asks of it what never comes."""
    return job(shop.name, "broken", suspend=None)


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


def test_a_step_that_may_fail_is_shown_as_failed_and_the_rollout_is_done(shop: Shop) -> None:
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


def test_parallel_steps_are_under_way_together_and_others_one_after_the_other(shop: Shop) -> None:
    """Proven from the record: with `parallel` the second has begun before the first one's time is over."""
    maps = [config_map(shop.name, name) for name in ("a", "b", "c", "d")]
    slow = [step("CreateOrUpdate", each, success=never(seconds=2), continueOnError=True) for each in maps]
    rollouts.push(shop, maps, group("at once", *slow[:2], parallel=True), group("in order", *slow[2:]))
    shop.applied()
    a, b, c, d = (recorded(shop, name) for name in "abcd")
    assert max(a.started, b.started) < min(a.finished, b.finished)
    assert max(a.finished, b.finished) <= c.started < c.finished <= d.started


def test_a_deployment_whose_target_waits_is_waited_for_by_its_step(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=60.0))
    web, after = deployment(shop.name, "web", replicas=1), config_map(shop.name, "after")
    rollouts.push(shop, [web, after], group("one", step("CreateOrUpdate", web), step("CreateOrUpdate", after)))
    shop.applied()
    live = shop.live(web)
    assert live
    assert live["status"]["readyReplicas"] == 1
    assert outcomes(shop) == {"web": "done", "after": "done"}


# --- kills
def deletions(seen: list[tuple[str, str]]) -> dict[str, int]:
    """Count what was deleted, by name."""
    names = [name for method, name in written(seen) if method == "DELETE"]
    return {name: names.count(name) for name in names}


def crashed(shop: Shop, wired: Wire, number: int, version: str) -> bool:
    """Kill a rollout of every action after its write with this number, let the next run go on, and look at what came of both."""
    uids = planted(shop)
    documents, groups = everything(shop, version)
    rollouts.push(shop, documents, *groups)
    wire = wired()
    killed = kill_after(shop, lambda: wire, number, is_write)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, version)
    assert deletions(wire.seen) == {"old": 1, "migration": 1}, f"killed after write {number}"
    return killed


@pytest.mark.slow
def test_a_rollout_killed_in_any_step_is_gone_on_with_at_that_step(open_shop: Open, wired: Wire) -> None:
    """After every third write: each step has three at least, its begin, its act and its end. (In memory it's killed at every request.)"""
    model = opened(open_shop)
    planted(model)
    documents, groups = everything(model, "2")
    rollouts.push(model, documents, *groups)
    wire = wired()
    result = model.child(wire.kubeconfig).begin(model.job()).result()
    assert result
    assert result.outcome is Outcome.APPLIED, told(result)
    total = sum(is_write(*request) for request in wire.seen)
    assert total > 20

    numbers = range(2, total, 3)

    def crash(worker: int) -> int:
        shop = opened(open_shop)
        return sum(crashed(shop, wired, number, str(number + 2)) for number in numbers[worker::AT_ONCE])

    with ThreadPoolExecutor(AT_ONCE) as pool:
        assert sum(pool.map(crash, range(AT_ONCE))) >= len(numbers) - 1


# --- others
def test_a_worker_that_was_away_too_long_stops_in_the_middle_and_its_successor_goes_on_with_the_step(open_shop: Open, wired: Wire) -> None:
    shop = opened(open_shop)
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()
    child: Child = shop.child(wire.kubeconfig)
    reached, go_on = threading.Event(), threading.Event()

    def hold(_: Handler) -> bool:
        child.signal(signal.SIGSTOP)
        reached.set()
        assert go_on.wait(60)
        return True

    wire.meet(1, hold, lambda method, path: method == "DELETE" and "/configmaps/migration" in path)
    child.begin(shop.job())
    assert reached.wait(60)
    result = shop.run("tick")
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, "2")
    before = shop.versions()
    go_on.set()
    child.signal(signal.SIGCONT)
    ended = child.result()
    assert ended
    assert ended.outcome is Outcome.BUSY, told(ended)
    assert shop.versions() == before


def test_a_pause_in_the_middle_ends_the_run_and_the_rollout_goes_on_after_it(shop: Shop, wired: Wire) -> None:
    uids = planted(shop)
    documents, groups = everything(shop, "2")
    rollouts.push(shop, documents, *groups)
    wire = wired()

    def suspend(suspended: Suspend | None) -> None:
        shop.handler.store(shop.target).update(lambda state: replace(state, suspend=suspended))

    def pause(_: Handler) -> bool:
        suspend(Suspend(by="ann", reason="release freeze"))
        return True

    wire.meet(1, pause, lambda method, path: method == "DELETE" and "/configmaps/old" in path)
    result = shop.handler_at(wire.kubeconfig).run(shop.job())
    assert (result.outcome, result.code) == (Outcome.SUSPENDED, "suspended"), told(result)
    left = outcomes(shop)
    assert left["old"] == "done"
    assert left["last"] == ""
    suspend(None)
    result = shop.handler_at(wire.kubeconfig).run(shop.job("tick"))
    assert result.outcome in DONE, told(result)
    assert_carried_out(shop, uids, "2")
    assert deletions(wire.seen) == {"old": 1, "migration": 1}
