"""Objects that move between targets of one branch that follow others, or none: on other commits for long, and never deleted meanwhile."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from handler.config.settings import Target
from handler.model.names import Identity
from handler.model.result import Outcome
from tests.fakes.engine import SHOP, cluster
from tests.unit.engine.promoting_targets import SOAK, Line, following

pytestmark = pytest.mark.slow

MOVED = Identity("", "ConfigMap", "shared", "moved")


def document(name: str, namespace: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": {"key": "1"}})


class Bench(Line):
    """One target of each kind into one namespace, each with a target before it that proves; `a` owns the object that moves."""

    def __init__(self, before_a: str = "a-staging", before_b: str = "b-staging") -> None:
        staged = tuple(Target(f"{name}-staging", SHOP, (f"{name}-staging",), path=f"{name}-staging") for name in "ab")
        a, b = (self._production(name, before) for name, before in (("a", before_a), ("b", before_b)))
        super().__init__((*staged, a, b))
        self.server = cluster("a-staging", "b-staging", "shared")
        self.restart()
        self.push("a")
        self.stage()
        self.done("a")
        self.done("b")

    @staticmethod
    def _production(name: str, before: str) -> Target:
        shared = {"namespaces": ("shared",), "path": name}
        return replace(following(name, before), **shared) if before else Target(name, SHOP, **shared)  # type: ignore[arg-type]  # keywords

    def push(self, *owners: str) -> str:
        """Push a commit in which these declare the object; others each one of their own."""
        files = {f"{name}/own.json": document(f"own-{name}", "shared") for name in "ab"}
        files |= {f"{name}-staging/own.json": document("own", f"{name}-staging") for name in "ab"}
        sha = self.host.commit({**files, **{f"{name}/moved.json": document("moved", "shared") for name in owners}, "round": str(self.now)})
        self.host.push(sha)
        return sha

    def stage(self) -> None:
        self.done("a-staging")
        self.done("b-staging")
        self.later(SOAK)

    def uid(self) -> str:
        found = self.server.store.get(MOVED)
        return str(found.body["metadata"]["uid"]) if found else ""


WAYS = [("a-staging", "b-staging"), ("a-staging", ""), ("", "b-staging")]


@pytest.mark.parametrize(("before_a", "before_b"), WAYS)
def test_the_giver_first_keeps_it_for_the_taker(before_a: str, before_b: str) -> None:
    bench = Bench(before_a, before_b)
    before = bench.uid()
    bench.push("b")
    bench.stage()
    given = bench.run("a", "oneoff")
    assert (given.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), bench.uid()) == (True, before)
    assert [orphan.sibling for orphan in bench.state("a").orphans] == ["b"]
    bench.done("b")
    assert bench.uid() == before
    bench.done("a", "oneoff", force=True)
    assert (bench.uid(), bench.state("a").orphans) == (before, ())


@pytest.mark.parametrize(("before_a", "before_b"), WAYS)
def test_the_taker_first_waits_for_the_commit_of_the_giver(before_a: str, before_b: str) -> None:
    bench = Bench(before_a, before_b)
    before, first = bench.uid(), bench.state("a").commit
    bench.push("b")
    bench.stage()
    refused = bench.run("b")
    assert (refused.outcome, bench.uid()) == (Outcome.FAILED, before)
    way_out = "promote" if before_a else "apply"
    assert f"it follows commits of its own and is on {first[:12]}" in refused.message
    assert f"`anneal {way_out} a` lets go of it" in refused.message
    bench.done("a", "oneoff")
    bench.done("b", "oneoff", force=True)
    assert bench.uid() == before


def test_what_no_target_declares_any_more_is_deleted() -> None:
    bench = Bench()
    assert bench.uid()
    bench.push()
    bench.stage()
    bench.done("a")
    assert bench.uid() == ""


@pytest.mark.parametrize(("before_a", "before_b"), WAYS)
def test_what_both_declare_at_one_commit_is_let_go_of_by_no_run_and_the_refusal_says_what_to_change(before_a: str, before_b: str) -> None:
    bench = Bench(before_a, before_b)
    before = bench.uid()
    bench.push("a", "b")
    bench.stage()
    bench.done("a", "oneoff")
    refused = bench.run("b")
    assert (refused.outcome, bench.uid()) == (Outcome.FAILED, before)
    assert "belongs to target a, which declares it, too, at a/moved.json:1" in refused.message
    assert "lets go of it" not in refused.message
    assert "take it out of one of the two files" in refused.message
