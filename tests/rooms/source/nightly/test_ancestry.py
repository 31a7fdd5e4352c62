"""Whether one commit leads to another, asked of a real `git http-backend`, with and without filters, and compared with git's own answer."""

from __future__ import annotations

import random

import pytest

from infra.githost import Host, Work
from tests.rooms.source.open_repository import opened
from tests.rooms.source.test_ancestry import asked  # noqa: F401 - fixtures, too


@pytest.mark.parametrize("seed", range(3))
def test_every_pair_of_a_tangled_history_is_answered_as_git_does(asked: Host, seed: int) -> None:
    chosen, work = random.Random(seed), Work.of(asked, "shop")
    tree = work.git("mktree")
    commits: list[str] = []
    for number in range(14):
        parents = chosen.sample(commits, min(len(commits), chosen.choice((1, 1, 2, 3)))) if number > 1 else commits[:number]
        commits.append(work.git("commit-tree", tree, "-m", f"{number}", *(part for each in parents for part in ("-p", each))))
        work.push(ref=f"{commits[-1]}:refs/heads/b{number}")
    with opened(asked.url_of("shop")) as git:
        for head in commits:
            known = set(work.git("rev-list", head).split())
            assert {each for each in commits if git.reaches(head, each)} == known
