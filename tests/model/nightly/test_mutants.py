"""The model can fail: with one law of the handler taken out, it finds a way in which that matters.

What matters only when several things meet is looked for with few rules, of which one brings them together: among all rules it comes up
seldom, and finding it takes a minute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis.stateful import RULE_MARKER, run_state_machine_as_test

from handler.cluster.write import Writer
from handler.engine.rollout_runner.runner import RolloutRunner
from tests.model.searching import BUDGET
from tests.model.simulated_time import simulated
from tests.model.state_machine import Deployments


def without_preconditions(delete: Callable[..., bool]) -> Callable[..., bool]:
    def deleted(self: Writer, resource: Any, identity: Any, uid: str, version: str = "", *rest: Any) -> bool:
        return delete(self, resource, identity, "", "", *rest)

    return deleted


def without_the_last_stage(stage: Callable[[RolloutRunner, int], None]) -> Callable[[RolloutRunner, int], None]:
    def staged(self: RolloutRunner, number: int) -> None:
        if number < len(self.planned.plan.stages) - 1:
            stage(self, number)

    return staged


def with_rules(*names: str) -> type[Deployments]:
    """Return the model with these rules alone; the others are what they call."""
    rules = {name: getattr(rule, RULE_MARKER).function for name, rule in vars(Deployments).items() if hasattr(rule, RULE_MARKER)}
    assert rules.keys() > set(names)
    return type("Few", (Deployments,), {name: function for name, function in rules.items() if name not in names})


MUTANTS: dict[str, tuple[str, Any, str]] = {
    "no superset before the first write": ("handler.engine.run.transitions.widened", lambda state, desired, planned: state, "I5"),
    "deletes without preconditions": ("handler.cluster.write.Writer.delete", without_preconditions(Writer.delete), "I4"),
    "a commit recorded before all of it is applied": (
        "handler.engine.rollout_runner.runner.RolloutRunner._stage",
        without_the_last_stage(RolloutRunner._stage),
        "I3",
    ),
    "whoever lost its Lease goes on": ("handler.state.lease.HeldLease._check", lambda self, now: None, "I6"),
    "a copied label is membership": ("handler.plan.compare.is_member", lambda live, *rest: True, "I4"),
    "a giver deletes what a sibling declares": (
        "handler.engine.planner.siblings.kept_for",
        lambda identity, found: (list(found), ("", ""))[1],
        "I10",
    ),
    "a giver deletes what a sibling goes back to": ("handler.engine.planner.siblings._commits", lambda state: frozenset(), "I10"),
    "a taker takes what its giver declares": ("handler.engine.planner.siblings.refused", lambda *rest: None, "I10"),
    "what siblings say is asked once": ("handler.engine.planner.siblings.SiblingQuestions.doubt", lambda self, identity: ("", ""), "I10"),
    "an old look at the host is believed": ("handler.engine.run.revision._since", lambda run: (0.0, True), r"I2|\('"),
}
MEETING = {
    "a giver deletes what a sibling declares": with_rules("move", "push", "finish"),
    "a giver deletes what a sibling goes back to": with_rules("leave_one_behind", "push", "finish"),
    "what siblings say is asked once": with_rules("move", "go", "finish"),
    "deletes without preconditions": with_rules("meddle_in_the_middle", "push", "finish"),
    "whoever lost its Lease goes on": with_rules("overtake", "push", "time_passes"),
}


@pytest.mark.parametrize("what", MUTANTS)
def test_a_handler_without_one_of_its_laws_is_noticed(what: str) -> None:
    name, mutant, told = MUTANTS[what]
    with simulated(), patch(name, mutant), pytest.raises(AssertionError, match=f"^({told})"):
        run_state_machine_as_test(MEETING.get(what, Deployments), settings=BUDGET)
