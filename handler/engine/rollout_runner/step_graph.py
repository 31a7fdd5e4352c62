"""The order of a Rollout's steps: each begins when all that it comes after have ended well, many at once where that is allowed.

Law: one bound holds for the whole Rollout. What comes beyond it begins, in the order it is written in, as others end. What comes after a
step that didn't end well never begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import partial
from itertools import islice

from handler.model.errors import AnnealError
from handler.model.rollout import Group, Rollout, Step

AT_ONCE = 64  # steps under way at once: each has a thread of its own
_BEAT = 0.5  # seconds between two calls of `beat` while steps are under way
Task = Callable[[], None]


def carry_out(rollout: Rollout, act: Callable[[Group, Step], None], beat: Task) -> list[AnnealError]:
    """Act on every step in order; return what those raised that didn't end well. `beat`: called now and then while none may begin."""
    tasks: list[Task] = [partial(act, group, step) for group in rollout.groups for step in group.steps]
    after = _after(rollout)
    left, ended, errors = dict(enumerate(tasks)), set[int](), list[AnnealError]()
    running: dict[Future[None], int] = {}
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="step") as pool:
        while True:
            ready = list(islice((number for number in left if after[number] <= ended), AT_ONCE - len(running)))
            alone = len(ready) == 1 and not running  # it needs no thread
            for number in ready:
                task = left.pop(number)
                running[_done(task) if alone else pool.submit(copy_context().run, task)] = number
            if not running:
                return errors
            if not ready:
                beat()
            _collect(running, ended, errors)


def _after(rollout: Rollout) -> Mapping[int, frozenset[int]]:
    """Return for each step, by its number, the numbers of those that it comes right after."""
    found: dict[int, frozenset[int]] = {}
    before: frozenset[int] = frozenset()
    for group in rollout.groups:
        last, numbers = before if not rollout.parallel else frozenset(), range(len(found), len(found) + len(group.steps))
        for number in numbers:
            found[number] = last
            last = last if group.parallel else frozenset({number})
        if numbers:
            before = frozenset(numbers) if group.parallel else last
    return found


def _done(task: Task) -> Future[None]:
    made: Future[None] = Future()
    try:
        task()
    except AnnealError as error:
        made.set_exception(error)
    else:
        made.set_result(None)
    return made


def _collect(running: dict[Future[None], int], ended: set[int], errors: list[AnnealError]) -> None:
    """Wait a moment until something ends. Raises a mistake of ours, once the others, which it ends too, are through."""
    done, _ = wait(running, _BEAT, FIRST_COMPLETED)
    for future in sorted(done, key=running.__getitem__):
        number, error = running.pop(future), future.exception()
        if error is None:
            ended.add(number)
        elif isinstance(error, AnnealError):
            errors.append(error)
        else:
            raise error
