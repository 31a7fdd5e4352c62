"""Many requests at once over the pool; results in the order of the tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from handler.model.errors import AnnealError, LeaseLost

T = TypeVar("T")


def parallel(tasks: Sequence[Callable[[], T]], workers: int = 8) -> list[T | AnnealError]:
    """Run tasks on a few threads; return results in order. An AnnealError is a result; after LeaseLost or another exception none starts."""
    lost: list[LeaseLost] = []
    broken = threading.Event()

    def run(task: Callable[[], T]) -> T | AnnealError:
        if lost or broken.is_set():
            return lost[0] if lost else AnnealError.of("task", "not started")
        try:
            return task()
        except LeaseLost as error:
            lost.append(error)
            return error
        except AnnealError as error:
            return error
        except BaseException:
            broken.set()
            raise

    if len(tasks) < 2:
        return [run(task) for task in tasks]
    with ThreadPoolExecutor(min(workers, len(tasks)), thread_name_prefix="cluster") as pool:
        return list(pool.map(lambda each: each[0].run(run, each[1]), [(copy_context(), task) for task in tasks]))


def together(tasks: Sequence[Callable[[], T]], workers: int = 8) -> list[T]:
    """Run tasks as `parallel` does, and raise the first error in their order: all or nothing, for reads."""
    results: list[T] = []
    for result in parallel(tasks, workers):
        if isinstance(result, AnnealError):
            raise result
        results.append(result)
    return results
