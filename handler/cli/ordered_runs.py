"""Runs of several targets in the order that `dependsOn` gives them: what doesn't wait for another goes at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from graphlib import TopologicalSorter

from handler.config.settings import Target
from handler.model.result import Result


def in_order(targets: Sequence[Target], start: Callable[[Target], Future[Result]]) -> Iterator[Result]:
    """Start each target's run once those of the targets that it depends on have ended, however they did; yield ends as they come.

    A dependency that isn't among `targets` isn't run; whether it is ready its dependant's run finds out, as it does of all.
    """
    known = {target.name: target for target in targets}
    order = TopologicalSorter({target.name: [each for each in target.depends_on if each in known] for target in targets})
    order.prepare()
    running: dict[Future[Result], str] = {}
    while order.is_active():
        running |= {start(known[name]): name for name in order.get_ready()}
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            order.done(running.pop(future))
            yield future.result()
