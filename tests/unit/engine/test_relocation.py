"""A takeover: what is written of whom, in which order, what is left, and how it goes on after a death at any write."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from handler.app.pause import pause_of, resume, suspend
from handler.config.settings import Prune
from handler.engine.run.errors import RequestRefused, TargetRenamed
from handler.model.names import Identity
from handler.model.result import Outcome
from tests.fakes.apiserver.connection import straight
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, state_of
from tests.unit.engine.in_memory_cluster import refusing
from tests.unit.engine.renamed_targets import NEW, OLD, PROTECTED, Renamed, by_namespaces, identity, mapped, writes

pytestmark = pytest.mark.slow

ONE, TWO, KEPT = mapped("one"), mapped("two"), mapped("kept", annotations=PROTECTED)
POLICY = "ValidatingAdmissionPolicy 'labels' with binding 'all' denied request: labels of kept may not change"


@pytest.fixture
def renamed() -> Renamed:
    """One whose object `kept` isn't declared any more, and may not be deleted."""
    made = Renamed()
    made.planted(ONE, TWO, KEPT)
    made.push(ONE, TWO)
    return made


def assert_taken_over(renamed: Renamed, *names: str) -> None:
    assert (renamed.marked("store"), renamed.marked("shop")) == (set(names), set())
    assert renamed.has_record("shop") == (False, False)
    state = state_of(renamed.handler(), "store")
    assert (state.former, state.attempt) == (None, None)


def test_all_that_stays_gets_the_new_marks_and_the_old_record_goes_last(renamed: Renamed) -> None:
    before, since = renamed.uids(), len(renamed.server.store.log)
    result = renamed.applied()
    assert_taken_over(renamed, "one", "two", "kept")
    assert (renamed.uids(), result.counts) == (before, {"configured": 3, "skipped": 1})
    written = [write.identity for write in renamed.server.store.log[since:]]
    members = [number for number, each in enumerate(written) if each in before]
    gone = written.index(Identity("", "ConfigMap", "anneal-system", "anneal-shop"), max(members))
    claimed = written.index(Identity("", "ConfigMap", "anneal-system", "anneal-shop"))
    opened = written.index(Identity("", "ConfigMap", "anneal-system", "anneal-store"))
    assert opened < claimed < min(members) < max(members) < gone
    assert renamed.run(trigger="drift").outcome is Outcome.UNCHANGED


@pytest.mark.parametrize("done", [True, False])
def test_a_takeover_that_dies_at_any_write_is_finished_by_the_next_run(done: bool) -> None:
    number, died = 0, True
    while died:
        number += 1
        renamed = Renamed()
        before = renamed.planted(ONE, TWO, KEPT)
        renamed.push(ONE, TWO)
        died = renamed.dies_at(number, renamed.run, done=done)
        renamed.applied()
        assert_taken_over(renamed, "one", "two", "kept")
        assert renamed.uids() == before
    assert number > 8


@pytest.mark.parametrize("job", [{}, {"trigger": "drift"}, {"dry_run": True}, {"trigger": "replay", "unpin": True}])
def test_from_its_claim_on_no_run_of_the_old_name_writes(renamed: Renamed, job: dict[str, object]) -> None:
    renamed.dies_once(lambda: "shop" not in renamed.open_records())
    since = len(renamed.server.store.log)
    refused = renamed.run(OLD, **job)  # type: ignore[arg-type]  # parts of a Job
    assert (refused.outcome, refused.code) == (Outcome.FAILED, TargetRenamed.code), refused
    assert "call it store" in str(refused.problems[0])
    assert not [write for write in renamed.server.store.log[since:] if write.identity.kind != "Lease"]


def dry(asked: Asked) -> bool:
    """Whether a request asks whether `kept` may be written."""
    return asked.method == "PATCH" and asked.path.endswith("/kept") and asked.dry


def foreseen(asked: Asked) -> bool:
    return dry(asked) or writes("kept")(asked)


