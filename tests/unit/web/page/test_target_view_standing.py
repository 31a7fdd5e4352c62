"""How a target stands: what needs a person before what only moves, and never by a colour alone."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from handler.state.record import Attempt, Drift, HeldPlan, RunStatus, State, Suspend, TargetHealth
from handler.web.page.target_view import STANDINGS, standing, urgency
from tests.unit.rows import each_row
from tests.unit.state.samples import API, NOON, TOKEN, blank, full, sha
from tests.unit.web.page.records import row_of

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
