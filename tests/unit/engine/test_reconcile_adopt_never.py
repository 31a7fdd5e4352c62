"""`adopt: never`: nothing that exists becomes the target's, whatever way leads to it; what siblings hand over is theirs already."""

from __future__ import annotations

from typing import Literal

import pytest

from handler.model.names import PART_OF, applyset_id
from handler.model.result import Outcome, Result
from tests.unit.engine.in_memory_shop import InMemoryShop, body, config_map
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
@pytest.mark.parametrize("labels", [{}, {"kustomize.toolkit.fluxcd.io/name": "apps"}, {PART_OF: applyset_id("tools", "shop")}])
def test_an_apply_is_refused_whatever_the_marks(shop: InMemoryShop, labels: dict[str, str], validate: Literal["server", "none"]) -> None:
    before, new = shop.create(config_map("theirs", labels=labels)), config_map("new")
    shop.configure(validate=validate)
    shop.push(THEIRS, new)
    assert_refused(shop.run(), "belongs to" if labels else "exists already and isn't ours")
    assert (shop.live(THEIRS), shop.live(new)) == (before, None)


def test_what_comes_between_plan_and_write_is_refused(shop: InMemoryShop) -> None:
    shop.push(config_map("late", "ours"))
    result = shop.meeting("PATCH", "late", lambda: shop.create(config_map("late", "theirs")))
    assert result.outcome is Outcome.FAILED
    assert "exists already and isn't ours" in str(result.problems[0])
    assert (shop.live(config_map("late")) or {})["data"] == {"key": "theirs"}


def test_a_hook_is_refused(shop: InMemoryShop) -> None:
    pods = {"containers": [{"name": "main", "image": "seed:1"}], "restartPolicy": "Never"}
    hook = {"annotations": {"argocd.argoproj.io/hook": "PreSync"}}
    seed = body("seed", "Job", "batch/v1", metadata=hook, spec={"template": {"spec": pods}})
    before = shop.create(seed)
    shop.push(seed, config_map("new"))
    assert_refused(shop.run(), "exists already and isn't ours")
    assert (shop.live(seed), shop.live(config_map("new"))) == (before, None)


@pytest.mark.parametrize("action", ["CreateOrUpdate", "Recreate", "DeleteIfExist"])
def test_a_step_is_refused(shop: InMemoryShop, action: str) -> None:
    before = shop.create(config_map("theirs"))
    shop.roll([THEIRS], {"object": "theirs.yaml", "action": action})
    seen = "exists already and isn't ours" if action != "DeleteIfExist" else "isn't a member of target shop"
    assert_refused(shop.run(), seen)
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
