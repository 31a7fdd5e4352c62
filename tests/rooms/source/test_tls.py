"""TLS on loopback under a private authority: who is trusted, what is reported about the rest, and what happens when trust rotates."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from handler.model.errors import ConfigInvalid
from infra.githost import Host, Work
from tests.rooms.source.certificates import Authority
from tests.rooms.source.open_repository import CANARY, Secret, following, opened

MAIN = "refs/heads/main"


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "ours")


def private(tmp_path: Path, certificate: Path) -> tuple[Host, str]:
    """Make a host that takes only CANARY, with one commit."""
    host = Host(tmp_path / "git", certificate=certificate)
    host.accounts = {"deployer": CANARY}
    work = Work.of(host, "shop")
    work.write("app.yaml", "kind: ConfigMap\n")
    sha = work.commit("First")
    work.push()
    return host, sha


def test_a_git_host_under_a_private_ca_is_trusted_by_the_ca_file(tmp_path: Path, ours: Authority) -> None:
    host, sha = private(tmp_path, ours.certificate("host"))
    with host, opened(host.url_of("shop"), secret=Secret(), ca_file=str(ours.file)) as git:
        assert git.fetch(git.head(following(MAIN)).commit).commit.sha == sha


def another(directory: Path, ours: Authority) -> tuple[Path, Path]:
    return ours.certificate("host"), Authority(directory, "theirs").file


def expired(_: Path, ours: Authority) -> tuple[Path, Path]:
    return ours.certificate("host", since=-3, days=-1), ours.file


def early(_: Path, ours: Authority) -> tuple[Path, Path]:
    return ours.certificate("host", since=1, days=2), ours.file


def elsewhere(_: Path, ours: Authority) -> tuple[Path, Path]:
    return ours.certificate("host", "127.0.0.2"), ours.file


def no_authority(directory: Path, ours: Authority) -> tuple[Path, Path]:
    file = directory / "none.pem"
    file.write_text("nothing\n")
    return ours.certificate("host"), file


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (another, r"not trusted \(unable to get local issuer certificate\); set repository.tls.caFile"),
        (expired, r"not trusted \(certificate has expired\); renew the host's certificate"),
        (early, r"not trusted \(certificate is not yet valid\); .* clock"),
        (elsewhere, r"not trusted \(IP address mismatch.*\); write the host in its URL as its certificate names it"),
        (no_authority, r"not trusted \(.*\); set repository.tls.caFile"),
    ],
)
def test_a_host_that_isnt_trusted_gets_no_credentials(
    tmp_path: Path, ours: Authority, make: Callable[[Path, Authority], tuple[Path, Path]], words: str
) -> None:
    certificate, ca_file = make(tmp_path, ours)
    host, _ = private(tmp_path, certificate)
    with (
        host,
        opened(host.url_of("shop"), secret=Secret(), ca_file=str(ca_file)) as git,
        pytest.raises(ConfigInvalid, match=words) as caught,
    ):
        git.head(following(MAIN))
    assert host.requests == []
    assert CANARY not in repr(caught.value)


def test_the_ca_file_is_reread_while_we_run(tmp_path: Path, ours: Authority) -> None:
    trusted = tmp_path / "trusted.pem"
    shutil.copy(ours.file, trusted)
    host, sha = private(tmp_path, ours.certificate("host"))
    with host, opened(host.url_of("shop"), secret=Secret(), ca_file=str(trusted)) as git:
        assert git.head(following(MAIN)).commit == sha
        trusted.write_bytes(Authority(tmp_path, "theirs").file.read_bytes() + b"\n")
        with pytest.raises(ConfigInvalid, match="not trusted"):
            git.head(following(MAIN))  # although a connection under the former authority was open
        trusted.write_bytes(trusted.read_bytes() + ours.file.read_bytes())
        assert git.head(following(MAIN)).commit == sha
