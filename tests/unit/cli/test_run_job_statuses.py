"""The end of a command whose run a git host shows: it is posted before the command ends, or the person hears that it isn't."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from handler.cli.output import Output
from handler.cli.run_job import run
from handler.cli.session import Session
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.commit_status import CommitStatus
from handler.model.errors import GitUnavailable
from handler.model.event import Job
from handler.model.result import Outcome, Result
from tests.unit.app.shown_commits import A, Records, owed, shop

OWED = "a git host doesn't show yet how this has ended; a server that runs, or the next run, posts it"


class Handled(Records):
    """Records whose target's run ends with a commit that is applied."""

    def run(self, job: Job, _stop: threading.Event) -> Result:
        if not job.dry_run:
            self.put(owed(A, text="3 created"))
        return Result(job.target, Outcome.PLANNED if job.dry_run else Outcome.APPLIED, A, job.trigger, run="run-a")


def refused(_status: CommitStatus) -> None:
    raise GitUnavailable.of("host", "is away")


def ran(records: Handled, *, sources: bool = False, **job: Any) -> Session:
    session = Session(Output(), {})
    session.settings = records.settings
    session.__dict__ |= {"handler": records, "sandbox": SimpleNamespace(start=lambda: None)}
    if sources:
        from_files: Any = SimpleNamespace()
        session.sources["shop"] = from_files
    assert run(session, Job("shop", "oneoff", **job), "applying shop").target == "shop"
    session._sandbox = None
    return session


def test_how_a_command_ends_is_shown_before_it_ends(capsys: pytest.CaptureFixture[str]) -> None:
    records = Handled(shop())
    session = ran(records)
    assert [(each.commit, str(each.state), each.text) for each in records.host.posted] == [(A, "success", "3 created")]
    assert [each.posted for each in records.statuses()] == [True]
    assert OWED not in capsys.readouterr().err
    assert session.events._subscriptions == {}, "nothing goes on behind the command"


def test_what_the_host_does_not_take_stays_in_the_record_and_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    records = Handled(shop())
    records.host.meets = refused
    ran(records)
    assert capsys.readouterr().err.count(OWED) == 1
    assert ([each.posted for each in records.statuses()], records.host.posted) == ([False], [])


@pytest.mark.parametrize(
    ("records", "more"),
    [
        (Handled(shop()), {"dry_run": True}),
        (Handled(shop()), {"sources": True}),
        (Handled(shop(status=False)), {}),
        (Handled(Target("shop", Repository("https://git.example.com/acme/shop.git"), ("shop",))), {}),
    ],
    ids=["a plan", "files", "without statuses", "no feedback"],
)
def test_what_no_host_shows_is_neither_posted_nor_told(capsys: pytest.CaptureFixture[str], records: Handled, more: dict[str, Any]) -> None:
    records.put(owed(A))
    records.host.meets = refused
    ran(records, **more)
    assert OWED not in capsys.readouterr().err
    assert (records.host.posted, records.host.asked) == ([], 0)
