"""A refused commit leaves nothing behind that a later one meets, also when its kind is served meanwhile."""

from __future__ import annotations

from handler.model.result import Outcome
from tests.e2e.documents import config_map, definition, offer
from tests.e2e.one_target import Shop
from tests.e2e.served_kinds import until_served


def test_the_commit_after_a_refused_one_is_applied_as_itself(shop: Shop) -> None:
    """The worker keeps what it rendered: of a refused commit it must keep nothing, also when its kind is served later."""
    good, never = config_map(shop.name, "a"), config_map(shop.name, "b")
    shop.push(good)
    shop.applied()
    shop.push(good, never, offer(shop.group, shop.name, "o"))
    assert shop.run().outcome is Outcome.FAILED
    shop.push(good)
    assert shop.run().outcome is Outcome.UNCHANGED
    shop.kubectl.apply(definition(shop.group))
    until_served(shop, "v1")
    shop.handler.discovery(shop.target).refresh()
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert shop.live(never) is None
    shop.assert_converged()
    assert shop.state().status.phase == "applied"
