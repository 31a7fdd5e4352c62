"""A run of an instance whose object isn't there: no failure where only a change of it asked for the run."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from handler.app.instances.instance_run import run
from handler.model.errors import NoInstance
from handler.model.event import Job
from handler.model.result import Outcome, Result


class Gone:
    """A registry that knows no instance."""

    leaving: dict[str, Any] = {}  # noqa: RUF012 - it stays empty

    def find(self, name: str) -> None:
        raise NoInstance.of(f"target {name}", "is no instance: there is no Widget of that name")


def ran(trigger: Any) -> Result:
    job = Job("shop.ns.a", trigger)
    return run(None, Gone(), job, threading.Event(), lambda _: Result("shop.ns.a", Outcome.APPLIED))  # type: ignore[arg-type]  # unused


@pytest.mark.parametrize("trigger", ["resource", "tick", "drift"])
def test_an_object_that_went_before_its_run_began_is_no_failure(trigger: str) -> None:
    assert (ran(trigger).outcome, "went before" in ran(trigger).message) == (Outcome.UNCHANGED, True)


def test_who_names_an_instance_that_there_is_none_of_is_told() -> None:
    with pytest.raises(NoInstance):
        ran("replay")
