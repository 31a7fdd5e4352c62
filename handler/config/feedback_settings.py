"""What a git host is to show of a repository's commits, as whom, and which host it is; as frozen values.

The credentials are others than those that read git: these write, and never to the repository itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from handler.config.secret_ref import SecretRef
from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class GitHubAppAuth:
    """A GitHub App: short-lived installation tokens, made from its key."""

    app_id: str = _doc("App id or client id.", kind="appId")
    installation_id: int = _doc("Installation id.", kind="number")
    private_key: SecretRef = _doc("The app's private key, PEM.")
    api_url: str = _doc("The API; of an Enterprise Server e.g. https://github.example.com/api/v3.", "https://api.github.com", kind="server")


GitHostName = Literal["", "github", "gitlab", "gitea", "bitbucket", "bitbucketserver", "azuredevops"]
_NAMES = {
    "github": "github",
    "gitlab": "gitlab",
    "gitea": "gitea",
    "forgejo": "gitea",
    "codeberg": "gitea",
    "azure": "azuredevops",
    "visualstudio": "azuredevops",
}


@dataclass(frozen=True, slots=True)
class FeedbackSettings:
    """What the git host shows: statuses of a repository's commits, plans on its pull requests."""

    status: bool = _doc("Post commit statuses: pending, then how each target's run ended. A plan on a pull request has its own.", True)
    status_for: Literal["changed", "all"] = _doc(
        "changed: commits that change nothing for a target get none of it; all: one status for all such targets.", "changed"
    )
    pull_requests: bool = _doc("Show on each pull request what its merge would change: one comment for all targets, and a status.", False)
    forks: bool = _doc("Plan pull requests from forks, too: people outside then decide what is rendered here.", False)
    token: SecretRef | None = _doc("Token that may write commit statuses, and comments on pull requests.", None)
    username: str = _doc("User whose password the token is (Bitbucket Cloud's API tokens); empty: it stands alone.", "", kind="username")
    github_app: GitHubAppAuth | None = _doc("A GitHub App that may write them, in place of a token.", None)
    host: GitHostName = _doc("Which host it is; empty: as the URL of the repository shows.", "")
    api_url: str = _doc("The host's API; empty: where it is beside the URL of the repository.", "", kind="server")
    page_url: str = _doc("Where links of statuses lead; empty: `page.url`.", "", kind="pageUrl")

    def host_of(self, url: str) -> str:
        """Return which host a repository's is; empty: its URL doesn't show it."""
        return self.host or guessed_host(url)


def guessed_host(url: str) -> str:
    """Return which git host a URL shows; empty: none that is known."""
    name = (urlsplit(url).hostname or "").lower()
    if name == "bitbucket.org":
        return "bitbucket"
    if "bitbucket" in name:
        return "bitbucketserver"
    return next((host for word, host in _NAMES.items() if word in name), "")


@dataclass(frozen=True, slots=True)
class PullRequestSettings:
    """Whose rights the API server judges plans on pull requests by."""

    identity: str = _doc(
        "ServiceAccount, as namespace/name, by whose rights its objects are dry-run; an admission policy must refuse its real writes.",
        kind="serviceAccount",
    )
