"""A target's page: its rollout as groups, a run under way, and each unhealthy object once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.state.record import Attempt, RunStatus, TargetHealth
from handler.state.record_values import DependencyWait, Obstacle
from handler.web.page.target_view import target_view
from tests.unit.state.samples import NOON, TOKEN, blank, full, sha
from tests.unit.web.page.records import facts_of

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
