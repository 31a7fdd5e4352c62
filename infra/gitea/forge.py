"""What tests ask of a Gitea over its API: people, repositories, webhooks, pull requests, comments, statuses.

https://docs.gitea.com/api. Repositories are named `owner/name`. What Gitea refuses is `Refused`.
"""

from __future__ import annotations

import json as jsons
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import quote, urlsplit

import urllib3

from infra.patience import PATIENCE

_PAGE = 50  # no answer has more rows


class Refused(Exception):
    """An answer of 300 or more: Gitea refuses, or knows the repository by another name now."""

    def __init__(self, answer: Answer, asked: str) -> None:
        super().__init__(f"{asked}: {answer.status} {answer.text[:500]}")
        self.answer = answer


@dataclass(frozen=True)
class Answer:
    """What Gitea says, and `document`: that text's JSON, None when it is none."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def document(self) -> Any:
        """The JSON of the text."""
        try:
            return jsons.loads(self.text)
        except ValueError:
            return None


@dataclass(frozen=True)
class Account:
    """A person. `token`: of the scopes that were asked for."""

    name: str
    password: str = field(repr=False)
    token: str = field(repr=False)


class Forge:
    """A Gitea at `url`, asked as `admin`, but where an account or a token is given."""

    url: str
    admin: Account

    def __init__(self) -> None:
        self._pool = urllib3.PoolManager(maxsize=8, retries=False, timeout=PATIENCE)

    # --- the general door

    def ask(self, method: str, path: str, json: object = None, token: str | None = None) -> Answer:
        """Return the answer to a request below /api/v1, whatever its status. `token`: the administrator's when it is None; empty: none."""
        token = self.admin.token if token is None else token
        return self._sent(method, path, json, {"Authorization": f"token {token}"} if token else {})

    def api(self, method: str, path: str, json: object = None, token: str | None = None) -> Any:
        """Return the document that answers, as `ask` asks. Raises Refused."""
        return _accepted(self.ask(method, path, json, token), f"{method} {path}").document

    def rows(self, path: str, token: str | None = None) -> list[dict[str, Any]]:
        """Return the rows of a list, of all its pages, in the order in which Gitea gives them. Raises Refused."""
        rows: list[dict[str, Any]] = []
        for page in count(1):
            asked = f"{path}{'&' if '?' in path else '?'}limit={_PAGE}&page={page}"
            answer = _accepted(self.ask("GET", asked, None, token), f"GET {asked}")
            rows += answer.document
            if not answer.document or len(rows) >= int(answer.headers.get("X-Total-Count", 0)):  # not all lists have pages
                break
        return rows

    def _sent(self, method: str, path: str, json: object, headers: Mapping[str, str]) -> Answer:
        answer = self._pool.request(method, f"{self.url}/api/v1{path}", json=json, headers=headers)
        return Answer(answer.status, dict(answer.headers), answer.data.decode())

    # --- people

    def user(self, name: str, *scopes: str) -> Account:
        """Create a person with a token of these scopes; none given: all. Raises Refused."""
        password = f"password-of-{name}"
        new = {"username": name, "email": f"{name}@example.com", "password": password, "must_change_password": False}
        self.api("POST", "/admin/users", new)
        return Account(name, password, self.token(Account(name, password, ""), *scopes))

    def token(self, account: Account, *scopes: str) -> str:
        """Return a further token of a person, of these scopes; none given: all. Raises Refused."""
        path, new = f"/users/{account.name}/tokens", {"name": f"token-{time.time_ns()}", "scopes": list(scopes or ("all",))}
        basic = urllib3.make_headers(basic_auth=f"{account.name}:{account.password}")
        return str(_accepted(self._sent("POST", path, new, basic), f"POST {path}").document["sha1"])

    def organization(self, name: str, owner: Account) -> None:
        """Create an organization, which may own repositories as a person does. Raises Refused."""
        self.api("POST", f"/admin/users/{owner.name}/orgs", {"username": name})

    # --- repositories

    def repository(self, owner: str, name: str, *, private: bool = False) -> str:
        """Create a repository of a person or organization, and return `owner/name`; main has a commit. Raises Refused."""
        new = {"name": name, "private": private, "auto_init": True, "default_branch": "main"}
        return str(self.api("POST", f"/admin/users/{owner}/repos", new)["full_name"])

    def fork(self, repository: str, account: Account, name: str = "") -> str:
        """Fork a repository as this person, and return the fork's `owner/name`. Raises Refused."""
        return str(self.api("POST", f"/repos/{repository}/forks", {"name": name} if name else {}, account.token)["full_name"])

    def collaborator(self, repository: str, account: Account, permission: str) -> None:
        """Let a person take part: `read`, `write` or `admin`. Raises Refused."""
        self.api("PUT", f"/repos/{repository}/collaborators/{account.name}", {"permission": permission})

    def clone_url(self, repository: str, account: Account | None = None) -> str:
        """Return where git finds a repository, with a person's name and token in it when one is given."""
        address = urlsplit(self.url)
        signed = f"{quote(account.name)}:{quote(account.token)}@" if account else ""
        return f"{address.scheme}://{signed}{address.netloc}/{repository}.git"

    def webhook(self, repository: str, url: str, secret: str, events: Sequence[str] = ("push",)) -> int:
        """Have Gitea send these events to a URL, signed with the secret; return the webhook's id. Raises Refused."""
        sent = {"url": url, "content_type": "json", "secret": secret}
        hook = self.api("POST", f"/repos/{repository}/hooks", {"type": "gitea", "config": sent, "events": list(events), "active": True})
        return int(hook["id"])

    def statuses(self, repository: str, sha: str) -> list[dict[str, Any]]:
        """Return all statuses of a commit in the order in which they were made, which is that of their `id`. Raises Refused."""
        return self.rows(f"/repos/{repository}/commits/{sha}/statuses?sort=highestindex")  # its word for the lowest first

    # --- pull requests

    def open_pull_request(
        self, repository: str, account: Account, head: str, base: str = "main", *, title: str = "A change", body: str = ""
    ) -> int:
        """Open a pull request of `head`, a branch or `owner:branch`, and return its number. Raises Refused."""
        new = {"head": head, "base": base, "title": title, "body": body}
        return int(self.api("POST", f"/repos/{repository}/pulls", new, account.token)["number"])

    def pull_request(self, repository: str, number: int) -> dict[str, Any]:
        """Return a pull request. Raises Refused."""
        found: dict[str, Any] = self.api("GET", f"/repos/{repository}/pulls/{number}")
        return found

    def edit_pull_request(self, repository: str, number: int, account: Account | None = None, **changes: object) -> dict[str, Any]:
        """Change `title`, `body`, `base` or `state` (closed, open) of a pull request, and return it. Raises Refused."""
        path = f"/repos/{repository}/pulls/{number}"
        changed: dict[str, Any] = self.api("PATCH", path, changes, account.token if account else None)
        return changed

    def merge_pull_request(self, repository: str, number: int, account: Account | None = None, way: str = "merge") -> str:
        """Merge a pull request once Gitea has looked at it, and return the id of the commit. Raises Refused, TimeoutError."""
        end = time.monotonic() + PATIENCE
        while not self.pull_request(repository, number)["mergeable"]:
            if time.monotonic() > end:
                raise TimeoutError(f"{repository}#{number} isn't mergeable for {PATIENCE:g} s")
            time.sleep(0.05)
        self.api("POST", f"/repos/{repository}/pulls/{number}/merge", {"Do": way}, account.token if account else None)
        return str(self.pull_request(repository, number)["merge_commit_sha"])

    # --- comments

    def comments(self, repository: str, number: int) -> list[dict[str, Any]]:
        """Return the comments of a pull request or an issue, the oldest first. Raises Refused."""
        return self.rows(f"/repos/{repository}/issues/{number}/comments")

    def comment(self, repository: str, number: int, text: str, account: Account | None = None) -> int:
        """Comment on a pull request or an issue, and return the comment's id. Raises Refused."""
        path = f"/repos/{repository}/issues/{number}/comments"
        return int(self.api("POST", path, {"body": text}, account.token if account else None)["id"])

    def edit_comment(self, repository: str, comment: int, text: str, account: Account | None = None) -> dict[str, Any]:
        """Change a comment's text, and return it. Raises Refused."""
        path = f"/repos/{repository}/issues/comments/{comment}"
        changed: dict[str, Any] = self.api("PATCH", path, {"body": text}, account.token if account else None)
        return changed

    def delete_comment(self, repository: str, comment: int, account: Account | None = None) -> None:
        """Delete a comment. Raises Refused."""
        self.api("DELETE", f"/repos/{repository}/issues/comments/{comment}", None, account.token if account else None)


def _accepted(answer: Answer, asked: str) -> Answer:
    """Return the answer. Raises Refused."""
    if answer.status >= 300:
        raise Refused(answer, asked)
    return answer
