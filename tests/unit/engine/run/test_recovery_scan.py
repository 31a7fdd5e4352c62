"""A deleted record: what lives is found by its label, and no rollout is carried out over what it had carried out before."""

from __future__ import annotations

import json
import time
from unittest.mock import Mock

import pytest

from handler.engine.run.recovery_scan import FoundMembers
from handler.model.errors import ClusterUnavailable
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.state.record_format import seconds_of
from tests.fakes.apiserver.connection import straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, state_of
from tests.unit.engine.in_memory_cluster import DONE, GROUPS, NAMES, InMemoryCluster, config_map, planted, wanted
from tests.unit.engine.killed_runs import Death, Killed, killed

pytestmark = pytest.mark.slow

HOOK = {"argocd.argoproj.io/hook": "PreSync", "argocd.argoproj.io/hook-delete-policy": "BeforeHookCreation"}


def lose(fake: InMemoryCluster) -> None:
    fake.server.answer(Asked("DELETE", "/api/v1/namespaces/anneal-system/configmaps/anneal-shop", {}, {}, "", ""))


def planned(shown: Result) -> list[str]:
    assert shown.plan, shown
    return [change.identity.name for change in shown.plan.writes]


@pytest.fixture
def rolled() -> InMemoryCluster:
    """A cluster whose rollout is done; what its step has deleted was put back by its hand, and its record is gone."""
    fake = planted()
    fake.push(wanted(), *GROUPS)
    kept = fake.live("old")
    assert kept
    assert fake.run().outcome is Outcome.APPLIED
    del kept["metadata"]["uid"], kept["metadata"]["resourceVersion"]
    fake.server.answer(Asked("POST", "/api/v1/namespaces/shop/configmaps", {}, kept, "", ""))
    fake.written.clear()
    fake.deleted.clear()
    lose(fake)
    return fake


def test_a_recovery_writes_what_differs_and_deletes_nothing(rolled: InMemoryCluster) -> None:
    uid = rolled.uid("anew")
    rolled.push(wanted("3"), *GROUPS)
    found = rolled.run("tick", prune=False)
    assert found.outcome in DONE, found
    assert rolled.data(*NAMES) == ["3", "1", "3", "1", "3", "1", "3"]
    assert (rolled.uid("anew"), dict(rolled.deleted)) == (uid, {})
    state = state_of(rolled.handler())
    assert (state.rollout, state.attempt) == (None, None)
    assert "its hooks and steps are not carried out, for the state was missing: anneal apply shop" in state.history[0].message
    assert state.history[0].message == found.message


def test_after_a_recovery_the_next_run_prunes_what_a_step_deletes(rolled: InMemoryCluster) -> None:
    uid = rolled.uid("anew")
    first = rolled.run("tick")
    assert first.outcome in DONE
    kept = "1 object that git doesn't declare is kept, for the state was missing: anneal plan shop shows after this run what the next one"
    assert kept in first.message
    assert (rolled.data("old"), rolled.written) == (["1"], [])
    assert planned(rolled.run(dry_run=True)) == ["old"], "the next run's plan shows it"
    assert rolled.run("tick").outcome in DONE
    assert (rolled.uid("anew"), rolled.data("old"), rolled.written) == (uid, [None], ["DELETE old"])
    rolled.push(wanted("3"), *GROUPS)
    assert rolled.run().outcome is Outcome.APPLIED
    assert rolled.uid("anew") != uid
    assert set(rolled.outcomes().values()) == {"done"}


