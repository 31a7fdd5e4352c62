"""Where a repository's API is, and what is asked of it, by the URL that git is fetched from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handler.feedback.git_hosts import GIT_HOSTS, GitHostApi, host_row
from handler.feedback.git_hosts.azuredevops import AzureDevOps
from handler.feedback.git_hosts.bitbucket import Bitbucket
from handler.feedback.git_hosts.bitbucketserver import BitbucketServer
from handler.feedback.git_hosts.gitea import Gitea
from handler.feedback.git_hosts.github import GitHub
from handler.feedback.git_hosts.gitlab import GitLab
from handler.model.commit_status import CommitStatus, StatusState
from handler.model.errors import ConfigInvalid
from handler.model.host_answer import Query
from tests.unit.rows import each_row

SHA = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20"
ROWS: dict[str, type[GitHostApi]] = {
    "github": GitHub,
    "gitlab": GitLab,
    "gitea": Gitea,
    "bitbucket": Bitbucket,
    "bitbucketserver": BitbucketServer,
    "azuredevops": AzureDevOps,
}


class Noted:
    """An API that notes what is asked, and answers nothing."""

    subject = "API"

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[tuple[str, Any]] = []

    def get(self, path: str, query: Query | None = None, needs: str = "") -> Any:
        return self.send("GET", path, None, query)

    def send(self, method: str, path: str, body: Any = None, query: Query | None = None, needs: str = "") -> Any:
        self.asked.append((f"{self.url}/{path}", body))


def posted(name: str, url: str, api_url: str = "", link: str = "https://anneal.example.com/x") -> tuple[str, Mapping[str, Any]]:
    """Return where a row posts a status, and what."""
    row = ROWS[name]
    api = Noted(api_url or row.api_url(url))
    row(api, url).post(CommitStatus(SHA, "anneal/blue/shop", StatusState.SUCCESS, "ok", link))
    ((place, body),) = api.asked
    return place, body


def test_the_table_leads_to_the_rows() -> None:
    assert {name: host_row(name) for name in GIT_HOSTS} == ROWS


AT = "https://api.github.com/repos/acme/shop/statuses/"
GHES = "https://git.example.com/api/v3/repos/acme/shop/statuses/"
GITLAB = "https://gitlab.com/api/v4/projects/acme%2Fshop/statuses/"
GITEA = "https://gitea.example.com/api/v1/repos/acme/shop/statuses/"
CLOUD = "https://api.bitbucket.org/2.0/repositories/acme/shop/commit/"
SERVER = "https://bitbucket.example.com/rest/api/latest/projects/ACME/repos/shop/commits/"
AZURE = "https://dev.azure.com/acme/platform/_apis/git/repositories/shop/commits/"
PLACES = [
    ("github", "https://github.com/acme/shop", AT),
    ("github", "https://github.com/acme/shop.git/", AT),
    ("github", "https://GitHub.com:443/acme/shop.git", AT),
    ("github", "https://www.github.com/acme/shop", AT),
    ("github", "ssh://git@github.com/acme/shop.git", AT),
    ("github", "ssh://git@ssh.github.com:443/acme/shop.git", AT),
    ("github", "https://git.example.com/acme/shop.git", GHES),
    ("github", "ssh://git@git.example.com:2222/acme/shop.git", GHES),
    ("github", "https://git.example.com:8443/acme/shop", GHES.replace(".com/", ".com:8443/")),
    ("github", "http://127.0.0.1:8080/acme/shop", GHES.replace("https://git.example.com", "http://127.0.0.1:8080")),
    ("github", "https://[fd00::1]:8443/acme/shop", GHES.replace("git.example.com", "[fd00::1]:8443")),
    ("github", "https://acme.ghe.com/acme/shop", AT.replace("github.com", "acme.ghe.com")),
    ("gitlab", "https://gitlab.com/acme/shop.git", GITLAB),
    ("gitlab", "ssh://git@altssh.gitlab.com:443/acme/shop.git", GITLAB),
    ("gitlab", "https://gitlab.com/acme/web/eu/shop.git", GITLAB.replace("%2F", "%2Fweb%2Feu%2F")),
    ("gitlab", "https://git.example.com:8443/acme/shop", GITLAB.replace("gitlab.com", "git.example.com:8443")),
    ("gitea", "https://gitea.example.com/acme/shop.git", GITEA),
    ("gitea", "https://gitea.example.com:3000/acme/shop", GITEA.replace(".com/", ".com:3000/")),
    ("gitea", "https://gitea.example.com/code/git/acme/shop.git", GITEA.replace(".com/", ".com/code/git/")),
    ("gitea", "ssh://git@gitea.example.com:2222/acme/shop.git", GITEA),
    ("bitbucket", "https://bitbucket.org/acme/shop.git", CLOUD),
    ("bitbucket", "ssh://git@altssh.bitbucket.org:443/acme/shop.git", CLOUD),
    ("bitbucketserver", "https://bitbucket.example.com/scm/ACME/shop.git", SERVER),
    ("bitbucketserver", "https://bitbucket.example.com:7990/scm/ACME/shop", SERVER.replace(".com/", ".com:7990/")),
    ("bitbucketserver", "https://bitbucket.example.com/tools/bb/scm/ACME/shop.git", SERVER.replace(".com/", ".com/tools/bb/")),
    ("bitbucketserver", "https://bitbucket.example.com/scm/scm/shop.git", SERVER.replace("ACME", "scm")),
    ("bitbucketserver", "https://bitbucket.example.com/scm/~ada/shop.git", SERVER.replace("ACME", "~ada")),
    ("bitbucketserver", "ssh://git@bitbucket.example.com:7999/~ada/shop.git", SERVER.replace("ACME", "~ada")),
    ("bitbucketserver", "ssh://git@bitbucket.example.com:7999/ACME/shop.git", SERVER),
    ("azuredevops", "https://dev.azure.com/acme/platform/_git/shop", AZURE),
    ("azuredevops", "https://dev.azure.com/acme/_git/shop", AZURE.replace("platform", "shop")),
    (
        "azuredevops",
        "https://dev.azure.com/acme/Our%20Platform/_git/The%20shop",
        AZURE.replace("platform", "Our%20Platform").replace("s/shop/", "s/The%20shop/"),
    ),
    ("azuredevops", "ssh://git@ssh.dev.azure.com/v3/acme/platform/shop", AZURE),
    ("azuredevops", "ssh://git@ssh.dev.azure.com:22/v3/acme/platform/shop", AZURE),
    ("azuredevops", "ssh://acme@vs-ssh.visualstudio.com/v3/acme/platform/shop", AZURE),
    ("azuredevops", "https://acme.visualstudio.com/platform/_git/shop", AZURE.replace("dev.azure.com/acme", "acme.visualstudio.com")),
    ("azuredevops", "https://acme.visualstudio.com/_git/shop", AZURE.replace("dev.azure.com/acme/platform", "acme.visualstudio.com/shop")),
    (
        "azuredevops",
        "https://acme.visualstudio.com/DefaultCollection/_git/shop",
        AZURE.replace("dev.azure.com/acme/platform", "acme.visualstudio.com/DefaultCollection/shop"),
    ),
    (
        "azuredevops",
        "https://tfs.example.com:8443/tfs/The%20Collection/platform/_git/shop",
        AZURE.replace("dev.azure.com/acme", "tfs.example.com:8443/tfs/The%20Collection"),
    ),
    (
        "azuredevops",
        "https://tfs.example.com/tfs/DefaultCollection/_git/shop",
        AZURE.replace("dev.azure.com/acme/platform", "tfs.example.com/tfs/DefaultCollection/shop"),
    ),
    (
        "azuredevops",
        "ssh://tfs.example.com:22/tfs/DefaultCollection/platform/_git/shop",
        AZURE.replace("dev.azure.com/acme", "tfs.example.com/tfs/DefaultCollection"),
    ),
]


@each_row(("name", "url", "place"), PLACES)
def test_a_status_is_posted_beside_the_repository(name: str, url: str, place: str) -> None:
    found, _ = posted(name, url)
    assert found.partition(SHA)[0] == place


@pytest.mark.parametrize(
    ("url", "project"),
    [
        ("https://git.example.com/code/gitlab/acme/web/shop.git", "acme%2Fweb%2Fshop"),
        ("ssh://git@git.example.com/acme/shop.git", "acme%2Fshop"),
        ("ssh://git@git.example.com/code/gitlab/shop.git", "code%2Fgitlab%2Fshop"),
    ],
)
def test_a_project_of_a_gitlab_below_a_path_begins_after_it(url: str, project: str) -> None:
    place, _ = posted("gitlab", url, "https://git.example.com/code/gitlab/api/v4")
    assert place == f"https://git.example.com/code/gitlab/api/v4/projects/{project}/statuses/{SHA}"


@each_row(
    ("name", "url"),
    [
        *((name, "https://git.example.com/shop.git") for name in ROWS),
        *((name, "https://git.example.com/") for name in ROWS),
        ("azuredevops", "https://dev.azure.com/acme/platform/shop"),
        ("azuredevops", "ssh://git@ssh.dev.azure.com/v3/acme/shop"),
        ("azuredevops", "https://dev.azure.com/acme/platform/_git/"),
        ("github", "https://git.example.com:port/acme/shop"),
    ],
)
def test_a_url_that_the_host_cannot_have_is_a_mistake_of_the_configuration(name: str, url: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"repository\.url"):
        posted(name, url)


@pytest.mark.parametrize(
    ("url", "link"),
    [
        ("https://bitbucket.example.com/scm/ACME/shop.git", "https://bitbucket.example.com/projects/ACME/repos/shop/commits/"),
        ("https://bitbucket.example.com/bb/scm/ACME/shop.git", "https://bitbucket.example.com/bb/projects/ACME/repos/shop/commits/"),
    ],
)
def test_a_build_without_a_page_leads_to_its_commit(url: str, link: str) -> None:
    assert posted("bitbucketserver", url, link="")[1]["url"] == f"{link}{SHA}"
    assert posted("bitbucketserver", url)[1]["url"] == "https://anneal.example.com/x"


@pytest.mark.parametrize(
    ("page", "is_taken"),
    [
        ("https://anneal.example.com/x", True),
        ("http://10.0.0.1:8080/x", True),
        ("http://[fd00::1]/x", True),
        ("http://anneal:8080/x", False),
        ("", False),
    ],
)
def test_bitbucket_takes_no_page_whose_host_has_no_domain(page: str, is_taken: bool) -> None:
    link = posted("bitbucket", "https://bitbucket.org/acme/shop.git", link=page)[1]["url"]
    assert link == (page if is_taken else f"https://bitbucket.org/acme/shop/commits/{SHA}")


def test_a_name_that_a_url_must_quote_stays_one_segment() -> None:
    place, _ = posted("gitea", "https://gitea.example.com/acme/shop%3Fx%23y.git")
    assert place == f"https://gitea.example.com/api/v1/repos/acme/shop%3Fx%23y/statuses/{SHA}"