@pytest.mark.parametrize(("refused", "status"), [(foreseen, 422), (foreseen, 403), (writes("kept"), 422)])
def test_a_member_whose_new_marks_are_refused_is_named_and_the_rest_goes_on(
    renamed: Renamed, refused: Callable[[Asked], bool], status: int
) -> None:
    renamed.meet = refusing(refused, status, POLICY)
    renamed.push(replaced := mapped("one", value="2"), TWO)
    result = renamed.applied()
    assert (renamed.marked("store"), renamed.marked("shop")) == ({"one", "two"}, {"kept"})
    assert (renamed.body(identity("one")) or {})["data"] == replaced["data"]
    assert result.counts == {"configured": 2, "skipped": 1}
    assert "1 object still carries the marks of ConfigMap/anneal-system/anneal-shop: ConfigMap/shop/kept" in result.message
    assert POLICY in result.message
    assert "`anneal apply store` ends the takeover" in result.message
    state = state_of(renamed.handler(), "store")
    assert state.former
    assert (state.attempt, state.commit) == (None, result.commit)
    if refused is foreseen:
        planned = renamed.run(dry_run=True).plan
        assert planned
        assert (planned.relabelled, [note for note in planned.notes if POLICY in note] != []) == ((), True)
        again = renamed.applied()
        assert (again.outcome, POLICY in again.message) == (Outcome.UNCHANGED, True)
        assert state_of(renamed.handler(), "store").history == state.history, "what can't be done fills no history"
    renamed.meet = by_namespaces("shop", "jobs", "anneal-system")  # once the policy is gone
    renamed.applied()
    assert_taken_over(renamed, "one", "two", "kept")


def test_a_takeover_of_which_all_marks_are_refused_claims_the_old_record_all_the_same() -> None:
    renamed = Renamed()
    renamed.planted(KEPT)
    renamed.host.push(renamed.host.commit({"shop/none.yaml": "# nothing is declared"}))
    suspend(renamed.handler(NEW), NEW, pause_of("ada", "", ""))  # so that it has a record of its own
    assert resume(renamed.handler(), NEW) == "resumed"
    renamed.meet = refusing(lambda asked: asked.method == "PATCH" and "/namespaces/shop/configmaps/" in asked.path, 422, POLICY)
    emptied = replace(NEW, prune=Prune(allow_empty=True))
    result = renamed.run(emptied)
    assert (renamed.marked("store"), renamed.marked("shop")) == (set(), {"kept"}), result
    assert renamed.open_records() == {"store"}, result
    assert renamed.run(OLD).code == TargetRenamed.code
    renamed.meet = straight
    renamed.applied(emptied)
    assert_taken_over(renamed, "kept")


def test_a_webhook_without_dry_runs_keeps_no_member_from_its_marks(renamed: Renamed) -> None:
    renamed.meet = refusing(dry, 400, 'admission webhook "labels" does not support dry run')
    renamed.applied()
    assert_taken_over(renamed, "one", "two", "kept")


def test_a_member_that_moves_meanwhile_is_read_again(renamed: Renamed) -> None:
    moved = renamed.touch_amid("kept")
    renamed.applied()
    assert moved
    assert_taken_over(renamed, "one", "two", "kept")
    assert (renamed.body(identity("kept")) or {})["metadata"]["annotations"]["by"] == "hand"


def test_a_recorded_namespace_that_is_gone_ends_with_the_takeover() -> None:
    renamed = Renamed()
    renamed.planted(ONE, TWO, mapped("job", "jobs"))
    renamed.push(ONE, TWO)
    renamed.server.answer(Asked("DELETE", "/api/v1/namespaces/jobs", {}, {}, "", ""))
    renamed.meet = by_namespaces("shop", "anneal-system")
    renamed.applied(replace(NEW, namespaces=("shop",)))
    assert_taken_over(renamed, "one", "two")


def test_a_namespace_that_may_not_be_read_keeps_the_old_record() -> None:
    renamed = Renamed()
    renamed.planted(ONE, TWO, mapped("job", "jobs"))
    renamed.push(ONE, TWO)
    renamed.meet = by_namespaces("shop", "anneal-system")
    result = renamed.applied(replace(NEW, namespaces=("shop",)))
    assert renamed.has_record("shop")[0]
    assert "ConfigMap/anneal-system/anneal-shop stays until the next run" in result.message
    assert 'if the namespace is gone, let that be seen: add to its ClusterRole: {apiGroups: [""], resources: [namespaces]' in result.message


def test_a_record_and_its_name_may_move_to_another_namespace_at_once() -> None:
    renamed = Renamed(cluster("shop", "jobs", "gitops"))
    before = renamed.planted(ONE, TWO)
    renamed.applied(settings={"state_namespace": "gitops", "state_namespace_from": "anneal-system"})
    assert (renamed.marked("store", "gitops"), renamed.uids()) == ({"one", "two"}, before)
    assert renamed.has_record("shop") == (False, False)


