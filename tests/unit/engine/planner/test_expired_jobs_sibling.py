"""A Job that removed itself and moves to a sibling target is done: it ran once, whichever record says so."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.model.errors import ClusterUnavailable
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.plan import Action
from handler.model.result import Outcome
from handler.state.record import Ran
from handler.state.store import StateStore, StoredState
from tests.fakes.apiserver.connection import Call
from tests.fakes.apiserver.kinds import WORKLOADS
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, state_of
from tests.unit.engine.killed_runs import Killed
from tests.unit.engine.two_targets import Bench, change_of, document

pytestmark = pytest.mark.slow

MIGRATION = Identity("batch", "Job", "shop", "migration")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/anneal-system/leases"
PATH = "/apis/batch/v1/namespaces/shop/jobs/migration"


def migration(image: str = "migrate:1") -> dict[str, str]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": image}]}}
    metadata = {"name": "migration", "namespace": "shop"}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"ttlSecondsAfterFinished": 0, "template": template}}
    return {"migration": json.dumps(body)}


def finished(bench: Bench) -> None:
    """Let it have finished and removed itself."""
    bench.server.must(Asked("DELETE", PATH, {}, {}, "", ""))
    assert bench.live(MIGRATION) is None


def ran(bench: Bench, name: str) -> tuple[Ran, ...]:
    return state_of(bench.handler, name).ran


@pytest.fixture
def bench() -> Bench:
    made = Bench(server=cluster(served=WORKLOADS))
    made.push()
    made.applied("a", "b")
    return made


@pytest.fixture
def done(bench: Bench) -> Bench:
    """It ran under a."""
    bench.push(a=migration())
    bench.applied("a", "b")
    finished(bench)
    bench.applied("a", trigger="drift")
    assert bench.live(MIGRATION) is None
    return bench


def moved(bench: Bench, *order: str) -> None:
    bench.push(b=migration())
    bench.applied(*order)


@pytest.mark.parametrize("order", ["ab", "ba", "aab", "bba"])
def test_a_ttl_job_handed_over_doesnt_run_again_whichever_target_runs_first(done: Bench, order: str) -> None:
    moved(done, *order)
    assert done.live(MIGRATION) is None
    assert [each.identity for each in ran(done, "b")] == [MIGRATION]
    done.later("a").run(Job("a", "tick"))
    assert ran(done, "a") == (), "it is the taker's to know from now on"
    for trigger in ("drift", "oneoff"):
        done.applied("b", trigger=trigger)
    assert done.live(MIGRATION) is None
    done.push(b=migration("migrate:2"))
    done.applied("b")
    assert done.live(MIGRATION), "another declaration runs"


def test_the_plan_says_under_which_target_it_ran(done: Bench) -> None:
    done.push(b=migration())
    change = change_of(done.run("b", dry_run=True), MIGRATION)
    assert (change.action, "applied by target a" in change.reason) == (Action.UNCHANGED, True)


def test_a_ttl_job_that_changes_in_its_hand_over_runs(done: Bench) -> None:
    done.push(b=migration("migrate:2"))
    done.applied("a", "b")
    assert done.live(MIGRATION)
    finished(done)
    done.later("a").run(Job("a", "tick"))
    assert ran(done, "a") == ()


def test_a_ttl_job_handed_back_doesnt_run_again(done: Bench) -> None:
    for order in ("ab", "a"):
        moved(done, *order)
        done.push(a=migration())
        done.applied("a", "b")
        assert (done.live(MIGRATION), len(ran(done, "a"))) == (None, 1)


def test_the_takers_own_record_prevails(done: Bench) -> None:
    """Once it has run otherwise under b, what a's record still says of earlier is past: a way back runs it, as with one target."""
    moved(done, "a", "b")
    done.push(b=migration("migrate:2"))
    done.applied("b")
    finished(done)
    assert [each.identity for each in ran(done, "a")] == [MIGRATION], "it hasn't looked since"
    moved(done, "b")
    assert done.live(MIGRATION)


def test_a_ttl_job_dropped_and_declared_elsewhere_later_runs(done: Bench) -> None:
    done.push()
    done.applied("a", "b")
    assert ran(done, "a") == (), "no sibling declares it"
    moved(done, "b")
    assert done.live(MIGRATION)


def test_the_note_of_a_ttl_job_for_a_sibling_goes_when_that_drops_the_job(done: Bench) -> None:
    moved(done, "a")
    assert [each.identity for each in ran(done, "a")] == [MIGRATION]
    done.push()
    done.applied("b")
    assert done.later("a").run(Job("a", "tick")).outcome is Outcome.UNCHANGED
    assert ran(done, "a") == ()


def test_a_ttl_job_of_an_unrecorded_attempt_is_handed_over_too(bench: Bench) -> None:
    bench.push(a=migration())
    bench.applied("a")
    finished(bench)
    store = bench.handler.store(bench.targets[0])
    stored = store.read()
    assert stored.state
    left = replace(stored.state, commit="", reads="", ran=tuple(replace(each, open=True) for each in stored.state.ran))
    store.swap(stored, left, None)
    bench.push(a={"y": document("y")}, b=migration())
    bench.applied("a", "b")
    assert bench.live(MIGRATION) is None


