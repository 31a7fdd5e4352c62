"""What merging a pull request makes, of a real `git http-backend`: which commits it is made of, and when it isn't certain."""

from __future__ import annotations

import pytest

from handler.app.pull_requests.merge_result import MergeResult, merge_result
from handler.model.errors import SourceRefused
from handler.model.pull_request import PullRequest
from infra.githost import Host, Work
from tests.fakes.pull_request_host import PullRequestHost
from tests.rooms.source.open_repository import opened


def committed(work: Work, branch: str, **files: str | None) -> str:
    """Write files on a branch, None: remove one; return the commit."""
    work.git("checkout", "-q", branch)
    for name, text in files.items():
        path = f"{name}.yaml"
        if text is None:
            work.git("rm", "-q", path)
        else:
            work.write(path, text)
    return work.commit(branch)


def made(host: Host, work: Work, head: str) -> MergeResult:
    for branch in ("main", "change"):
        work.push(ref=f"{branch}:refs/heads/{branch}", force=True)
    api = PullRequestHost(lambda base, of: work.git("merge-base", base, of).strip())
    with opened(host.url_of("shop")) as git:
        return merge_result(git, api, PullRequest(12, head, "main", "bob"), "")


@pytest.fixture
def work(host: Host) -> Work:
    work = Work.of(host, "shop")
    work.write("guard.yaml", "kept").write("a.yaml", "1").commit("first")
    work.git("branch", "change")
    return work


def test_a_branch_that_took_its_base_in_is_merged_where_both_part(host: Host, work: Work) -> None:
    committed(work, "main", b="1")
    committed(work, "change", c="1")
    work.git("merge", "-q", "--no-ff", "-m", "Merged main", "main")
    head = committed(work, "change", d="1")
    base = committed(work, "main", e="1")
    found = made(host, work, head)
    assert (found.base, found.diverged) == (base, True)
    assert {entry.path for entry in found.then.walk("")} == {f"{name}.yaml" for name in ("guard", "a", "b", "c", "d", "e")}


def test_where_both_have_merged_each_other_it_isnt_certain_what_both_have_in_common(host: Host, work: Work) -> None:
    """Git merges by all such commits: one of them alone may keep what the head has removed."""
    first = committed(work, "change", h="1")
    before = committed(work, "main", m="1")
    work.git("merge", "-q", "--no-ff", "-m", "Merged change", first)
    work.git("checkout", "-q", "change")
    work.git("merge", "-q", "--no-ff", "--no-commit", before)
    work.git("rm", "-q", "guard.yaml")
    work.git("commit", "-q", "-m", "Merged main of before")
    assert len(work.git("merge-base", "--all", "main", "change").split()) == 2
    head = work.git("rev-parse", "change").strip()
    with pytest.raises(SourceRefused, match="have merged each other"):
        made(host, work, head)
