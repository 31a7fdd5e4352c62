"""`adopt: never`: nothing that exists becomes the target's, whatever way leads to it; what siblings hand over is theirs already."""

from __future__ import annotations

from typing import Literal

import pytest

from handler.model.names import PART_OF, applyset_id
from handler.model.result import Outcome, Result
from tests.unit.engine.in_memory_shop import InMemoryShop, config_map
from tests.unit.engine.two_targets import Bench, document

pytestmark = pytest.mark.slow

THEIRS = config_map("theirs", "ours")


@pytest.fixture
def shop() -> InMemoryShop:
    made = InMemoryShop()
    made.configure(adopt="never")
    return made


def assert_refused(result: Result, message: str) -> None:
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused")
    assert message in str(result.problems[0])


@pytest.mark.parametrize("validate", ["server", "none"])
@pytest.mark.parametrize("labels", [{}, {PART_OF: applyset_id("tools", "shop")}])
def test_an_apply_is_refused_whatever_the_marks(shop: InMemoryShop, labels: dict[str, str], validate: Literal["server", "none"]) -> None:
    before, new = shop.create(config_map("theirs", labels=labels)), config_map("new")
    shop.configure(validate=validate)
    shop.push(THEIRS, new)
    assert_refused(shop.run(), "belongs to" if labels else "exists already and isn't ours")
    assert (shop.live(THEIRS), shop.live(new)) == (before, None)


@pytest.mark.parametrize("action", ["CreateOrUpdate", "Recreate"])
def test_a_step_is_refused(shop: InMemoryShop, action: str) -> None:
    before = shop.create(config_map("theirs"))
    shop.roll([THEIRS], {"object": "theirs.yaml", "action": action})
    assert_refused(shop.run(), "exists already and isn't ours")
    assert shop.live(THEIRS) == before


def test_a_step_that_only_creates_leaves_what_exists(shop: InMemoryShop) -> None:
    before, own = shop.create(config_map("theirs")), config_map("own")
    steps = [{"object": "theirs.yaml", "action": "CreateIfNotExist"}, {"object": "own.yaml", "action": "CreateOrUpdate"}]
    shop.roll([THEIRS, own], *steps)
    shop.applied()
    assert shop.live(THEIRS) == before
    assert shop.live(own)


def test_siblings_hand_over_all_the_same() -> None:
    bench = Bench()
    bench.configure(a={"adopt": "never"}, b={"adopt": "never"})
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    uid = bench.uid()
    bench.push(b={"x": document("x")})
    bench.applied("b", "a")
    assert (bench.uid(), bench.owner()) == (uid, "b")
