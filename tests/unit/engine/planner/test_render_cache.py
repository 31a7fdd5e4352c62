"""Which renders are kept when there are too many."""

from __future__ import annotations

from dataclasses import dataclass

from handler.engine.planner.render_cache import RenderCache


@dataclass
class Rendered:
    size: int

    def forget(self) -> None:
        self.size = 0


def test_the_render_cache_evicts_the_least_recently_run() -> None:
    renders = {name: Rendered(4) for name in "abc"}
    kept = RenderCache(10)
    for name in "abac":
        kept.ran(name, renders[name])
    assert {name: each.size for name, each in renders.items()} == {"a": 4, "b": 0, "c": 4}


def test_a_render_above_the_size_limit_is_kept_alone() -> None:
    small, large = Rendered(1), Rendered(100)
    kept = RenderCache(10)
    kept.ran("small", small)
    kept.ran("large", large)
    assert (small.size, large.size) == (0, 100)
    small.size = 1
    kept.ran("small", small)
    assert (small.size, large.size) == (1, 0)


def test_an_evicted_render_isnt_counted_twice_when_cached_again() -> None:
    first, second = Rendered(6), Rendered(6)
    kept = RenderCache(10)
    for _ in range(3):
        kept.ran("first", first)
        kept.ran("second", second)
        assert (first.size, second.size) == (0, 6)
        first.size = 6
        kept.ran("first", first)
        assert (first.size, second.size) == (6, 0)
        second.size = 6


def test_a_target_that_is_gone_leaves_nothing() -> None:
    kept = RenderCache(10)
    kept.ran("gone", Rendered(9))
    kept.drop("gone")
    kept.drop("never")
    other = Rendered(9)
    kept.ran("other", other)
    kept.ran("last", Rendered(1))
    assert other.size == 9
    assert list(kept._kept) == ["other", "last"]
