"""The rows of an exclusive namespace of 5,000 objects: what a drift run takes that finds all of it declared, or most of it undeclared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from handler.engine.planner.exclusive_look import MOST
from infra.bench.bed import Bed, Shop
from infra.bench.objects import mixed
from infra.bench.process_rows import peak
from infra.bench.rows import Row, median

_OBJECTS = 5000
_DECLARED = {"all declared": _OBJECTS, "500 declared": 500}


def exclusive(bed: Bed) -> Iterator[Row]:
    """One drift run, and the peak memory of a process that makes two; beside the same run without total control."""
    for name, declared in _DECLARED.items():
        space = bed.namespace()
        bed.kubectl("create", "secret", "generic", "sh.helm.release.v1.web.v1", "-n", space)
        bodies = mixed(_OBJECTS, space)
        if declared < _OBJECTS:
            bed.kubectl("apply", "--server-side", "-f", str(bed.files(bodies[declared:])))
        plain = bed.shop(bodies[:declared])
        plain.run()
        plain.run("drift")
        without = median(partial(plain.run, "drift"), 3)
        shop = bed.again(plain, exclusive=(space,), orphan_grace=86_400.0)
        undeclared = _OBJECTS - declared
        for _ in range(2):
            figures = {"s without": without, **_looked(shop, space, undeclared)}
        seconds = median(partial(shop.run, "drift"), 3)
        yield Row(f"exclusive namespace of 5,000 objects, {name}: one drift run", seconds, 2.0, "s", details=figures)
        yield Row(f"the same, {name}: peak RSS", peak(bed, shop, space, undeclared), 150, "MB")
        _looked(shop, space, undeclared)


def _looked(shop: Shop, space: str, undeclared: int) -> dict[str, int]:
    """Make a drift run and return its figures. Raises RuntimeError: it hasn't seen all that is undeclared, or its grace doesn't hold it."""
    plan = shop.run("drift").plan
    seen = [change for change in plan.prunes if change.unmarked and change.identity.namespace == space] if plan else []
    figures = {"undeclared": len(seen), "with a time": sum(bool(change.until) for change in seen)}
    looked = plan is not None and any(note.startswith(f"namespace {space}: left alone") for note in plan.notes)
    if not looked or any(change.writes for change in seen) or figures != {"undeclared": undeclared, "with a time": min(undeclared, MOST)}:
        raise RuntimeError(f"of {undeclared} undeclared objects: {figures}, {looked=}")
    return figures
