"""The rows of an exclusive namespace of 5,000 objects: what a drift run takes that finds all of it declared, or most of it undeclared."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from infra.bench.bed import Bed
from infra.bench.objects import mixed
from infra.bench.process_rows import peak
from infra.bench.rows import Row, median

_OBJECTS = 5000
_DECLARED = {"all declared": _OBJECTS, "500 declared": 500}


def exclusive(bed: Bed) -> Iterator[Row]:
    """One drift run, and the peak memory of a process that makes two; beside the same run without total control."""
    for name, declared in _DECLARED.items():
        space = bed.namespace()
        bodies = mixed(_OBJECTS, space)
        if declared < _OBJECTS:
            bed.kubectl("apply", "--server-side", "-f", str(bed.files(bodies[declared:])))
        plain = bed.shop(bodies[:declared])
        plain.run()
        plain.run("drift")
        without = median(partial(plain.run, "drift"), 3)
        shop = bed.again(plain, exclusive=(space,), orphan_grace=86_400.0)
        shop.run("drift")
        orphans = shop.run("drift").counts.get("skipped", 0)
        seconds = median(partial(shop.run, "drift"), 3)
        figures = {"s without": without, "orphans": orphans}
        yield Row(f"exclusive namespace of 5,000 objects, {name}: one drift run", seconds, 2.0, "s", details=figures)
        yield Row(f"the same, {name}: peak RSS", peak(bed, shop, space), 150, "MB")
