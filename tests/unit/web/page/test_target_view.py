"""A target's page: its rollout, a run under way, each unhealthy object once; how it stands in words, not by a colour alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.state.record import Attempt, Drift, HeldPlan, RunStatus, State, Suspend, TargetHealth
from handler.state.record_values import DependencyWait, Obstacle
from handler.web.page.target_view import STANDINGS, standing, target_view, urgency
from tests.unit.rows import each_row
from tests.unit.state.samples import API, NOON, TOKEN, blank, full, sha
from tests.unit.web.page.records import facts_of, row_of

PICTURE: dict[str, Any] = {"run": "r", "commit": sha("e"), "phase": "rolling-out", "waits": [], "written": [], "total": 0, "started": 1.0}
PICTURE |= {"stages": [], "ended": ""}


def test_a_rollout_is_groups_of_steps() -> None:
    view = target_view(facts_of(full()), None)
    assert [(group.name, group.done, group.tone) for group in view.groups] == [("first", 1, "good"), ("then", 0, "moving")]
    steps = [(step.word, step.sign) for group in view.groups for step in group.steps]
    assert steps == [("done", "✓"), ("under way", "➤"), ("under way", "➤")]
    assert view.groups[1].steps[1].facts["share"] == 25


def test_each_unhealthy_object_stands_once_with_its_reason() -> None:
    sick = replace(
        full(),
        status=RunStatus("waiting", unhealthy=("Deployment/shop/api: no Node has room", "Job/shop/load")),
        health=TargetHealth("degraded", NOON, NOON, ("Deployment/shop/api: 0 of 2", "Service/shop/web: no address")),
    )
    assert target_view(facts_of(sick), None).unhealthy == (
        ("Deployment/shop/api", "no Node has room", True),
        ("Job/shop/load", "", True),
        ("Service/shop/web", "no address", False),
    )


def test_a_run_is_shown_until_it_has_ended() -> None:
    quiet = blank(commit=sha(), status=RunStatus("applied"), health=TargetHealth("healthy", NOON, NOON))
    busy = replace(quiet, attempt=Attempt(sha("e"), "b" * 64, "c" * 64, TOKEN, NOON))
    assert target_view(facts_of(busy), PICTURE).standing.word == "rolling out"
    assert target_view(facts_of(busy), PICTURE).run == PICTURE
    ended = target_view(facts_of(busy), {**PICTURE, "ended": "applied"})
    assert (ended.run, ended.standing.word) == (None, "rolling out"), "another one goes on with it"
    lost = target_view(facts_of(quiet), PICTURE)
    assert (lost.run, lost.standing.word) == (None, "healthy"), "the record says that the attempt is over"


def test_a_commit_that_waits_for_other_targets_is_said_unless_what_lives_is_worse() -> None:
    waits = DependencyWait(sha("e"), "c" * 64, NOON, (Obstacle("infra", "it never ran", "anneal apply infra"),))
    quiet = blank(commit=sha(), status=RunStatus("waiting"), health=TargetHealth("healthy", NOON, NOON), awaits=waits)
    assert target_view(facts_of(quiet), None).standing.word == "waiting"
    assert target_view(facts_of(replace(quiet, awaits=None)), None).standing.word == "rolling out"
    assert target_view(facts_of(replace(quiet, health=TargetHealth("degraded", NOON, NOON))), None).standing.word == "degraded"


def test_a_target_without_record_and_one_that_the_configuration_suspends() -> None:
    fresh = target_view(facts_of(None), None)
    assert (fresh.state, fresh.groups, fresh.unhealthy, fresh.standing.key) == ({}, (), (), "new")
    facts = {**facts_of(blank(commit=sha())), "suspended": True, "suspendedByConfiguration": True}
    assert target_view(facts, None).standing.key == "suspended"


# --- how it stands: what needs a person before what only moves
LATER = "2999-01-01T00:00:00Z"
WELL = blank(commit=sha(), status=RunStatus("applied"), health=TargetHealth("healthy", NOON, LATER))
HELD = HeldPlan("h1", ("deletes 12 of 20",), (), sha("e"), "b" * 64, "c" * 64, NOON)
ATTEMPT = Attempt(sha("e"), "b" * 64, "c" * 64, TOKEN, NOON)


@each_row(
    ("state", "word"),
    [
        (WELL, "healthy"),
        (None, "no record"),
        (blank(commit=sha()), "unknown"),
        (replace(WELL, suspend=Suspend("ada", until=LATER)), "suspended"),
        (replace(full(), suspend=None), "failed"),
        (replace(WELL, held=HELD), "held"),
        (replace(WELL, status=RunStatus("failed"), held=HELD), "failed"),
        (replace(WELL, attempt=ATTEMPT, status=RunStatus("rolling-out")), "rolling out"),
        (replace(WELL, attempt=ATTEMPT), "rolling out"),
        (replace(WELL, status=RunStatus("pruning")), "rolling out"),
        (replace(WELL, health=TargetHealth("degraded", NOON, LATER)), "degraded"),
        (replace(WELL, health=TargetHealth("progressing", NOON, LATER)), "rolling out"),
        (replace(WELL, drift=(Drift(API, "spec.replicas", "3", "5", "kubectl-scale"),)), "drifted"),
        (replace(WELL, health=TargetHealth("degraded", NOON, LATER), drift=(Drift(API, "spec", "3", "5"),)), "degraded"),
    ],
)
def test_a_row_says_in_one_word_how_its_target_stands(state: State | None, word: str) -> None:
    assert standing(row_of(state)).word == word


def test_what_never_ran_is_suspended_where_the_configuration_says_so() -> None:
    assert standing({**row_of(None), "suspended": True}).word == "suspended"


def test_a_cluster_that_doesnt_answer_is_first() -> None:
    row: dict[str, Any] = {**row_of(full()), "trouble": {"code": "cluster-unavailable", "message": "away"}}
    assert standing(row).key == "unread"
    assert urgency(standing(row)) == 0


def test_each_standing_is_told_by_word_and_sign() -> None:
    words, keys = [each.word for each in STANDINGS], [each.key for each in STANDINGS]
    assert len(set(words)) == len(set(keys)) == len(STANDINGS)
    for tone in {each.tone for each in STANDINGS}:
        signs = [each.sign for each in STANDINGS if each.tone == tone]
        assert all(signs)
        assert len({(each.sign, each.word) for each in STANDINGS if each.tone == tone}) == len(signs)
