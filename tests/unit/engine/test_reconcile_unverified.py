"""A target that takes no unsigned commit: whatever starts a run, a refused head reaches nothing, and a rollback leads away."""

from __future__ import annotations

import pytest

from handler.model.errors import CommitUnverified, SourceRefused
from handler.model.result import Outcome, Result
from handler.model.tree import Tree
from tests.fakes.git_host import HostSource
from tests.unit.engine.in_memory_shop import DONE, Body, InMemoryShop, config_map

pytestmark = pytest.mark.slow

A, B, C, EVIL = map(config_map, ("a", "b", "c", "evil"))


class Signed(HostSource):
    """Refuses some commits, as a source does that verifies what it fetches and what it has fetched."""

    refused: dict[str, type[CommitUnverified | SourceRefused]]

    def fetch(self, sha: str, path: str = "") -> Tree:
        self.recheck(sha, path)
        return super().fetch(sha, path)

    def recheck(self, sha: str, path: str = "") -> None:
        if sha in self.refused:
            raise self.refused[sha].of(f"commit {sha}", "is not signed")


class Strict(InMemoryShop):
    """`unsigned`: what is refused."""

    def __post_init__(self) -> None:
        self.unsigned: dict[str, type[CommitUnverified | SourceRefused]] = {}
        super().__post_init__()

    def configure(self, **changes: object) -> None:
        super().configure(**changes)
        source = Signed(self.host, lambda _asked: None)
        source.refused = self.unsigned
        self.handler = self.another(sources={"shop": source})

    def evil(self, *documents: Body, **files: str) -> str:
        """Push what no configured key has signed."""
        sha = self.push(*documents, **files)
        self.unsigned[sha] = CommitUnverified
        return sha

    def lives(self) -> list[str]:
        return [each["metadata"]["name"] for each in map(self.live, (A, B, C, EVIL)) if each]


@pytest.fixture
def shop() -> Strict:
    """It has a signed commit applied."""
    made = Strict()
    made.push(A)
    made.applied()
    return made


def refused(result: Result, sha: str) -> None:
    assert (result.outcome, result.code, result.who) == (Outcome.FAILED, "commit-unverified", "author")
    assert f"commit {sha}: " in result.message


def test_an_unsigned_commit_isnt_even_recorded_where_it_changes_nothing_that_is_read(shop: Strict) -> None:
    good = shop.host.head
    unsigned = shop.evil(A, **{"../readme": "unsigned"})
    refused(shop.run(), unsigned)
    assert shop.state().commit == good
    signed = shop.push(A, **{"../readme": "signed"})
    assert shop.run().outcome in DONE
    assert shop.state().commit == signed


def test_a_rollback_leads_away_from_an_unverified_head_until_a_verified_one_comes(shop: Strict) -> None:
    good = shop.host.head
    shop.push(A, B)
    shop.applied()
    unsigned = shop.evil(EVIL)
    refused(shop.run(), unsigned)
    shop.applied("replay", commit=good, actor="ann")
    for trigger in ("tick", "drift"):
        assert shop.run(trigger).outcome is Outcome.UNCHANGED
    assert (shop.lives(), shop.state().commit) == (["a"], good)
    shop.push(C)
    shop.applied()
    assert shop.lives() == ["c"]


def test_a_refused_head_ends_no_pin_and_drift_is_corrected_at_the_pinned_commit(shop: Strict) -> None:
    good = shop.host.head
    shop.push(A, B)
    shop.applied()
    shop.applied("replay", commit=good, actor="ann")
    pin = shop.state().pin
    assert pin
    assert pin.away
    unsigned = shop.evil(EVIL)
    for trigger, hint in (("push", unsigned), ("tick", "")):
        result = shop.run(trigger, hint=hint)
        assert (result.outcome, result.commit) == (Outcome.UNCHANGED, good)
    shop.delete(A)
    shop.applied("drift")
    assert (shop.lives(), shop.state().pin) == (["a"], pin)
    shop.push(C)
    shop.applied()
    assert (shop.lives(), shop.state().pin) == (["c"], None)


def test_a_rollback_leads_away_from_a_head_whose_tree_is_refused(shop: Strict) -> None:
    good = shop.host.head
    shop.push(B)
    shop.applied()
    shop.unsigned[shop.push(A, B)] = SourceRefused
    assert shop.run().code == "source-refused"
    shop.applied("replay", commit=good, actor="ann")
    assert (shop.lives(), shop.state().commit) == (["a"], good)


def test_verify_is_asked_of_the_applied_commit_too(shop: Strict) -> None:
    """As any change of the settings leads to a new look at it."""
    assert shop.run("tick").outcome is Outcome.UNCHANGED
    shop.unsigned[shop.host.head] = CommitUnverified
    shop.configure(namespaces=("shop", "jobs"))
    refused(shop.run("tick"), shop.host.head)
    shop.unsigned.clear()
    shop.configure(namespaces=("shop",))
    assert shop.run("tick").outcome in DONE