def test_a_live_ttl_job_is_taken_over_and_one_that_ends_meanwhile_isnt_created(bench: Bench) -> None:
    bench.push(a=migration())
    bench.applied("a", "b")
    bench.push(b=migration())
    assert change_of(bench.run("b", dry_run=True), MIGRATION).reason == "taken over from a"

    def ends(call: Call) -> None:
        if call.asked.method == "PATCH" and call.asked.path == PATH and "dryRun" not in call.asked.query and bench.live(MIGRATION):
            finished(bench)

    bench.before = ends
    bench.applied("b")
    bench.before = lambda call: None
    assert bench.live(MIGRATION) is None
    assert [each.identity for each in ran(bench, "b")] == [MIGRATION]


def test_one_that_a_late_run_of_the_giver_applies_after_the_plan_is_not_created(bench: Bench) -> None:
    """The taker's attempt opens by a plan that creates it; a run of the giver, which resolved the head before, comes to it first."""
    before = bench.push(a=migration())
    newer = bench.push(b=migration())
    late = [True]

    def comes(call: Call) -> None:
        if late and call.writes and call.asked.path.endswith("/configmaps/anneal-b"):
            late.clear()
            bench.host.push(before)
            bench.applied("a")
            finished(bench)
            bench.host.push(newer)

    bench.before = comes
    bench.applied("b")
    assert (late, bench.live(MIGRATION)) == ([], None)
    assert [each.identity for each in ran(bench, "b")] == [MIGRATION]


def failing(monkeypatch: pytest.MonkeyPatch, name: str) -> Callable[[], None]:
    """Let the record of a target be unreadable, until what is returned is called."""
    read, mends = StateStore.read, list[bool]()

    def refused(self: StateStore) -> StoredState:
        if name in self._subject and not mends:
            raise ClusterUnavailable.of(self._subject, "answered 503")
        return read(self)

    monkeypatch.setattr(StateStore, "read", refused)
    return lambda: mends.append(True)


def test_while_a_siblings_record_cannot_be_read_it_waits(done: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    done.push(b={**migration(), "y": document("y")})
    mend = failing(monkeypatch, "anneal-a")
    held = done.run("b")
    assert (held.outcome, held.code, held.who) == (Outcome.FAILED, "transient", "nobody")
    assert str(held.problems[0]) == (
        "b/migration.json:1: Job/shop/migration: isn't created yet: target a may have run it, and its record can't be read"
    )
    assert "answered 503" in str(held.problems[1])
    assert held.next_try
    assert done.live(MIGRATION) is None
    mend()
    done.applied("b", trigger="tick")
    assert done.live(MIGRATION) is None


def test_the_record_is_kept_while_a_siblings_cannot_be_read(done: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, "anneal-b")
    moved(done, "a")
    assert [each.identity for each in ran(done, "a")] == [MIGRATION]


def test_siblings_are_asked_by_their_records_alone_and_only_where_one_is_absent(bench: Bench) -> None:
    states = f"/api/v1/namespaces/{bench.handler.settings.state_namespace}/configmaps"
    bench.push(a=migration())
    bench.sent.clear()
    bench.applied("a")
    assert [path for _, path in bench.sent].count(f"{states}/anneal-b") == 2, "once for the plan, once before the create"
    finished(bench)
    bench.push(a={**migration(), "y": document("y")})
    bench.sent.clear()
    bench.applied("a")
    bench.applied("a", trigger="drift")
    assert f"{states}/anneal-b" not in [path for _, path in bench.sent], "its own record knows of it"


def killed(bench: Bench, name: str, number: int) -> bool:
    """Run a target, and die at its write with this number; False: the run had ended before."""
    writes = 0

    def die(call: Call) -> None:
        nonlocal writes
        writes += call.writes
        if writes >= number:
            raise Killed

    bench.before = die
    with contextlib.suppress(Killed):
        bench.run(name, "tick")
    bench.before = lambda call: None
    bench.server.answer(Asked("DELETE", f"{LEASES}/anneal-{name}", {}, {}, "", ""))
    bench.configure()
    return writes >= number


@pytest.mark.parametrize("first", ["giver", "taker"])
def test_a_hand_over_killed_at_any_write_doesnt_run_it_again(done: Bench, first: str) -> None:
    giver, taker, number, dies = "a", "b", 0, True
    while dies:
        number += 1
        done.push(**{taker: {**migration(), "move": document("move", str(number))}})
        begins, follows = (giver, taker) if first == "giver" else (taker, giver)
        dies = killed(done, begins, number)
        for name in (begins, follows, begins):
            done.applied(name, trigger="tick")
        assert sum(write.identity == MIGRATION and write.before is None for write in done.server.store.log) == 1
        assert [each.identity for each in ran(done, taker)] == [MIGRATION]
        giver, taker = taker, giver
    assert number > 1
