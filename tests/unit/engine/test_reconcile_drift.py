"""What changed behind git's back: repaired, reported or ignored as the target says; and what others own stays theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handler.model.result import Outcome
from tests.fakes.apiserver import Call
from tests.fakes.apiserver.connection import Reply
from tests.unit.engine.in_memory_shop import RECORD, InMemoryShop, config_map

pytestmark = pytest.mark.slow

A, B = config_map("a"), config_map("b")
EDITED = {"data": {"key": "edited"}}


@pytest.fixture
def shop() -> InMemoryShop:
    return InMemoryShop.holding(A, B)


def writes(shop: InMemoryShop) -> int:
    """Return how many writes there were of anything but Leases."""
    return sum(write.identity.kind != "Lease" for write in shop.server.store.log)


def value(shop: InMemoryShop, name: str = "a") -> dict[str, str]:
    return dict((shop.live(config_map(name)) or {})["data"])


def test_a_drift_run_heals_an_edit_names_who_made_it_and_creates_what_is_gone(shop: InMemoryShop) -> None:
    shop.patch(A, EDITED)
    shop.delete(B)
    assert shop.run("tick").outcome is Outcome.UNCHANGED, "a tick looks at git only"
    result = shop.run("drift")
    assert (result.outcome, result.counts) == (Outcome.APPLIED, {"configured": 1, "created": 1})
    assert result.plan
    changed = [(item.path, item.manager) for change in result.plan.writes for item in change.fields if change.identity.name == "a"]
    assert changed == [("data.key", "kubectl-edit")]
    assert (value(shop, "a"), value(shop, "b")) == ({"key": "1"}, {"key": "1"})
    before = writes(shop)
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert writes(shop) == before


def test_fields_that_other_managers_add_are_no_drift(shop: InMemoryShop) -> None:
    shop.patch(A, {"data": {"theirs": "1"}, "metadata": {"annotations": {"seen-by": "them"}}}, "their-operator")
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert value(shop) == {"key": "1", "theirs": "1"}


def test_report_records_a_drift_once_and_leaves_the_correction_to_a_push(shop: InMemoryShop) -> None:
    shop.configure(drift="report")
    shop.applied()
    shop.patch(A, EDITED)
    before = writes(shop)
    assert shop.run("drift").outcome is Outcome.DRIFTED
    assert (shop.written, writes(shop)) == ([], before + 1), "the drift record"
    assert [(item.path, item.declared, item.live, item.manager) for item in shop.state().drift] == [
        ("data.key", "1", "edited", "kubectl-edit")
    ]
    assert shop.run("drift").outcome is Outcome.DRIFTED
    assert writes(shop) == before + 1, "the same drift again"
    shop.push(A, config_map("b", "2"))
    shop.applied()
    assert (value(shop), shop.state().drift) == ({"key": "1"}, ())


def test_a_drift_that_went_away_leaves_the_record(shop: InMemoryShop) -> None:
    shop.configure(drift="report")
    shop.applied()
    shop.patch(A, EDITED)
    assert shop.run("drift").outcome is Outcome.DRIFTED
    shop.patch(A, {"data": {"key": "1"}})
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.state().drift == ()


def test_ignore_lists_nothing_in_drift_runs(shop: InMemoryShop) -> None:
    shop.configure(drift="ignore")
    shop.applied()
    shop.patch(A, EDITED)
    record, asked = shop.server.store.get(RECORD), list[Call]()

    def noted(call: Call, do: Callable[[], Reply]) -> Reply:
        asked.append(call)
        return do()

    shop.meet = noted
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert not any("labelSelector" in call.asked.query for call in asked)
    assert (shop.written, shop.server.store.get(RECORD)) == ([], record)
