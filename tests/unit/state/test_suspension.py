"""A target is suspended by the configuration, or by its record until the suspension's end; a summary says the same as its record."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.state.configmap import read_summary, summary_of
from handler.state.record import Suspend
from handler.state.record_format import stamp
from handler.state.suspension import suspension
from tests.unit.state.samples import blank

NOW = 1_900_000_000.0
TARGET = Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))


@pytest.mark.parametrize(
    ("until", "holds"),
    [("", True), (stamp(NOW + 1), True), (stamp(NOW), False), (stamp(NOW - 1), False)],
    ids=["endless", "later", "now", "over"],
)
def test_a_suspension_holds_until_its_end_in_the_record_and_in_its_summary(until: str, holds: bool) -> None:
    state = replace(blank(), suspend=Suspend("ada", until=until))
    summary = read_summary(summary_of(state))
    assert summary
    assert [bool(suspension(TARGET, known, NOW)) for known in (state, summary)] == [holds, holds]


def test_a_summary_names_the_end_only_of_a_suspension_that_has_one() -> None:
    """A version that doesn't know the field can't read such a summary, and reads the record."""
    for pause in (None, Suspend("ada")):
        assert "suspendedUntil" not in json.loads(summary_of(replace(blank(), suspend=pause)))
    assert json.loads(summary_of(replace(blank(), suspend=Suspend("ada", until=stamp(NOW)))))["suspendedUntil"] == stamp(NOW)
