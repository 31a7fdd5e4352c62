"""Against a real sshd and `git shell`: what comes, what ends early, and that nothing is left behind."""

from __future__ import annotations

import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from handler.model.errors import AccessDenied, AnnealError, GitUnavailable, SourceRefused
from handler.source.host_limits import HostLimits
from infra.sshhost import SshHost
from tests.rooms.source.open_repository import PATIENT, following
from tests.rooms.source.ssh_repository import Shop

MAIN = "refs/heads/main"
ASKED = 'git shell -c "$SSH_ORIGINAL_COMMAND"'


def test_an_operation_has_one_connection_and_the_first_one_no_more(shop: Shop) -> None:
    with shop.opened() as git:
        git.head(following(MAIN))
        assert shop.host.connections == 1
        git.fetch(shop.sha)
        assert shop.host.connections == 2


def test_threads_have_connections_of_their_own(shop: Shop) -> None:
    with shop.opened(limits=HostLimits()) as git, ThreadPoolExecutor(6) as pool:
        assert [head.commit for head in pool.map(git.head, [following(MAIN)] * 12)] == [shop.sha] * 12
    assert shop.host.connections == 12


def test_a_repository_that_isnt_there_may_also_be_one_without_access(shop: Shop) -> None:
    url = shop.host.url_of("nowhere")
    with shop.opened(url=url) as git, pytest.raises(AccessDenied, match=r"not found, or no access; check repository\.url"):
        git.head(following(MAIN))


def test_only_upload_pack_is_asked_for_and_what_the_host_says_is_not_quoted(shop: Shop) -> None:
    paths = {"/acme/shop.git": "/acme/shop.git", "/v3/acme/My%20Shop%2Fapp": "/v3/acme/My Shop/app", "/~ann/shop": "~ann/shop"}
    for path, asked in paths.items():
        command = shlex.quote(f"git-upload-pack '{asked}'")
        shop.host.serve = f'printf "CANARY" >&2; [ "$SSH_ORIGINAL_COMMAND" = {command} ] && exit 7; exit 3'
        url = f"ssh://git@127.0.0.1:{shop.host.port}{path}"
        with pytest.raises(AnnealError) as caught, shop.opened(url=url) as git:
            git.head(following(MAIN))
        seen = f"the host's git-upload-pack ended with exit code 7; see what it says: git ls-remote {shlex.quote(url)}"
        assert str(caught.value).endswith(seen)


@pytest.mark.parametrize("v2", [True, False])
@pytest.mark.parametrize("most", [0, 3, 100, 450])
def test_a_host_that_breaks_off_is_transient(shop: Shop, v2: bool, most: int) -> None:
    shop.host.protocol_v2 = v2
    shop.host.serve = f"{ASKED} | (dd bs=1 count={most} status=none; kill -9 $$)"
    with shop.opened() as git, pytest.raises(GitUnavailable):
        git.fetch(shop.sha)


def test_a_host_that_dies_in_the_middle_of_a_pack_is_transient_and_found_again(shop: Shop) -> None:
    serve = shop.host.serve
    shop.work.write("large", "".join(f"{number**5}\n" for number in range(20_000))).commit("Large")
    shop.work.push()
    shop.host.serve = f"{ASKED} | (dd bs=1 count=60000 status=none; kill -9 $PPID)"
    with shop.opened() as git:
        with pytest.raises(GitUnavailable, match="broke off"):
            git.fetch(shop.work.head())
        shop.host.serve = serve
        assert git.fetch(shop.work.head()).commit.subject == "Large"


@pytest.mark.parametrize("serve", ["while :; do printf 0005x; done", "cat /dev/zero"])
def test_a_pack_without_end_is_stopped_at_the_size_limit(shop: Shop, serve: str) -> None:
    shop.host.serve = serve
    with shop.opened(limits=replace(PATIENT, refs=200_000)) as git, pytest.raises((SourceRefused, GitUnavailable)):
        git.head(following(MAIN))


def test_stderr_of_the_ssh_host_counts_for_the_size_limit(shop: Shop) -> None:
    ref = f"003a{'1' * 40} refs/heads/a"
    shop.host.serve = f"while :; do echo '{ref}'; head -c 100000 /dev/zero >&2; done"
    limits = replace(PATIENT, refs=1_000_000, pack=1_000_000)
    with shop.opened(limits=limits) as git, pytest.raises(SourceRefused, match="sends more than 2000000 bytes"):
        git.head(following(MAIN))


def test_a_login_message_isnt_taken_for_git(shop: Shop) -> None:
    shop.host.serve = "echo Welcome to our host"
    with shop.opened() as git, pytest.raises(GitUnavailable):
        git.head(following(MAIN))


def test_a_refused_connection_and_an_unknown_ssh_host_are_transient(shop: Shop) -> None:
    with SshHost() as gone:
        port = gone.port
    with shop.opened(url=f"ssh://git@127.0.0.1:{port}/shop.git") as git, pytest.raises(GitUnavailable, match="refuses connections"):
        git.head(following(MAIN))
    with shop.opened(url="ssh://git@host.invalid/shop.git") as git, pytest.raises(GitUnavailable, match="doesn't resolve"):
        git.head(following(MAIN))
