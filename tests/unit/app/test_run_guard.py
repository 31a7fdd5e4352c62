"""A run's end is announced once, before its sender gets it."""

from __future__ import annotations

import pytest

from handler.app.run_guard import announced, guarded
from handler.model.event import Job
from handler.model.result import INTERNAL, Outcome, Result
from handler.model.run_event import RunEvent
from handler.queues.pending import Work

JOB = Work(Job("shop", "push", actor="ann"), ("shop.1", "shop.2")).begun()


def fails(_: Job) -> Result:
    raise ValueError("a riddle")


def test_the_event_of_a_run_names_the_requests_that_were_merged_into_it() -> None:
    heard: list[RunEvent] = []
    result = announced(lambda job: Result(job.target, Outcome.APPLIED, run=job.run), heard.append)(JOB)
    ((job, ended),) = [(event.job, event.result) for event in heard]  # type: ignore[union-attr] # only ends are announced
    assert (job.run, job.joined, ended) == ("shop.1", ("shop.2",), result)


def test_a_guarded_run_that_raises_has_an_end_and_an_unguarded_one_none() -> None:
    heard: list[RunEvent] = []
    result = announced(guarded(fails), heard.append)(JOB)
    assert (len(heard), result.code) == (1, INTERNAL)
    with pytest.raises(ValueError, match="riddle"):
        announced(fails, heard.append)(JOB)
    assert len(heard) == 1
