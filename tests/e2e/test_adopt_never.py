"""`adopt: never`: nothing that exists becomes the target's, whatever way leads to it; what siblings hand over is theirs already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

import pytest

from handler.model.names import PART_OF, applyset_id
from handler.model.result import Outcome, Result
from tests.e2e import rollouts
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map
from tests.e2e.hook_jobs import hook
from tests.e2e.killed_runs import Wire
from tests.e2e.meeting_writes import run_meeting, write_of
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import group, opened, step
from tests.e2e.two_targets import Pair

MARKS = {
    "none": {},
    "flux": {"kustomize.toolkit.fluxcd.io/name": "apps"},
    "applyset": {PART_OF: applyset_id("tools", "shop")},
}


def exists(shop: Shop, *documents: Document) -> dict[str, tuple[str, str]]:
    """Let another have made these."""
    for document in documents:
        shop.kubectl.run("create", "-f", "-", given=json.dumps(document))
    return shop.versions(documents)


def assert_refused(result: Result, message: str) -> None:
    assert (result.outcome, result.code) == (Outcome.FAILED, "plan-refused"), told(result)
    assert message in str(result.problems[0])


@pytest.mark.parametrize("validate", ["server", "none"])
@pytest.mark.parametrize("labels", MARKS.values(), ids=MARKS.keys())
def test_an_apply_is_refused_whatever_the_marks(shop: Shop, labels: Mapping[str, str], validate: Literal["server", "none"]) -> None:
    theirs, new = config_map(shop.name, "theirs", labels=dict(labels)), config_map(shop.name, "new")
    before = exists(shop, theirs)
    shop.configure(adopt="never", validate=validate)
    shop.push(config_map(shop.name, "theirs", {"key": "ours"}), new)
    assert_refused(shop.run(), "belongs to" if labels else "exists already and isn't ours")
    assert (shop.versions([theirs]), shop.live(new)) == (before, None)


def test_what_comes_between_plan_and_write_is_refused(shop: Shop, wired: Wire) -> None:
    shop.configure(adopt="never")
    late = config_map(shop.name, "late", {"key": "ours"})
    shop.push(late)
    result = run_meeting(shop, wired, write_of("PATCH", "late"), lambda: exists(shop, config_map(shop.name, "late", {"key": "theirs"})))
    assert result.outcome is Outcome.FAILED, told(result)
    assert "exists already and isn't ours" in str(result.problems[0])
    assert (shop.live(late) or {})["data"] == {"key": "theirs"}


def test_a_hook_is_refused(shop: Shop) -> None:
    shop.configure(adopt="never")
    seed = hook(shop, "seed", "PreSync")
    before = exists(shop, seed)
    shop.push(seed, config_map(shop.name, "new"))
    assert_refused(shop.run(), "exists already and isn't ours")
    assert shop.versions([seed])[f"Job/{shop.name}/seed"][0] == before[f"Job/{shop.name}/seed"][0]
    assert shop.live(config_map(shop.name, "new")) is None


@pytest.mark.parametrize("action", ["CreateOrUpdate", "Recreate", "DeleteIfExist"])
def test_a_step_is_refused(open_shop: Open, action: str) -> None:
    shop, theirs = never(open_shop)
    before = exists(shop, theirs)
    rollouts.push(shop, [theirs], group("first", step(action, theirs)))
    seen = "exists already and isn't ours" if action != "DeleteIfExist" else f"isn't a member of target {shop.name}"
    assert_refused(shop.run(), seen)
    assert shop.versions([theirs]) == before


def test_a_step_that_only_creates_leaves_what_exists(open_shop: Open) -> None:
    shop, theirs = never(open_shop)
    own = config_map(shop.name, "own")
    before = exists(shop, theirs)
    rollouts.push(shop, [theirs, own], group("first", step("CreateIfNotExist", theirs), step("CreateOrUpdate", own)))
    shop.applied()
    assert shop.versions([theirs]) == before
    assert shop.live(own)


def never(open_shop: Open) -> tuple[Shop, Document]:
    shop = opened(open_shop)
    shop.configure(adopt="never")
    return shop, config_map(shop.name, "theirs")


def test_siblings_hand_over_all_the_same(pair: Pair) -> None:
    pair.configure(a={"adopt": "never"}, b={"adopt": "never"})
    moved = config_map(pair.space, "moved")
    pair.push(a=(moved,))
    pair.applied(pair.a, pair.b)
    before = pair.uids(moved)
    pair.push(b=(moved,))
    pair.applied(pair.b, pair.a)
    assert (pair.uids(moved), pair.owners(moved)) == (before, {pair.b.name})
