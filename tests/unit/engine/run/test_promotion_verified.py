"""What a follower does with a proven commit that isn't signed as its `verify` asks: it stays, says so, and takes the next one that is."""

from __future__ import annotations

import pytest

from handler.model.errors import CommitUnverified
from handler.model.result import Outcome
from tests.fakes.git_host import HostSource
from tests.unit.engine.promoting_targets import Line, promoted_once


@pytest.fixture
def unsigned() -> set[str]:
    return set()


@pytest.fixture
def line(unsigned: set[str]) -> Line:
    """Production is on the first commit, and takes none of the unsigned ones."""

    def judge(asked: str) -> None:
        what, _, sha = asked.partition(" ")
        if what == "fetch" and sha in unsigned:
            raise CommitUnverified.of(f"commit {sha}", "is not signed", place="target prod: verify", fix="sign it: git commit --amend -S")

    made = promoted_once()
    made.restart()
    made.handler._options.sources["prod"] = HostSource(made.host, judge)  # type: ignore[index]  # a dict, as `engine` makes it
    return made


def test_the_newest_proven_commit_is_refused_loudly_and_no_older_one_takes_its_place(line: Line, unsigned: set[str]) -> None:
    first, second = line.state("prod").commit, line.proven("2")
    unsigned.add(third := line.proven("3"))
    for _ in range(2):  # refused, and refused still
        refused = line.run("prod")
        assert (refused.outcome, refused.code, refused.who) == (Outcome.FAILED, "commit-unverified", "author")
        assert third[:12] in str(refused.problems[0])
    assert (line.state("prod").commit, line.value("prod")) == (first, "1")
    status = line.state("prod").status
    assert status.phase == "failed"
    assert status.message == f"target prod: verify: commit {third}: is not signed; sign it: git commit --amend -S"
    line.done("prod", "oneoff", promote=True, commit=second)  # a person may take the older one
    assert (line.state("prod").commit, line.value("prod")) == (second, "2")
    assert line.run("prod").code == "commit-unverified", "what it follows is unsigned still"


def test_what_is_proven_after_an_unsigned_commit_is_taken_by_the_next_tick(line: Line, unsigned: set[str]) -> None:
    unsigned.add(line.proven("2"))
    assert line.run("prod").code == "commit-unverified"
    third = line.proven("3")
    assert line.on() == third
    assert (line.value("prod"), line.state("prod").status.phase) == ("3", "applied")