def test_what_pauses_the_old_name_while_the_takeover_is_held_pauses_it_until_it_is_resumed() -> None:
    renamed = Renamed()
    declared = [mapped(f"c-{number}") for number in range(30)]
    renamed.planted(*declared)
    renamed.push(*declared[:3])
    assert renamed.run().outcome is Outcome.HELD
    held = state_of(renamed.handler(), "store").held
    assert held
    suspend(renamed.handler(OLD), OLD, pause_of("ada", "an incident", ""))
    since = renamed.uids()
    paused = renamed.run(trigger="replay", approve=held.id)
    assert (paused.outcome, renamed.marked("store"), renamed.uids()) == (Outcome.SUSPENDED, set(), since)
    assert resume(renamed.handler(), NEW) == "resumed"
    assert renamed.run(trigger="replay", approve=held.id).outcome is Outcome.APPLIED
    assert_taken_over(renamed, "c-0", "c-1", "c-2")


def test_a_pause_before_the_first_run_of_the_new_name_ends_by_it() -> None:
    renamed = Renamed()
    renamed.planted(ONE)
    suspend(renamed.handler(OLD), OLD, pause_of("ada", "", ""))
    assert renamed.run().outcome is Outcome.SUSPENDED
    assert resume(renamed.handler(), NEW) == "resumed"
    renamed.applied()
    assert_taken_over(renamed, "one")
    assert resume(renamed.handler(), NEW) == "was not suspended"


def test_a_name_that_was_taken_over_is_neither_paused_nor_resumed(renamed: Renamed) -> None:
    renamed.dies_once(lambda: "shop" not in renamed.open_records())
    for _ in range(2):  # before its record is gone, and after that
        since = len(renamed.server.store.log)
        with pytest.raises(TargetRenamed, match="call it store"):
            suspend(renamed.handler(OLD), OLD, pause_of("ada", "", ""))
        assert len(renamed.server.store.log) == since
        if renamed.has_record("shop")[0]:
            with pytest.raises(TargetRenamed, match="call it store"):
                resume(renamed.handler(OLD), OLD)
            renamed.applied()
    assert_taken_over(renamed, "one", "two", "kept")


def test_a_pause_of_another_installation_is_neither_ended_nor_replaced(renamed: Renamed) -> None:
    renamed.handler(OLD).store(OLD).update(lambda state: replace(state, installation="second", suspend=pause_of("ada", "", "")))
    since = len(renamed.server.store.log)
    assert resume(renamed.handler(), NEW) == "was not suspended"
    with pytest.raises(RequestRefused, match="of installation second"):
        resume(renamed.handler(OLD), OLD)
    with pytest.raises(RequestRefused, match="`anneal retarget shop`"):
        suspend(renamed.handler(OLD), OLD, pause_of("grace", "", ""))
    assert len(renamed.server.store.log) == since


def test_a_pause_of_another_repositorys_record_is_not_ended_by_the_new_name(renamed: Renamed) -> None:
    other = "https://git.example.com/acme/bank.git"
    renamed.handler(OLD).store(OLD).update(lambda state: replace(state, repository=other, suspend=pause_of("ada", "", "")))
    since = len(renamed.server.store.log)
    assert resume(renamed.handler(), NEW) == "was not suspended"
    assert len(renamed.server.store.log) == since


def test_a_second_name_amid_a_takeover_is_refused_with_the_way_out(renamed: Renamed) -> None:
    renamed.dies_once(lambda: "shop" not in renamed.open_records())
    third = replace(NEW, name="market", renamed_from="store")
    refused = renamed.run(third)
    assert (refused.outcome, refused.code) == (Outcome.FAILED, TargetRenamed.code)
    assert "call it store again, let `anneal apply store` end that" in str(refused.problems[0])
    renamed.applied()
    renamed.applied(third)
    assert (renamed.marked("market"), renamed.marked("shop") | renamed.marked("store")) == ({"one", "two", "kept"}, set())


def test_a_line_that_comes_too_late_is_in_the_plan(renamed: Renamed) -> None:
    renamed.server.answer(Asked("POST", "/api/v1/namespaces", {}, {"metadata": {"name": "other"}}, "", ""))
    elsewhere = replace(NEW, renamed_from="", namespaces=("other",), path="other")
    renamed.host.push(renamed.host.commit({"other/one.json": json.dumps(mapped("one", "other"))}))
    renamed.applied(elsewhere)
    planned = renamed.run(replace(elsewhere, renamed_from="shop"), dry_run=True)
    assert planned.plan
    assert any("`renamedFrom: shop` has no effect" in note for note in planned.plan.notes), planned.plan.notes
