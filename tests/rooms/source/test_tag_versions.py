"""A range of versions against a real host, and against one that names a million tags."""

from __future__ import annotations

import pytest

from handler.config.git_settings import Revision
from handler.model.errors import RefNotFound
from handler.model.refs import Head
from infra.githost import Host, Work
from tests.rooms.source.open_repository import opened

RANGE = Revision(semver="^1")


def tagged(work: Work, *tags: str, annotated: bool = False) -> str:
    """Commit something and push it under these tags; return the commit."""
    work.write("app.yaml", f"# {tags}\n")
    sha = work.commit(f"Release {tags}")
    for tag in tags:
        work.git("tag", *(["-a", "-m", "release"] if annotated else []), tag)
    work.git("push", "-q", "origin", *tags)
    return sha


@pytest.mark.parametrize("v2", [True, False])
def test_the_highest_tag_in_the_range_is_followed(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    work = Work.of(host, "shop")
    first = tagged(work, "v1.0.0", "release-7", "v9")
    with opened(host.url_of("shop")) as git:
        assert git.head(RANGE) == Head(first, "refs/tags/v1.0.0", first)
        second = tagged(work, "1.1.0", annotated=True)
        tagged(work, "v2.0.0", "v1.2.0-rc.1")
        found = git.head(RANGE)
        assert (found.commit, found.tag, found.oid) == (second, "1.1.0", work.git("rev-parse", "1.1.0"))
        assert git.fetch(found.commit).commit.sha == second
        work.git("push", "-q", "origin", ":refs/tags/1.1.0")
        assert git.head(RANGE).commit == first
        with pytest.raises(RefNotFound, match=r"revision\.semver \^3: no tag of the host is in this range"):
            git.head(Revision(semver="^3"))
        assert git.head(Revision(semver=">=1.2.0-rc.1 <2")).tag == "v1.2.0-rc.1"


@pytest.mark.parametrize("v2", [True, False])
def test_a_repository_without_tags_has_no_version(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    work = Work.of(host, "shop")
    work.write("app.yaml", "")
    work.commit("First")
    work.push()
    with opened(host.url_of("shop")) as git, pytest.raises(RefNotFound, match="no tag of the host"):
        git.head(RANGE)


def test_a_fixed_commit_asks_nobody() -> None:
    with opened("http://127.0.0.1:9/x") as git:
        assert git.head(Revision(commit="a" * 40)) == Head("a" * 40)
