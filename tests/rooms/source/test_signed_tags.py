"""A signed tag vouches for a name, not for what is deployed: the commit itself must be signed."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.config.git_settings import Verify
from handler.model.errors import CommitUnverified
from handler.source.signatures.verified_source import TrustedKeys, VerifiedSource
from infra.githost import Host, Work
from tests.rooms.source.open_repository import following, opened
from tests.signing import SSH, public, signed_by_ssh, ssh_key


def test_a_signed_tag_of_an_unsigned_commit_isnt_enough_and_an_unsigned_one_of_a_signed_commit_is(host: Host, tmp_path: Path) -> None:
    key, work = ssh_key(tmp_path, "release"), Work.of(host, "shop").write("app.yaml", "kind: ConfigMap\n")
    unsigned = work.commit("Unsigned")
    work.git(*SSH, "-c", f"user.signingkey={key}", "tag", "-s", "v1", "-m", "one", unsigned)
    signed = signed_by_ssh(work, key, "Signed")
    work.git("tag", "-a", "v2", "-m", "two", signed)
    work.git("push", "-q", "origin", "v1", "v2")
    with opened(host.url_of("shop")) as git:
        strict = VerifiedSource(git, TrustedKeys.of(Verify((public(key),)), "strict"))
        assert (git.head(following("refs/tags/v1")).commit, git.head(following("refs/tags/v2")).commit) == (unsigned, signed)
        with pytest.raises(CommitUnverified, match="is not signed"):
            strict.fetch(unsigned)
        assert strict.fetch(signed).commit.subject == "Signed"
