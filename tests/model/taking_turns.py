"""Threads that take turns. One runs at a time, and only while the conductor waits for it: what happens is decided, never raced.

A task parks wherever the outside is met: at a request, at a sleep, at a lock that another holds. The conductor says who goes on. Time
is a number that the conductor moves; nothing here waits for a real clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from handler.state.lease import Instant

START = 1_800_000_000.0


class Killed(BaseException):
    """The process of this thread is dead: nothing it does reaches the outside."""


@dataclass
class Machine:
    """One process' machine. `slept`: how long its monotonic clock stood still; `jumped`: how far its wall clock is off."""

    name: str
    slept: float = 0.0
    jumped: float = 0.0
    dead: bool = False
    tasks: list[Task] = field(default_factory=list)


class Task:
    """A thread of a machine. `meets`: what it is parked at; `due`: until when it sleeps."""

    def __init__(self, machine: Machine, body: Callable[[], None], name: str = "run") -> None:
        self.machine = machine
        self.name = name
        self.meets: Any = None
        self.due: float | None = None
        self.event: threading.Event | None = None
        self.lock: TurnLock | None = None
        self.order: Any = None
        self.ended = False
        self.mistake: BaseException | None = None
        self._body = body
        self._go, self._back = threading.Lock(), threading.Lock()  # held, but for a moment: a Semaphore takes several times as long
        self._go.acquire()
        self._back.acquire()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        machine.tasks.append(self)

    def resume(self, order: Any = None) -> None:
        """Let it run until it parks again or ends. Raises what it raised, if that was a mistake."""
        self.order = order
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()
        if self.mistake:
            raise self.mistake

    @property
    def waits(self) -> bool:
        """Whether it can't go on yet: time must pass, or another must let go of a lock."""
        sleeps = self.due is not None and self.due > world().now and not (self.event and self.event.is_set())
        return sleeps or (self.lock is not None and self.lock.taken_from(self))

    def park(self) -> Any:
        """Give the turn back (on the task's own thread); return what the conductor orders."""
        if self.machine.dead:
            raise Killed
        self._back.release()
        self._go.acquire()
        if self.machine.dead:
            raise Killed
        return self.order

    def _run(self) -> None:
        _here.task = self
        try:
            self._body()
        except Killed:
            pass
        except BaseException as mistake:  # noqa: BLE001 - it is raised again by the conductor
            self.mistake = mistake
        finally:
            self.ended = True
            if self in self.machine.tasks:
                self.machine.tasks.remove(self)
            self._back.release()


class _Here(threading.local):
    task: Task | None = None


_here = _Here()


def here() -> Task | None:
    """The task of this thread."""
    return _here.task


@dataclass
class World:
    """The true time."""

    now: float = START


_worlds = [World()]


def world() -> World:
    """The present one."""
    return _worlds[-1]


def new_world() -> World:
    """Begin anew."""
    _worlds[:] = [World()]
    return _worlds[0]


def sleep(seconds: float, event: threading.Event | None = None) -> bool:
    """Park until that time or until the event is set; return whether it is."""
    task = here()
    if task is None:
        world().now += seconds
        return bool(event and event.is_set())
    task.due, task.event = world().now + max(seconds, 0.0), event
    while not (event and event.is_set()) and world().now < task.due:
        task.park()
    task.due = task.event = None
    return bool(event and event.is_set())


class TurnEvent(threading.Event):
    """An event on which a task waits by parking."""

    def wait(self, timeout: float | None = None) -> bool:
        return sleep(1e9 if timeout is None else timeout, self)


class TurnLock:
    """An RLock between tasks."""

    def __init__(self) -> None:
        self._owner: Task | None = None
        self._depth = 0

    def taken_from(self, task: Task) -> bool:
        return self._depth > 0 and self._owner is not task

    def __enter__(self) -> None:
        task = here()
        while task and self.taken_from(task):
            task.lock = self
            task.park()
        if task:
            task.lock = None
        self._owner, self._depth = task, self._depth + 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


class TurnThread:
    """A thread that the code under test starts: another task of the same machine, run at once until it first parks."""

    def __init__(self, target: Callable[[], None], name: str, daemon: bool) -> None:
        starter = here()
        assert starter
        self._task = Task(starter.machine, target, name)

    def start(self) -> None:
        self._task.resume()


class TurnTime:
    """As much of the module `time` as is used, on the clocks of the task's machine."""

    @staticmethod
    def time() -> float:
        task = here()
        return world().now + (task.machine.jumped if task else 0.0)

    @staticmethod
    def monotonic() -> float:
        task = here()
        return world().now - (task.machine.slept if task else 0.0)

    @staticmethod
    def sleep(seconds: float) -> None:
        sleep(seconds)


class TurnClock:
    """`handler.state.lease.Clock` on the machine of the task."""

    def now(self) -> Instant:
        return Instant(TurnTime.monotonic(), world().now, TurnTime.time())

    def wait(self, event: threading.Event, seconds: float) -> bool:
        return sleep(seconds, event)
