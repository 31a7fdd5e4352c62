"""Against a real sshd and `git shell`: what comes, what ends early, and that nothing is left behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handler.model.errors import GitUnavailable, RefNotFound
from handler.source.host_limits import HostLimits
from tests.rooms.source.open_repository import PATIENT, following
from tests.rooms.source.ssh_repository import Shop
from tests.rooms.source.test_ssh import MAIN


@pytest.mark.parametrize("v2", [True, False])
def test_a_branch_is_resolved_and_its_commit_fetched(shop: Shop, v2: bool) -> None:
    shop.host.protocol_v2 = v2
    shop.work.git("tag", "-a", "v1", "-m", "one")
    shop.work.git("push", "-q", "origin", "v1")
    with shop.opened() as git:
        assert [git.head(following(MAIN)).commit, git.head(following("refs/tags/v1")).commit] == [shop.sha, shop.sha]
        tree = git.fetch(shop.sha, "deploy")
        entries = list(tree.walk("deploy"))
        assert tree.blobs(entry.oid for entry in entries) == {entries[0].oid: b"kind: Deployment\n"}
        with pytest.raises(RefNotFound):
            git.head(following("refs/heads/none"))
        with pytest.raises(RefNotFound, match=r"commit 1{40}"):
            git.fetch("1" * 40)
        assert git.head(following(MAIN)).commit == shop.sha


@pytest.mark.parametrize("limits", [replace(PATIENT, read=1, total=10), replace(PATIENT, total=2)])
@pytest.mark.parametrize(
    "serve", ["sleep 60", 'git shell -c "$SSH_ORIGINAL_COMMAND" | (dd bs=1 count=50 status=none; sleep 60)', "yes 0004 >&2"]
)
def test_a_slow_host_ends_at_the_read_timeout_or_the_deadline(shop: Shop, serve: str, limits: HostLimits) -> None:
    shop.host.serve = serve
    with shop.opened(limits=limits) as git, pytest.raises(GitUnavailable, match=r"in time|longer than"):
        git.fetch(shop.sha)
