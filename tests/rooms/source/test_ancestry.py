"""Whether one commit leads to another, asked of a real `git http-backend`, with and without filters, and compared with git's own answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.config.git_settings import Revision
from handler.model.errors import RefNotFound, SourceRefused
from infra.githost import Host, Work
from tests.rooms.source.open_repository import PATIENT, opened

GONE = "1" * 40


@pytest.fixture(params=["filters", "no filters", "version 0"])
def asked(request: pytest.FixtureRequest, host: Host) -> Host:
    """A host of each kind."""
    host.filters = request.param == "filters"
    host.protocol_v2 = request.param != "version 0"
    return host


def line(work: Work, count: int, name: str = "count") -> list[str]:
    found = []
    for number in range(count):
        work.write(name, f"{number}\n")
        found.append(work.commit(f"{name} {number}"))
    return found


def test_a_commit_leads_to_itself_and_to_all_before_it_and_to_none_after_it(asked: Host) -> None:
    work = Work.of(asked, "shop")
    first, second, third = line(work, 3)
    work.push()
    with opened(asked.url_of("shop")) as git:
        assert [git.reaches(third, each) for each in (first, second, third)] == [True, True, True]
        assert [git.reaches(first, each) for each in (second, third)] == [False, False]


def test_a_merge_leads_to_both_of_its_parents(asked: Host) -> None:
    work = Work.of(asked, "shop")
    (base,) = line(work, 1)
    work.git("checkout", "-q", "-b", "side")
    side = line(work, 2, "side")
    work.git("checkout", "-q", "main")
    (own,) = line(work, 1, "own")
    work.git("merge", "-q", "--no-ff", "-m", "Merged", "side")
    work.push()
    with opened(asked.url_of("shop")) as git:
        assert all(git.reaches(work.head(), each) for each in (base, own, *side))
        assert not git.reaches(own, side[0])
        assert not git.reaches(side[1], own)


def test_what_lies_between_two_commits_is_said_with_its_parents_as_git_says_it(asked: Host) -> None:
    work = Work.of(asked, "shop")
    (base,) = line(work, 1)
    work.git("checkout", "-q", "-b", "side")
    line(work, 2, "side")
    work.git("checkout", "-q", "main")
    line(work, 1, "own")
    work.git("merge", "-q", "--no-ff", "-m", "Merged", "side")
    work.push()
    rows = (row.split() for row in work.git("rev-list", "--parents", f"{base}..main").splitlines())
    with opened(asked.url_of("shop")) as git:
        assert git.between(base, work.head()) == {sha: tuple(parents) for sha, *parents in rows}
        assert git.between(work.head(), work.head()) == {}


def test_what_a_forced_push_has_left_behind_is_not_reached(asked: Host) -> None:
    work = Work.of(asked, "shop")
    base, left = line(work, 2)
    work.push()
    work.git("branch", "kept")
    work.push(ref="kept:refs/heads/kept")  # another branch has it still, so the host does
    work.git("reset", "-q", "--hard", base)
    (other,) = line(work, 1, "other")
    work.push(force=True)
    with opened(asked.url_of("shop")) as git:
        assert not git.reaches(other, left)
        assert not git.reaches(left, other)
        assert git.reaches(other, base)


def test_unrelated_histories_lead_nowhere(asked: Host) -> None:
    work = Work.of(asked, "shop")
    (main,) = line(work, 1)
    work.push()
    work.git("checkout", "-q", "--orphan", "apart")
    (apart,) = line(work, 1, "apart")
    work.push(ref="apart:refs/heads/apart")
    with opened(asked.url_of("shop")) as git:
        assert not git.reaches(main, apart)
        assert not git.reaches(apart, main)


def test_a_commit_that_the_host_has_not_is_said_to_be_gone(host: Host) -> None:
    work = Work.of(host, "shop")
    (sha,) = line(work, 1)
    work.push()
    with opened(host.url_of("shop")) as git:
        for pair in ((sha, GONE), (GONE, sha)):
            with pytest.raises(RefNotFound):
                git.reaches(*pair)
        with pytest.raises(SourceRefused, match="not a full commit id"):
            git.reaches(sha, sha[:12])
        with pytest.raises(SourceRefused, match="is not a commit"):
            git.reaches(sha, work.git("rev-parse", "HEAD:count"))


def test_an_answer_is_asked_for_once_and_holds_no_file(host: Host) -> None:
    work = Work.of(host, "shop")
    first, *_, last = line(work, 40)
    work.push()
    with opened(host.url_of("shop")) as git:
        assert git.reaches(last, last)
        assert not host.requests
        assert git.reaches(last, first)
        (between,) = [each for each in host.requests if b"have " in each.body]
        assert b"filter tree:0" in between.body
        before = len(host.requests)
        assert git.reaches(last, first)
        assert len(host.requests) == before


def test_more_than_is_allowed_between_two_commits_is_refused_with_the_way_out(host: Host) -> None:
    work = Work.of(host, "shop")
    first, *_, last = line(work, 30)
    work.push()
    with opened(host.url_of("shop"), limits=replace(PATIENT, objects=20)) as git:
        with pytest.raises(SourceRefused, match=f"whether {last[:12]} leads to it isn't known: .*more than 20"):
            git.reaches(last, first)
        host.filters = False
    with (
        opened(host.url_of("shop"), limits=replace(PATIENT, objects=20)) as git,
        pytest.raises(SourceRefused, match=r"git config uploadpack\.allowFilter true"),
    ):
        git.reaches(last, first)


def test_a_branch_proves_what_its_head_leads_to_and_a_range_of_versions_each_commit_that_a_tag_in_it_names(asked: Host) -> None:
    """A fix of an older version lies on a branch of its own: the highest tag doesn't lead to it."""
    work = Work.of(asked, "shop")
    base, first = line(work, 2)
    work.git("tag", "v1.1.0")
    work.git("checkout", "-q", "-b", "fix", base)
    (fixed,) = line(work, 1, "fix")
    work.git("tag", "-a", "-m", "release", "v1.0.1")
    (strange,) = line(work, 1, "strange")
    work.git("tag", "v2.0.0")
    work.git("push", "-q", "origin", "main", "--tags", "fix:refs/pull/1/head")
    with opened(asked.url_of("shop")) as git:
        commits = (base, first, fixed, strange)
        assert [git.proves(Revision(branch="main"), each) for each in commits] == [True, True, False, False]
        assert [git.proves(Revision(semver="^1"), each, first) for each in commits] == [True, True, True, False]
        assert [git.proves(Revision(tag="v1.0.1"), each) for each in commits] == [True, False, True, False]
        assert [git.proves(Revision(commit=first), each) for each in commits] == [True, True, False, False]
        tag = work.git("rev-parse", "v1.0.1")
        with pytest.raises(SourceRefused, match="is not a commit"):
            git.proves(Revision(semver="^1"), tag)