def test_force_is_honoured_by_the_run_after_a_recovery(rolled: InMemoryCluster) -> None:
    """Neither's plan hides anything: what the first shows as kept stays, and what it leaves out isn't begun."""
    uid = rolled.uid("anew")
    shown = rolled.run("oneoff", force=True, dry_run=True)
    first = rolled.run("oneoff", force=True)
    assert (planned(shown), list(first.written), dict(rolled.deleted)) == ([], [], {})
    assert (rolled.uid("anew"), rolled.data("old")) == (uid, ["1"])
    assert "its hooks and steps are not carried out" in first.message
    shown = rolled.run("oneoff", force=True, dry_run=True)
    assert shown.plan
    assert [due.step for due in shown.plan.due][:2] == ["old", "anew"]
    result = rolled.run("oneoff", force=True)
    assert result.outcome is Outcome.APPLIED, result
    assert (rolled.uid("anew") == uid, rolled.data("old")) == (False, [None])
    assert len(rolled.deleted) == 2
    assert "not carried out" not in result.message


def test_the_run_after_a_recovery_comes_soon_whatever_git_does(rolled: InMemoryCluster) -> None:
    """Its moment is in the result, for the process that waits, and in the record, for functions and the next process."""
    before = time.time()
    found = rolled.run("tick")
    due = state_of(rolled.handler()).drift_due
    assert due
    assert before < found.next_try <= time.time() + 60
    assert abs(seconds_of(due) - found.next_try) <= 1


def test_a_recovery_without_prune_does_not_say_that_the_next_run_prunes(rolled: InMemoryCluster) -> None:
    found = rolled.run("oneoff", prune=False)
    assert found.plan
    assert [change.reason for change in found.plan.prunes] == ["prune is off"]
    assert "doesn't declare" not in found.message


def test_a_killed_recovery_stays_a_recovery(rolled: InMemoryCluster) -> None:
    rolled.push(wanted("3"), *GROUPS)
    death = rolled.meet = Death(6, done=True)
    with pytest.raises(Killed):
        rolled.run()
    assert death.dead
    rolled.meet = straight
    rolled.free_lease()
    assert state_of(rolled.handler()).attempt, "the kill comes after the attempt has opened"
    uid = rolled.uid("anew")
    rolled.push(wanted("4"), *GROUPS)
    assert rolled.run("tick", prune=False).outcome in DONE
    assert (rolled.uid("anew"), dict(rolled.deleted)) == (uid, {})
    assert rolled.data("anew", "last") == ["4", "4"]


def test_a_hook_of_a_recovery_deletes_nothing() -> None:
    fake = InMemoryCluster()
    body = config_map("migrate", "1")
    body["metadata"]["annotations"] = HOOK
    fake.host.push(fake.host.commit({"shop/web.yaml": json.dumps(config_map("web", "1")), "shop/migrate.yaml": json.dumps(body)}))
    assert fake.handler(ONE).run(Job("shop", "push")).outcome in DONE
    uid = fake.uid("migrate")
    lose(fake)
    assert fake.handler(ONE).run(Job("shop", "tick")).outcome in DONE
    assert fake.handler(ONE).run(Job("shop", "drift")).outcome in DONE
    assert state_of(fake.handler(ONE)).rollout is None
    assert (fake.uid("migrate"), dict(fake.deleted)) == (uid, {})


def test_a_first_rollout_that_was_killed_anywhere_is_no_recovery() -> None:
    kills = 0
    for number in range(1, 200):
        fake = InMemoryCluster()
        fake.push(wanted(), *GROUPS)
        if not killed(fake, number, done=True):
            break
        kills += 1
        result = fake.run("tick")
        assert result.outcome in DONE, (number, result)
        assert set(fake.outcomes().values()) == {"done"}, number
    assert kills > len(fake.written) > 5  # each object's write and the records between, of which some share a write


def test_what_cant_be_looked_at_isnt_counted_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    handler, away = planted().handler(), ClusterUnavailable.of("list Pod", "no answer")
    for found, count in ((away, None), (FoundMembers(denied=True), None), (FoundMembers(count=2, denied=True), 2), (FoundMembers(), 0)):
        monkeypatch.setattr("handler.engine.run.recovery_scan.scan", Mock(side_effect=[found]))
        assert handler.members(handler.settings.targets[0]) == count
