"""What the worker remembers of its runs."""

from __future__ import annotations

from typing import Any

from handler.model.event import Job
from handler.queues.pending import MAX_RUNS, Work
from handler.queues.run_index import SHORT, WHOLE, RunIndex


def work(*runs: str, target: str = "shop") -> Work:
    return Work(Job(target, "replay", actor="ci"), runs)


def test_a_run_is_found_by_every_request_that_is_in_it() -> None:
    index = RunIndex()
    index.queued(work("a"))
    index.queued(work("a", "b"))
    for status, note in (("queued", None), ("running", index.running), ("ended", None)):
        if note:
            note(work("a", "b"))
        elif status == "ended":
            index.ended(work("a", "b"), {"outcome": "applied"})
        for request in ("a", "b"):
            entry = index.find(request)
            assert entry
            assert (entry.run, entry.status, entry.requests) == ("a", status, ("a", "b"))
    assert index.find("c") is None


def test_a_run_that_has_begun_isnt_put_back() -> None:
    index = RunIndex()
    index.running(work("a"))
    index.queued(work("a"))
    entry = index.find("a")
    assert entry
    assert entry.status == "running"


def test_the_run_index_evicts_the_oldest_ends_and_nothing_that_waits() -> None:
    index = RunIndex(size=3)
    index.queued(work("waits"))
    for number in range(10):
        index.running(work(f"r{number}", f"m{number}"))
        index.ended(work(f"r{number}", f"m{number}"), {})
    known = [number for number in range(10) if index.find(f"r{number}")]
    assert known == [number for number in range(10) if index.find(f"m{number}")] == [7, 8, 9]
    assert index.find("waits")
    assert len(index._of) == 7


def test_a_run_that_takes_in_more_and_more_requests_stays_bounded() -> None:
    index, merged = RunIndex(), work("0")
    for number in range(1, 1000):
        merged = merged.merged(work(str(number)))
        index.queued(merged)
    assert len(index._of) == MAX_RUNS
    assert index.find("0")
    assert index.find("999")


def test_merged_runs_are_kept_in_the_index_of_their_run_alone() -> None:
    index = RunIndex(size=3)
    index.queued(work("a"))
    index.running(work("b"))
    index.back(work("b"))
    index.running(work("c"))
    index.ended(work("c"), {})
    index.queued(work("a", "b", "c"))
    assert list(index._entries) == ["a"]
    assert [entry.run for entry in map(index.find, "abc") if entry] == ["a"] * 3
    index.ended(work("a", "b", "c"), {})
    for run in "defg":
        index.ended(work(run), {})
    assert list(index._entries) == ["e", "f", "g"]
    assert set(index._of) == {"e", "f", "g"}


def test_of_older_ends_only_the_first_problems_are_remembered() -> None:
    index = RunIndex()
    end: dict[str, Any] = {"outcome": "failed", "problems": [{"message": str(number)} for number in range(200)]}
    end["held"] = {"changes": {"count": 500, "items": list(range(200))}}
    for number in range(WHOLE + 5):
        index.ended(work(f"r{number}"), end)
    ends = [entry.end for number in range(WHOLE + 5) if (entry := index.find(f"r{number}"))]
    assert [len(each["problems"]) for each in ends] == [SHORT] * 5 + [200] * WHOLE
    assert ends[0]["problems"] == end["problems"][:SHORT]
    assert ends[0]["held"] == {"changes": {"count": 500, "items": list(range(SHORT))}}
    assert (ends[0]["outcome"], ends[5]) == ("failed", end)


def test_an_end_that_came_into_another_run_is_left_alone() -> None:
    index = RunIndex()
    index.ended(work("a"), {"problems": list(range(200))})
    index.queued(work("b", "a"))
    for number in range(WHOLE):
        index.ended(work(f"r{number}"), {})
    assert index.find("a") == index.find("b")


def test_each_start_of_the_worker_has_its_own_boot_id() -> None:
    assert RunIndex().boot != RunIndex().boot
