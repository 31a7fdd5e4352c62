"""Several threads change one record: who comes while it is written shares the next write."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pytest

from handler.state.write_batcher import WriteBatcher
from tests.patience import until

COUNT = 40
Names = tuple[str, ...]


@dataclass
class Register:
    """A record of names; its first write waits until the others have all come."""

    names: Names = ()
    writes: list[Names] = field(default_factory=list)
    fails: Callable[[], bool] = lambda: False
    batcher: WriteBatcher[Names] = field(init=False)

    def __post_init__(self) -> None:
        self.batcher = WriteBatcher(self.write)

    def write(self, change: Callable[[Names], Names]) -> None:
        until(lambda: bool(self.writes) or len(self.batcher._coming.changes) == COUNT - 1)
        self.names = change(self.names)
        self.writes.append(self.names)
        if self.fails():
            raise OSError("the disk is full")

    def enter(self, name: str) -> Names:
        """Enter a name; return what was written by the time this returns."""
        self.batcher.put(lambda names: (*names, name))
        return self.names


NUMBERS = [str(number) for number in range(COUNT)]


def test_changes_during_a_write_are_one_batch_and_return_when_it_is_written() -> None:
    register = Register()
    with ThreadPoolExecutor(COUNT) as pool:
        seen = list(pool.map(register.enter, NUMBERS))
    assert [len(names) for names in register.writes] == [1, COUNT]
    assert sorted(register.names) == sorted(NUMBERS)
    assert all(name in names for name, names in zip(NUMBERS, seen, strict=True))


def test_changes_one_after_the_other_are_a_write_each() -> None:
    register = Register(writes=[()])
    assert [register.enter(name) for name in "abc"] == [("a",), ("a", "b"), ("a", "b", "c")]
    assert len(register.writes) == 4


def test_a_failed_write_fails_for_its_whole_batch_and_for_no_later_one() -> None:
    register = Register()
    register.fails = lambda: len(register.writes) == 2
    failed: list[str] = []

    def enter(name: str) -> None:
        try:
            register.enter(name)
        except OSError:
            failed.append(name)

    with ThreadPoolExecutor(COUNT) as pool:
        list(pool.map(enter, NUMBERS))
    assert len(failed) == COUNT - 1
    assert "later" in register.enter("later")


def test_a_change_may_be_made_again_on_a_newer_record() -> None:
    made: list[Names] = []
    batcher: WriteBatcher[Names] = WriteBatcher(lambda change: made.extend([change(()), change(("newer",))]))
    batcher.put(lambda names: (*names, "a"))
    assert made == [("a",), ("newer", "a")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ZeroDivisionError])
def test_no_thread_waits_on_after_a_write_ended_by_any_exception(error: type[BaseException]) -> None:
    def write(_: Callable[[Names], Names]) -> None:
        raise error

    batcher: WriteBatcher[Names] = WriteBatcher(write)
    for _ in range(2):
        with pytest.raises(error):
            batcher.put(lambda names: names)
