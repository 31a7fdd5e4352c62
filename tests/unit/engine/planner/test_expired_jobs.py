"""What the record knows of Jobs that remove themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.engine.planner.expired_jobs import applied, forgotten, has_run, known, noted, opened, recorded
from handler.model.errors import RolloutFailed
from handler.model.manifest import Manifest
from handler.model.names import IDENTITY, PART_OF
from handler.model.plan import Action, Change, Due
from handler.model.rollout import Mode
from handler.plan.admission import Desired
from handler.plan.rollout import PlannedRollout
from handler.state.record import Progress, Ran, State, StepRecord
from tests.unit.plan.samples import desired, document

BLANK = State("shop", "default", "cluster", "https://git.example.com/acme/shop.git")
NOON = "2026-03-01T12:00:00Z"


def job(name: str = "brief", image: str = "a:1", ttl: Any = 0, **metadata: Any) -> Desired:
    spec = {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}} | (
        {} if ttl is None else {"ttlSecondsAfterFinished": ttl}
    )
    (item,) = desired(document("Job", name, "batch/v1", metadata=metadata, spec=spec))
    return item


def change(item: Desired, action: Action, uid: str = "") -> Change:
    return Change(action, item.identity, uid)


def after(item: Desired, action: Action, state: State = BLANK, uid: str = "") -> State:
    return recorded(state, [change(item, action, uid)], {item.identity: item})


def is_done(item: Desired, state: State, digest: str = "") -> bool:
    return has_run(item, known(state, (), PlannedRollout(), digest))


def test_a_recorded_ttl_job_is_done_until_its_declaration_changes() -> None:
    state = after(job(), Action.CREATE)
    assert is_done(job(), state)
    assert not is_done(job(image="a:2"), state)
    assert not is_done(job("other"), state)
    assert not is_done(job(labels={"a": "b"}), state)
    assert is_done(job(), after(job(), Action.UNCHANGED, state)), "and so it stays"
    assert not is_done(job(), recorded(state, [], {})), "git dropped it, and may bring it again"


def test_a_job_without_ttl_is_missing_when_it_is_gone() -> None:
    assert not is_done(job(ttl=None), after(job(ttl=None), Action.CREATE))
    assert applied(desired(document())) == ()
    assert applied([replace(job(), mode=Mode.HOOK)]) == (), "hooks are their rollout's"


def test_our_inventory_marks_are_no_part_of_a_ttl_jobs_digest() -> None:
    body = job().manifest.body()
    body["metadata"]["labels"][PART_OF] = "another"
    body["metadata"]["annotations"][IDENTITY] = "renamed:batch/Job:shop/brief"
    other = replace(job(), manifest=Manifest.of(body))
    assert is_done(other, after(job(), Action.CREATE))


def test_a_ttl_job_applied_by_an_attempt_is_done_unless_it_failed() -> None:
    state = noted(after(job("old"), Action.CREATE), applied([job(), job("failing")]))
    assert [is_done(item, state) for item in (job("old"), job(), job("failing"))] == [True] * 3
    left = forgotten(state, RolloutFailed.of(str(job("failing").identity), "failed"))
    assert [is_done(item, left) for item in (job("old"), job(), job("failing"))] == [True, True, False]
    assert forgotten(left, RolloutFailed.of(str(job("old").identity), "failed")) == left, "what is recorded is done"
    assert noted(state, applied([job()])) == state


def test_an_attempt_opens_with_what_lives_and_what_an_earlier_one_left() -> None:
    items = {item.identity: item for item in (job(), job("lives"), job("anew"), job("new"))}
    before = noted(BLANK, applied([job(), job("dropped")]))
    changes = [
        change(job(), Action.UNCHANGED),
        change(job("lives"), Action.UNCHANGED, "u-1"),
        change(job("anew"), Action.RECREATE, "u-2"),
        change(job("new"), Action.CREATE),
    ]
    assert [each.identity.name for each in opened(before, changes, items).ran] == ["brief", "lives"]


def test_a_step_that_was_left_out_ran_only_if_an_earlier_run_has_done_it() -> None:
    assert not is_done(job(), after(job(), Action.SKIP))
    step = StepRecord("main", "brief", str(job().identity), "CreateOrUpdate", outcome="done")
    assert is_done(job(), after(job(), Action.SKIP, replace(BLANK, rollout=Progress("a" * 40, "b" * 64, NOON, steps=(step,)))))


def test_a_due_recreate_step_runs_a_ttl_job_again() -> None:
    item = replace(job(), mode=Mode.RECREATE)
    state, planned_rollout = replace(BLANK, ran=(*after(job(), Action.CREATE).ran,)), PlannedRollout(stages=((item,),))
    assert has_run(item, known(state, (), planned_rollout, ""))
    assert not has_run(item, known(state, [Due("main", "brief", item.identity, "Recreate")], planned_rollout, ""))


def test_the_record_keeps_a_digest_and_no_more() -> None:
    (found,) = after(job(), Action.CREATE).ran
    assert isinstance(found, Ran)
    assert (found.identity, len(found.declared), found.open) == (job().identity, 64, False)


def test_what_a_record_of_format_1_names_is_done_while_the_same_set_is_rendered_and_noted_from_then_on() -> None:
    recorded_set, other = "d" * 64, "e" * 64
    state = replace(BLANK, commit="a" * 40, digest=recorded_set, ran=(Ran(job().identity), Ran(job("plain").identity)))
    assert is_done(job(), state, recorded_set)
    assert not is_done(job(), state, other), "its declaration may be another one"
    assert not is_done(job("new"), state, recorded_set)
    assert not is_done(job("plain", ttl=None), state, recorded_set)
    assert not is_done(job(), replace(state, commit="", digest=""), ""), "nothing is recorded"
    noted_since = after(job(), Action.UNCHANGED, state)
    assert noted_since.ran == after(job(), Action.CREATE).ran
    assert is_done(job(), noted_since, other)
    opened_since = opened(state, [change(job(), Action.UNCHANGED)], {job().identity: job()})
    assert is_done(job(), opened_since, recorded_set), "a repair that is killed leaves it known"
