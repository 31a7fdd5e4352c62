"""What configured targets claim of a target that ends: by their heads, and by what they have applied last."""

from __future__ import annotations

from handler.app.retiring import retire_of
from handler.engine.retire import Retirement
from tests.unit.engine.two_targets import A, B, Bench, X, document


def looked(bench: Bench) -> Retirement:
    """Take a out of the configuration, and return what its end would do."""
    bench.targets = (B,)
    bench.configure()
    return retire_of(bench.handler, A, prune=True).look()


def test_what_a_target_declares_at_its_head_isnt_deleted() -> None:
    bench = Bench()
    bench.push(a={"x": document("x")})
    bench.applied("a", "b")
    bench.push(b={"x": document("x")})
    shown = looked(bench)
    assert {change.identity: change.reason for change in shown.staying} == {X: "let go: target b declares it"}


def test_what_a_target_has_applied_last_is_kept_until_it_has_applied_its_head() -> None:
    bench = Bench()
    bench.push(b={"x": document("x")})
    bench.applied("b", "a")
    bench.push(a={"x": document("x")})
    bench.applied("a")
    bench.push()
    reason = "let go: target b declares it in what it has applied last: `anneal apply b` before this, and it goes"
    assert {change.identity: change.reason for change in looked(bench).staying} == {X: reason}
    bench.applied("b")
    shown = looked(bench)
    assert not shown.staying
    assert X in {change.identity for change in shown.going}
