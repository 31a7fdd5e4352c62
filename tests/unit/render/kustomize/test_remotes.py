"""What kustomize would fetch, by the cases of its own tests (api/internal/git/repospec_test.go) and of its loader."""

from __future__ import annotations

import pytest

from handler.render.kustomize.remotes import RemoteDirectory, is_remote, is_remote_file, remote_directory, shown

CLONED = {
    "https://git-codecommit.us-east-2.amazonaws.com/someorg/somerepo/somedir": (
        "https://git-codecommit.us-east-2.amazonaws.com/someorg/somerepo",
        "somedir",
        "",
    ),
    "https://fabrikops2.visualstudio.com/someorg/somerepo?ref=master": (
        "https://fabrikops2.visualstudio.com/someorg/somerepo",
        "",
        "master",
    ),
    "http://github.com/someorg/somerepo/somedir": ("https://github.com/someorg/somerepo", "somedir", ""),
    "git@github.com:someorg/somerepo/somedir": ("git@github.com:someorg/somerepo", "somedir", ""),
    "git@gitlab2.sqtools.ru:10022/infra/kubernetes/thanos-base.git?ref=v0.1.0": (
        "git@gitlab2.sqtools.ru:10022/infra/kubernetes/thanos-base.git",
        "",
        "v0.1.0",
    ),
    "git@bitbucket.org:company/project.git//path?ref=branch": ("git@bitbucket.org:company/project.git", "path", "branch"),
    "git@ssh.dev.azure.com:v3/org/project/repo//path": ("git@ssh.dev.azure.com:v3/org/project/repo", "path", ""),
    "https://itfs.mycompany.com/collection/project/_git/somerepos/path": (
        "https://itfs.mycompany.com/collection/project/_git/somerepos",
        "path",
        "",
    ),
    "https://itfs.mycompany.com/collection/project/_git/somerepos?version=v1.0.0": (
        "https://itfs.mycompany.com/collection/project/_git/somerepos",
        "",
        "v1.0.0",
    ),
    "git::https://itfs.mycompany.com/collection/project/_git/somerepos": (
        "https://itfs.mycompany.com/collection/project/_git/somerepos",
        "",
        "",
    ),
    "file:///": ("file:///", "", ""),
    "file://a/b/c/someRepo.git/somepath?ref=someBranch": ("file://a/b/c/someRepo.git", "somepath", "someBranch"),
    "file:///a/b/c/someRepo": ("file:///a/b/c/someRepo", "", ""),
    "ssh://git@github.com/kubernetes-sigs/kustomize//examples?ref=v1": ("git@github.com:kubernetes-sigs/kustomize", "examples", "v1"),
    "ssh://myusername@bitbucket.org/ourteamname/ourrepositoryname.git//path": (
        "ssh://myusername@bitbucket.org/ourteamname/ourrepositoryname.git",
        "path",
        "",
    ),
    "github.com/kubernetes-sigs/kustomize//examples/a/?ref=v1.0.6": (
        "https://github.com/kubernetes-sigs/kustomize",
        "examples/a/",
        "v1.0.6",
    ),
    "GITHUB.com:org/repo": ("https://github.com/org/repo", "", ""),
    "a@v1/base": None,
    "base": None,
    "../base": None,
    "/abs/github.com/a/b": None,
    "https://host.example.com": None,
    "https://host.example.com/one": None,
    "gitlab.com/org/repo": None,
    "https://github.com/org/repo//../../out": None,
    "https://github.com/org/repo//a/../../out": None,
}


@pytest.mark.parametrize("text", CLONED)
def test_a_directory_of_another_repository_is_known_as_kustomize_knows_it(text: str) -> None:
    expected = CLONED[text]
    assert remote_directory(text) == (RemoteDirectory(*expected) if expected else None)


@pytest.mark.parametrize("text", ["http://a/b", "HTTPS://a", "https:a", "http:/b"])
def test_a_file_is_asked_for_by_its_scheme(text: str) -> None:
    assert is_remote_file(text)
    assert is_remote(text)


@pytest.mark.parametrize("text", ["a.yaml", "httpd/a.yaml", "../https", "a@b.yaml", "github.com.yaml", "github.company/x/y"])
def test_a_path_is_none_of_both(text: str) -> None:
    assert not is_remote(text)


def test_an_unknown_scheme_is_remote() -> None:
    assert is_remote("s3://bucket/key")


def test_credentials_of_a_url_arent_shown() -> None:
    assert shown("https://me:secret@host/a?ref=b@c") == "https://host/a?ref=b@c"
