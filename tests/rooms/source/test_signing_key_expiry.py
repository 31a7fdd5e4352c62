"""A key that ends under a running handler: what it signed stops counting at the next run, also the commit that was prepared last."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path

import pytest

from handler.app.build import Handler
from handler.config.git_settings import Repository, Revision, Verify
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.errors import CommitUnverified
from handler.model.event import Job
from handler.model.result import Outcome
from handler.source.signatures import openpgp
from handler.source.signatures.verified_source import TrustedKeys, VerifiedSource
from infra.githost import Host, Work
from tests.fakes.apiserver import ApiServer, FakeConnection
from tests.fakes.sandbox import InProcess
from tests.rooms.source.open_repository import opened
from tests.signing import Gpg, public, signed_by_ssh, ssh_key


class Later(datetime):
    """The clock, three days on."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a plain datetime will do
        return datetime.now(tz) + timedelta(days=3)


@pytest.fixture
def gpg() -> Iterator[Gpg]:
    with Gpg() as running:
        yield running


@pytest.fixture
def work(host: Host) -> Work:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"key": "value"}}
    return Work.of(host, "shop").write("app.yaml", json.dumps(document))


def fetches(host: Host) -> int:
    return sum(b"command=fetch" in request.body for request in host.requests)


def test_a_drift_run_refuses_the_commit_it_prepared_last_once_its_key_has_ended(
    host: Host, work: Work, gpg: Gpg, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = gpg.key("ends@example.invalid", "ed25519", "2d")
    gpg.commit(work, key, "Signed")
    work.push()
    target = Target("a", Repository(host.url_of("shop")), ("default",), namespace="default", verify=Verify(pgp=(gpg.public(key),)))
    handler = Handler(Settings((target,), interval=3600.0), Secrets(), InProcess(), {})  # type: ignore[arg-type]  # its one method that is called
    connection = FakeConnection(ApiServer(time.time))
    handler._connection = lambda target: connection  # type: ignore[method-assign]  # the seam
    assert handler.run(Job("a", "tick")).outcome is Outcome.APPLIED
    before = fetches(host)
    good = handler.run(Job("a", "drift"))
    assert good.code == "", good
    monkeypatch.setattr(openpgp, "datetime", Later)
    ended = handler.run(Job("a", "drift"))
    assert (ended.outcome, ended.code) == (Outcome.FAILED, "commit-unverified")
    assert "which expired on" in ended.message
    assert fetches(host) == before, "it is judged by what is kept"


def test_the_last_commits_are_judged_again_without_the_host_and_others_with_it(host: Host, work: Work, tmp_path: Path) -> None:
    key = ssh_key(tmp_path, "release")
    shas = [signed_by_ssh(work.write("n", str(number)), key, f"Number {number}") for number in range(5)]
    large = signed_by_ssh(work, key, "Large\n\n" + "x" * 70_000)
    work.push()
    with opened(host.url_of("shop")) as git:
        strict = VerifiedSource(git, TrustedKeys.of(Verify((public(key),)), "strict"))
        for sha in (*shas, shas[1]):
            strict.fetch(sha)
    with opened(host.url_of("shop")) as other:
        strict._source = other
        before = fetches(host)
        for sha in shas[1:]:
            strict.recheck(sha)
        assert fetches(host) == before
        for number, sha in enumerate((shas[0], large), 1):
            strict.recheck(sha)
            assert fetches(host) == before + number
        other.recheck("1" * 40)
        strict._keys = TrustedKeys.of(Verify((public(ssh_key(tmp_path, "next")),)), "strict")
        for sha in (shas[4], large, strict.head(Revision()).commit):
            with pytest.raises(CommitUnverified, match="not among the configured"):
                strict.recheck(sha)
        assert fetches(host) == before + 2
