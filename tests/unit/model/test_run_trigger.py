"""The rows that ask for runs, and how they stand beside webhooks in one table."""

from __future__ import annotations

import pytest

from handler.model.run_trigger import CAUSES, RUN_TRIGGERS, OwnTrigger, RunTrigger, run_triggers
from handler.triggers import TRIGGERS, WEBHOOKS


def test_each_part_of_anneals_own_has_a_row() -> None:
    assert sorted(str(row.watch) for row in RUN_TRIGGERS.values()) == sorted(OwnTrigger)


@pytest.mark.parametrize("name", RUN_TRIGGERS)
def test_a_row_says_in_one_line_what_it_does(name: str) -> None:
    about = RUN_TRIGGERS[name].about
    assert about.endswith(".")
    assert len(about) < 100
    assert "\n" not in about


def test_a_table_is_the_webhooks_and_what_asks_for_runs() -> None:
    ours = RunTrigger("asks", lambda _targets, _ask, _stop: None)
    assert run_triggers({**TRIGGERS, "spool": ours}) == {**RUN_TRIGGERS, "spool": ours}
    assert list(TRIGGERS) == [*WEBHOOKS, *RUN_TRIGGERS]


def test_what_named_requests_are_called_is_taken() -> None:
    assert {"push", "oneoff", "resource", "rollback"} <= CAUSES
