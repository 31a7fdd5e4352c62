"""Makes the way to the API of a repository's git host: the row, the sign-in, the connections. Nothing is asked yet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from handler.config.feedback_settings import FeedbackSettings
from handler.config.git_settings import Repository
from handler.config.secrets import Reading
from handler.feedback.git_hosts import GitHostApi, host_row
from handler.source.bounded_connections import Pools
from handler.source.github_app import AppUse, GitHubApp
from handler.source.host_api import ApiTimes, HostApi, WritePace
from handler.source.host_limits import HostLimits
from handler.source.signin import SignIn, Token, basic

_STATUSES = {"statuses": "write"}
_PULL_REQUESTS = {"pull_requests": "write", "contents": "read", "metadata": "read"}
"""What comments need, what two commits are compared by, and what is asked for an account's permission."""


WritePaces = Callable[[str, float], WritePace]
"""Returns the pace of an API by its URL and by the seconds between two writes that its host wants."""


def git_host_api(
    repository: Repository, secrets: Reading, pools: Callable[[str, str, str], Pools], paces: WritePaces | None = None
) -> GitHostApi:
    """Return the API of a repository that has feedback. Raises ConfigInvalid: it can't be asked."""
    feedback = repository.feedback
    assert feedback is not None  # noqa: S101 - the caller's condition
    row = host_row(feedback.host_of(repository.url))
    url = feedback.api_url or row.api_url(repository.url)
    sign_in = _sign_in(feedback, repository, row.user, secrets)
    times = ApiTimes(pace=paces and paces(url, row.pause))
    return row(HostApi(f"API {url}", url, sign_in, pools, repository.tls.ca_file, row.headers, times), repository.url)


def _sign_in(feedback: FeedbackSettings, repository: Repository, user: str | None, secrets: Reading) -> SignIn:
    if app := feedback.github_app:
        permissions = _STATUSES | (_PULL_REQUESTS if feedback.pull_requests else {})
        use = AppUse(permissions, "feedback", "Bearer {}".format)
        return GitHubApp(app, repository.url, secrets.read, repository.tls.ca_file, HostLimits(), again=secrets.again, use=use)
    assert feedback.token is not None  # noqa: S101 - a rule of the settings
    user = feedback.username or user
    form = "Bearer {}".format if user is None else partial(basic, user)
    return Token(feedback.token, "feedback.token", secrets.read, secrets.again, form)
