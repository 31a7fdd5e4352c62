"""Against a real `git http-backend`: what is asked, what comes, what is refused."""

from __future__ import annotations

import subprocess
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from handler.config.git_settings import BasicAuth, SecretRef
from handler.config.load import parse
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, GitUnavailable, RefNotFound, SourceRefused
from handler.model.tree import Tree, resolve_links
from infra.githost import Host, Work
from tests.rooms.source.open_repository import CANARY, PATIENT, Secret, following, opened

MAIN = "refs/heads/main"


def shop(host: Host) -> tuple[Work, str]:
    work = Work.of(host, "shop")
    work.write("deploy/prod/app.yaml", "kind: Deployment\n").write("deploy/dev/app.yaml", "kind: Pod\n").write("readme", "hello\n")
    sha = work.commit("First version\n\nand why")
    work.push()
    return work, sha


def texts(tree: Tree, path: str = "") -> dict[str, bytes]:
    entries = list(tree.walk(path))
    blobs = tree.blobs(entry.oid for entry in entries)
    return {entry.path: blobs[entry.oid] for entry in entries}


@pytest.mark.parametrize("v2", [True, False])
def test_a_branch_is_resolved_and_its_commit_fetched(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        assert git.head(following(MAIN)).commit == sha
        tree = git.fetch(sha)
        assert texts(tree) == {"deploy/dev/app.yaml": b"kind: Pod\n", "deploy/prod/app.yaml": b"kind: Deployment\n", "readme": b"hello\n"}
        assert (tree.commit.sha, tree.commit.subject, tree.commit.author) == (sha, "First version", "anneal <anneal@example.invalid>")
        assert tree.commit.time > 1_600_000_000


@pytest.mark.parametrize("v2", [True, False])
def test_an_annotated_tag_is_peeled_and_a_light_one_is_itself(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    work, sha = shop(host)
    work.git("tag", "-a", "v1", "-m", "one")
    work.git("tag", "v2")
    work.git("push", "-q", "origin", "v1", "v2")
    with opened(host.url_of("shop")) as git:
        assert [git.head(following("refs/tags/v1")).commit, git.head(following("refs/tags/v2")).commit] == [sha, sha]
        with pytest.raises(SourceRefused, match="is not a commit"):
            git.fetch(work.git("rev-parse", "v1"))


@pytest.mark.parametrize("v2", [True, False])
def test_a_ref_that_isnt_there_is_an_error_although_others_begin_alike(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    work, _ = shop(host)
    work.push(ref="HEAD:refs/heads/main-next")
    work.push(ref="HEAD:refs/heads/release/1")
    work.push(ref=":refs/heads/main")
    with opened(host.url_of("shop")) as git:
        for ref in (MAIN, "refs/heads/release", "refs/tags/v1"):
            with pytest.raises(RefNotFound, match=ref):
                git.head(following(ref))


def test_an_empty_repository_has_no_ref(host: Host) -> None:
    host.create("empty")
    with opened(host.url_of("empty")) as git, pytest.raises(RefNotFound):
        git.head(following(MAIN))


def test_a_ref_that_breaks_gits_rules_never_reaches_the_host(host: Host) -> None:
    shop(host)
    with opened(host.url_of("shop")) as git, pytest.raises(SourceRefused, match="starts with '-'"):
        git.head(following("refs/heads/--upload-pack=touch"))
    assert host.requests == []


def test_one_directory_of_many_is_fetched_as_trees_and_then_just_its_blobs(host: Host) -> None:
    work, sha = shop(host)
    wanted, other = work.git("rev-parse", "HEAD:deploy/prod/app.yaml"), work.git("rev-parse", "HEAD:deploy/dev/app.yaml")
    with opened(host.url_of("shop")) as git:
        tree = git.fetch(git.head(following(MAIN)).commit, "deploy/prod")
        assert len(host.requests) == 3
        assert texts(tree, "deploy/prod") == {"deploy/prod/app.yaml": b"kind: Deployment\n"}
        assert texts(tree, "deploy/prod")
    *_, blobs = host.requests
    assert len(host.requests) == 4
    assert wanted.encode() in blobs.body
    assert other.encode() not in blobs.body
    assert tree.commit.sha == sha


def test_without_filters_everything_comes_in_one_pack(host: Host) -> None:
    host.filters = False
    shop(host)
    with opened(host.url_of("shop")) as git:
        tree = git.fetch(git.head(following(MAIN)).commit, "deploy/prod")
        assert len(texts(tree)) == 3
    assert len(host.requests) == 3


def test_a_commit_alone_is_one_request_more_and_none_of_its_files(host: Host) -> None:
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        git.head(following(MAIN))
        before = len(host.requests)
        found = git.commit(sha)
        assert found
        assert (found.sha, found.subject, len(host.requests)) == (sha, git.fetch(sha).commit.subject, before + 1)
        with pytest.raises(RefNotFound):
            git.commit("1" * 40)


@pytest.mark.parametrize("way", ["filters", "protocol_v2"])
def test_a_host_that_gives_no_commit_alone_is_asked_for_none(host: Host, way: str) -> None:
    setattr(host, way, False)
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        assert git.commit(sha) is None
    assert not [request for request in host.requests if b"want" in request.body]


def test_a_commit_is_fetched_once_and_a_later_look_at_the_ref_is_one_request(host: Host) -> None:
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        first = git.fetch(sha)
        before = len(host.requests)
        assert git.fetch(sha, "deploy/prod") is first
        assert len(host.requests) == before
        git.head(following(MAIN))
        assert len(host.requests) == before + 1


def test_commits_that_dont_fit_the_cache_are_fetched_again(host: Host) -> None:
    _, sha = shop(host)
    with opened(host.url_of("shop"), limits=replace(PATIENT, cache=10)) as git:
        assert git.fetch(sha) is not git.fetch(sha)


def test_threads_that_want_the_same_commit_fetch_it_once(host: Host) -> None:
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        threads = [threading.Thread(target=git.fetch, args=(sha,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len([request for request in host.requests if request.method == "POST"]) == 1


def test_an_older_commit_is_fetched_by_its_id_also_after_a_force_push_or_a_deleted_branch(host: Host) -> None:
    work, first = shop(host)
    work.write("readme", "second\n")
    second = work.commit("Second")
    work.push()
    with opened(host.url_of("shop")) as git:
        assert texts(git.fetch(first))["readme"] == b"hello\n"
        work.git("reset", "-q", "--hard", first)
        work.push(force=True)
        assert git.head(following(MAIN)).commit == first
        assert texts(git.fetch(second))["readme"] == b"second\n"
        work.push(ref=":refs/heads/main")
        with pytest.raises(RefNotFound, match=MAIN):
            git.head(following(MAIN))


@pytest.mark.parametrize("v2", [True, False])
def test_a_commit_the_host_never_had_or_doesnt_serve_is_named(host: Host, v2: bool) -> None:
    host.protocol_v2 = v2
    host.any_sha = False
    _, _ = shop(host)
    with opened(host.url_of("shop")) as git, pytest.raises(RefNotFound, match=r"commit 1{40}: is gone"):
        git.fetch("1" * 40)


def test_credentials_open_a_private_repository(host: Host) -> None:
    host.accounts = {"deployer": CANARY}
    _, sha = shop(host)
    with opened(host.url_of("shop"), secret=Secret()) as git:
        assert git.fetch(git.head(following(MAIN)).commit).commit.sha == sha


def test_wrong_credentials_are_named_by_their_place(host: Host) -> None:
    host.accounts = {"deployer": CANARY}
    shop(host)
    with opened(host.url_of("shop"), secret=Secret("wrong")) as git, pytest.raises(AccessDenied) as caught:
        git.head(following(MAIN))
    (problem,) = caught.value.problems
    named = "auth.basic: user deployer, password of environment variable GIT_TOKEN"
    assert problem.message == f"the host answered 401 to our credentials ({named})"
    assert problem.fix == f"they are wrong or have ended: give a token that may read {host.url_of('shop')}"


def test_a_401_without_credentials_prints_the_auth_block_to_paste(host: Host) -> None:
    host.accounts = {"deployer": CANARY}
    shop(host)
    url = host.url_of("shop")
    with opened(url) as git, pytest.raises(AccessDenied) as caught:
        git.head(following(MAIN))
    (problem,) = caught.value.problems
    assert problem.message == "the host answered 401; credentials: none are configured"
    block = problem.fix.partition("write in the target: ")[2]
    top = "apiVersion: anneal.dev/v1alpha1\nkind: Config\n"
    settings = parse(f"{top}targets:\n  - name: shop\n    namespaces: [shop]\n    {block}\n", "pasted.yaml")
    repository = settings.targets[0].repository
    assert (repository.url, repository.auth.basic) == (url, BasicAuth("x-access-token", SecretRef(env="GIT_TOKEN")))


@pytest.mark.parametrize(
    ("secret", "status", "message", "fix"),
    [
        (None, 403, "the host answered 403; credentials: none are configured", "if it is private, write in the target: repository: "),
        (None, 404, "404: not found, or no access; credentials: none are configured", "correct repository.url; or, if it is private, "),
        (Secret(), 403, "the host answered 403 to our credentials (auth.basic: ", "they may not read it: "),
        (Secret(), 404, "404: not found, or no access for our credentials (auth.basic: ", "correct repository.url, or let them read "),
    ],
)
def test_a_denied_sign_in_names_the_credentials_that_were_sent(
    host: Host, secret: Secret | None, status: int, message: str, fix: str
) -> None:
    shop(host)
    host.fail = status
    with opened(host.url_of("shop"), secret=secret) as git, pytest.raises(AccessDenied) as caught:
        git.head(following(MAIN))
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.fix.startswith(fix)


def test_a_repository_that_isnt_there_may_also_be_one_without_access(host: Host) -> None:
    with opened(host.url_of("nowhere")) as git, pytest.raises(AccessDenied, match="not found, or no access"):
        git.head(following(MAIN))


def test_a_failing_host_is_transient_and_found_again(host: Host) -> None:
    _, sha = shop(host)
    host.fail = 503
    with opened(host.url_of("shop")) as git:
        with pytest.raises(GitUnavailable, match="503"):
            git.head(following(MAIN))
        host.fail = 0
        assert git.head(following(MAIN)).commit == sha


def test_a_slow_host_ends_at_the_read_timeout_or_the_deadline(host: Host) -> None:
    shop(host)
    host.delay = 5
    for limits in (replace(PATIENT, read=0.2), replace(PATIENT, total=0.2)):
        with opened(host.url_of("shop"), limits=limits) as git, pytest.raises(GitUnavailable, match=r"in time|longer than"):
            git.head(following(MAIN))


def test_a_connection_that_was_closed_while_idle_is_replaced(host: Host) -> None:
    _, sha = shop(host)
    with opened(host.url_of("shop")) as git:
        git.head(following(MAIN))
        root, port = host.root, host.port
        host.stop()
        with Host(root, port):
            assert git.head(following(MAIN)).commit == sha


def test_all_requests_go_over_one_keep_alive_connection(host: Host) -> None:
    shop(host)
    with opened(host.url_of("shop")) as git:
        for _ in range(3):
            tree = git.fetch(git.head(following(MAIN)).commit, "deploy/prod")
        texts(tree, "deploy/prod")
    assert host.connections == 1
    assert len(host.requests) == 6


def test_tls_is_trusted_by_the_configured_ca_only(tmp_path: Path) -> None:
    pem = tmp_path / "host.pem"
    key = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout - -out -"
    made = subprocess.run([*key.split(), "-subj", "/CN=git", "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    pem.write_bytes(made.stdout)
    with Host(tmp_path / "git", certificate=pem) as host:
        _, sha = shop(host)
        with opened(host.url_of("shop"), ca_file=str(pem)) as git:
            assert git.head(following(MAIN)).commit == sha
        with opened(host.url_of("shop")) as git, pytest.raises(ConfigInvalid, match=r"not trusted \(self-signed certificate\).*caFile"):
            git.head(following(MAIN))
    with pytest.raises(ConfigInvalid, match="no such file"), opened(host.url_of("shop"), ca_file=str(tmp_path / "none")):
        pass


def test_a_refused_connection_is_transient(host: Host) -> None:
    url = host.url_of("shop")
    gone = Host(host.root / "gone")
    gone.start().stop()
    with opened(url.replace(str(host.port), str(gone.port))) as git, pytest.raises(GitUnavailable, match="refuses connections"):
        git.head(following(MAIN))


def test_symlinks_are_followed_inside_a_fetched_tree(host: Host) -> None:
    work, _ = shop(host)
    work.link("current", "deploy/prod")
    work.commit("Link")
    work.push()
    with opened(host.url_of("shop")) as git:
        tree = git.fetch(git.head(following(MAIN)).commit, "current")
        found = resolve_links(tree, "current/app.yaml")
    assert found.entry == tree.lookup("deploy/prod/app.yaml")
    assert [path for path, _ in found.looked] == ["current", "deploy/prod/app.yaml"]


def test_a_submodule_is_refused_below_the_path_and_harmless_elsewhere(host: Host) -> None:
    work, sha = shop(host)
    work.git("update-index", "--add", "--cacheinfo", f"160000,{sha},deploy/dev/vendor")
    work.git("commit", "-q", "-m", "Submodule")
    work.push()
    with opened(host.url_of("shop")) as git:
        assert texts(git.fetch(git.head(following(MAIN)).commit, "deploy/prod"), "deploy/prod")
        with pytest.raises(SourceRefused, match="deploy/dev/vendor: this is a submodule"):
            git.fetch(git.head(following(MAIN)).commit, "deploy")


def test_a_refused_tree_is_fetched_once_and_checked_at_every_look(host: Host) -> None:
    work, sha = shop(host)
    work.git("update-index", "--add", "--cacheinfo", f"160000,{sha},deploy/dev/vendor")
    work.git("commit", "-q", "-m", "Submodule")
    work.push()
    with opened(host.url_of("shop")) as git:
        for _ in range(3):
            with pytest.raises(SourceRefused, match="this is a submodule"):
                git.fetch(work.head(), "deploy")
    assert len([request for request in host.requests if b"command=fetch" in request.body]) == 1


@pytest.mark.parametrize("name", [b".GIT", b"git~1", b"..", b"a\nb", b"\xff"])
def test_a_tree_with_a_name_that_could_harm_is_refused_with_the_name_escaped(host: Host, name: bytes) -> None:
    work, _ = shop(host)
    oid = bytes.fromhex(work.git("rev-parse", "HEAD:readme"))
    tree = work.git("hash-object", "-t", "tree", "-w", "--literally", "--stdin", stdin=b"100644 " + name + b"\0" + oid)
    commit = work.git("commit-tree", tree, "-m", "Evil")
    work.push(force=True, ref=f"{commit}:refs/heads/main")
    with opened(host.url_of("shop")) as git, pytest.raises(SourceRefused) as refused:
        git.fetch(git.head(following(MAIN)).commit)
    assert str(refused.value).isprintable()


def test_a_password_is_in_no_error_and_no_representation(host: Host) -> None:
    secret = Secret()
    shop(host)
    for fail in (401, 403, 404, 429, 500):
        host.fail = fail
        with opened(host.url_of("shop"), secret=secret) as git:
            with pytest.raises(AnnealError) as caught:
                git.head(following(MAIN))
            assert CANARY not in f"{caught.value} {caught.value!r} {git!r} {vars(git)!r}".replace(repr(secret), "")
            assert caught.value.__cause__ is None
