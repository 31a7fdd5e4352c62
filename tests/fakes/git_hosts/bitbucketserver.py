"""Bitbucket Data Center's API for build statuses and comments on pull requests.

Its fields, bounds, permissions and answers are those of developer.atlassian.com/server/bitbucket/rest (Builds and Deployments, Pull
Requests, Permission Management, System Maintenance: users) and of its API changelog, by which a server learns of cancelled builds with 8.0.
No registry has its OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from jsonschema.exceptions import ValidationError

from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Grant, Json, PullRequest, Refused, Route
from tests.fakes.git_hosts.served_host import ServedHost

REPOSITORY = "/api/latest/projects/{project}/repos/{repo}"
BUILDS = f"{REPOSITORY}/commits/{{sha}}/builds"
PULL_REQUEST = f"{REPOSITORY}/pull-requests/{{id}}"
COMMENTS = f"{PULL_REQUEST}/comments"
LEGACY = "/build-status/1.0/commits/{sha}"
LEVELS = ("LICENSED", "REPO_READ", "REPO_WRITE", "REPO_ADMIN")
NEW_STATES = frozenset({"CANCELLED", "UNKNOWN"})
NAMED = {"type": "string", "minLength": 1, "maxLength": 255}
STATE = {"type": "string", "enum": ["SUCCESSFUL", "FAILED", "INPROGRESS", "CANCELLED", "UNKNOWN"]}
URL = {"type": "string", "maxLength": 450, "pattern": "^https?://[^/]+"}
FIELDS = {"key": NAMED, "state": STATE, "url": URL}
STATUS = {
    "type": "object",
    "required": ["key", "state", "url"],
    "properties": {
        **FIELDS,
        **{name: {"type": "string"} for name in ("name", "description", "buildNumber", "parent")},
        "ref": {"type": "string", "pattern": "^refs/"},
        **{name: {"type": "integer"} for name in ("dateAdded", "duration", "lastUpdated")},
        "testResults": {"type": "object", "properties": {name: {"type": "integer"} for name in ("failed", "skipped", "successful")}},
    },
}
LEGACY_STATUS = {"type": "object", "required": ["key", "state", "url"], "properties": {**FIELDS, "name": NAMED, "description": NAMED}}
TEXT = {"type": "string", "minLength": 1, "maxLength": 32_767}
WORDS = {"severity": {"enum": ["NORMAL", "BLOCKER"]}, "state": {"enum": ["OPEN", "PENDING", "RESOLVED"]}}
REPLIED = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
COMMENT = {"type": "object", "required": ["text"], "properties": {"text": TEXT, "parent": REPLIED, **WORDS}}
CHANGED_COMMENT = {"type": "object", "required": ["version"], "properties": {"text": TEXT, "version": {"type": "integer"}, **WORDS}}
PAGES = frozenset({"start", "limit"})


class BitbucketServer(ServedHost):
    """Bitbucket Data Center. `users`: a person's permission of `LEVELS` by name; `by_group`: who has it by a group; `version`: of it."""

    root: ClassVar[str] = "/rest"
    scopes: ClassVar[frozenset[str]] = frozenset({"REPO_WRITE"})

    def __init__(self, repository: str = "ACME/shop", version: tuple[int, int] = (8, 19)) -> None:
        super().__init__(repository)
        self.version = version
        self.by_group: set[str] = set()

    @property
    def url(self) -> str:
        return f"{self.origin}/rest/api/latest"

    def routes(self) -> Sequence[Route]:
        read, admin, users = ("REPO_READ",), ("REPO_ADMIN",), PAGES | {"filter"}
        permission = {"permission.1", "permission.1.projectKey", "permission.1.repositorySlug"}
        return [
            Route("POST", BUILDS, self._here(self._store_status), read, STATUS),
            Route("GET", BUILDS, self._here(self._status), read, query=frozenset({"key"})),
            Route("POST", LEGACY, self._store_status, ("LICENSED",), LEGACY_STATUS),
            Route("GET", LEGACY, self._list_statuses, ("LICENSED",), query=PAGES | {"orderBy"}),
            Route("GET", PULL_REQUEST, self._here(self._pull_request), read),
            Route("GET", f"{PULL_REQUEST}/activities", self._here(self._activities), read, query=PAGES),
            Route("GET", f"{PULL_REQUEST}/merge-base", self._here(self._merge_base), read),
            Route("GET", COMMENTS, self._here(self._comments_of_path), read, query=PAGES | {"path", "anchorState"}),
            Route("POST", COMMENTS, self._here(self._create_comment), read, COMMENT),
            Route("GET", f"{COMMENTS}/{{comment}}", self._here(self._comment), read),
            Route("PUT", f"{COMMENTS}/{{comment}}", self._here(self._change_comment), read, CHANGED_COMMENT),
            Route("DELETE", f"{COMMENTS}/{{comment}}", self._here(self._delete_comment), read, query=frozenset({"version"})),
            Route(
                "GET", f"{REPOSITORY}/commits/{{sha}}/merge-base", self._here(self._merge_base), read, query=frozenset({"otherCommitId"})
            ),
            Route("GET", f"{REPOSITORY}/permissions/users", self._here(self._permissions), admin, query=users),
            Route("GET", "/api/latest/users", self._list_users, ("LICENSED",), query=users | permission),
        ]

    def _here(self, answer: Any) -> Any:
        def answered(asked: Asked) -> Answer:
            if f"{asked.at['project']}/{asked.at['repo']}".lower() != self.repository.lower():
                return self._absent("Repository", f"Repository {asked.at['project']}/{asked.at['repo']} does not exist.")
            made: Answer = answer(asked)
            return made

        return answered

    def _commit(self, sha: str) -> str:
        if sha not in self.commits:
            raise Refused(self._absent("Commit", f"Commit '{sha}' does not exist in repository '{self.repository.partition('/')[2]}'."))
        return sha

    def _store_status(self, asked: Asked) -> Answer:
        body = asked.body
        if self.version < (7, 4) and "repo" in asked.at:
            return self.missing("")
        if self.version < (8, 0) and body["state"] in NEW_STATES:
            return _errors(400, "state", f"{body['state']} is not a valid build state")
        kept = self.statuses.setdefault(self._commit(asked.at["sha"]), [])
        kept[:] = [each for each in kept if each["key"] != body["key"]] + [body]
        return Answer(204)

    def _status(self, asked: Asked) -> Answer:
        if self.version < (7, 14):
            return self.missing("")
        key = asked.one("key")
        if not key:
            self.violation(asked.request, "the operation needs a key")
            return _errors(400, "key", "A build key is required")
        found = next((each for each in self.statuses.get(self._commit(asked.at["sha"]), ()) if each["key"] == key), None)
        return Answer(200, found) if found else self._absent("BuildStatus", f"No build status with key {key}.")

    def _list_statuses(self, asked: Asked) -> Answer:
        return self._page(asked, self.statuses.get(asked.at["sha"], [])[::-1])

    def _pull_request(self, asked: Asked) -> Answer:
        found = self._of(asked)
        sides = {}
        for side, sha, branch in (("fromRef", found.head, found.source), ("toRef", found.base, found.target)):
            project = f"~{found.author}" if side == "fromRef" and found.fork else self.repository.partition("/")[0]
            place = {"slug": self.repository.partition("/")[2], "id": 2 if project.startswith("~") else 1, "project": {"key": project}}
            sides[side] = {"id": f"refs/heads/{branch}", "displayId": branch, "latestCommit": sha, "repository": place}
        if found.orphan:
            del sides["fromRef"]["repository"]
        state = {"open": "OPEN", "merged": "MERGED", "closed": "DECLINED"}[found.state]
        about = {"id": found.number, "version": 0, "title": found.title, "state": state, "draft": found.draft}
        about |= {"open": found.state == "open", "closed": found.state != "open", "locked": found.locked}
        return Answer(200, {**about, **sides, "author": {"user": _person(found.author), "role": "AUTHOR"}})

    def _activities(self, asked: Asked) -> Answer:
        number = self._of(asked).number
        found = [each for each in self.comments.values() if each.pull_request == number][::-1]
        return self._page(
            asked, [{"action": "COMMENTED", "commentAction": "ADDED", "id": each.number, "comment": _shown(each)} for each in found]
        )

    def _merge_base(self, asked: Asked) -> Answer:
        if "id" in asked.at:
            one, other = self._of(asked).head, self._of(asked).base
        else:
            one, other = self._commit(asked.at["sha"]), self._commit(asked.one("otherCommitId"))
        found = self.merge_base(one, other)
        return Answer(200, {"id": found, "displayId": found[:11]}) if found else Answer(204)

    def _comments_of_path(self, asked: Asked) -> Answer:
        """List those of a file: the general ones, which are all of ours, are none."""
        if not asked.one("path"):
            self.violation(asked.request, "the operation needs a path")
            return _errors(400, "path", "The path query parameter is required when retrieving comments.")
        return self._page(asked, [])

    def _create_comment(self, asked: Asked) -> Answer:
        made = Comment(self.next_number(), self._of(asked).number, asked.body["text"], asked.user)
        self.comments[made.number] = made
        return Answer(201, _shown(made))

    def _comment(self, asked: Asked) -> Answer:
        return Answer(200, _shown(self._existing(asked)))

    def _change_comment(self, asked: Asked) -> Answer:
        found = self._mine(asked)
        self._up_to_date(found, asked.body["version"])
        found.text, found.version = asked.body.get("text", found.text), found.version + 1
        return Answer(200, _shown(found))

    def _delete_comment(self, asked: Asked) -> Answer:
        if not asked.one("version"):
            self.violation(asked.request, "the operation needs a version")
        self._up_to_date(self._mine(asked), int(asked.one("version", "-1")))
        del self.comments[int(asked.at["comment"])]
        return Answer(204)

    def _up_to_date(self, comment: Comment, version: int) -> None:
        if version != comment.version:
            raise Refused(_out_of_date(comment.version, version))

    def _permissions(self, asked: Asked) -> Answer:
        explicit = {name: level for name, level in self.users.items() if name not in self.by_group and asked.one("filter") in name}
        return self._page(asked, [{"user": _person(name), "permission": level} for name, level in explicit.items()])

    def _list_users(self, asked: Asked) -> Answer:
        place = (asked.one("permission.1.projectKey"), asked.one("permission.1.repositorySlug"))
        if asked.one("permission.1") and "/".join(place) != self.repository:
            return self._absent("Repository", f"Repository {'/'.join(place)} does not exist.")
        least = LEVELS.index(asked.one("permission.1", "LICENSED"))
        found = [name for name, level in self.users.items() if LEVELS.index(level) >= least and asked.one("filter") in name]
        return self._page(asked, [_person(name) for name in found])

    def _page(self, asked: Asked, found: list[Json]) -> Answer:
        start, size = int(asked.one("start", "0")), int(asked.one("limit", "25"))
        shown = found[start : start + size]
        is_last = start + size >= len(found)
        body = {"size": len(shown), "limit": size, "start": start, "isLastPage": is_last, "values": shown}
        return Answer(200, {**body, "nextPageStart": None if is_last else start + size})

    def _of(self, asked: Asked) -> PullRequest:
        number = int(asked.at["id"])
        if number not in self.pull_requests:
            raise Refused(self._absent("PullRequest", f"Pull request {number} does not exist in {self.repository}."))
        return self.pull_requests[number]

    def _existing(self, asked: Asked) -> Comment:
        found = self.comments.get(int(asked.at["comment"]))
        if found is None or found.pull_request != self._of(asked).number:
            raise Refused(self._absent("Comment", f"The comment with ID {asked.at['comment']} does not exist."))
        return found

    def _mine(self, asked: Asked) -> Comment:
        found = self._existing(asked)
        if found.author != asked.user:
            raise Refused(self.forbidden(asked))
        return found

    def _absent(self, what: str, words: str) -> Answer:
        return _errors(404, None, words, f"com.atlassian.bitbucket.NoSuch{what}Exception")

    def may(self, grant: Grant, needs: Sequence[str]) -> bool:
        return any(LEVELS.index(need) <= LEVELS.index(scope) for need in needs for scope in grant.scopes)

    def error(self, message: str) -> Json:
        return _errors(0, None, message).body

    def busy(self, seconds: int) -> Answer:
        words = "Too many requests"
        return Answer(429, self.error(words), {"Retry-After": str(seconds)})

    def unknown_token(self) -> Answer:
        kind = "com.atlassian.bitbucket.auth.IncorrectPasswordAuthenticationException"
        return _errors(401, None, "Authentication failed. Please check your credentials and try again.", kind)

    def forbidden(self, asked: Asked) -> Answer:
        return _errors(401, None, "You are not permitted to access this resource", "com.atlassian.bitbucket.AuthorisationException")

    def missing(self, what: str) -> Answer:
        return Answer(404, {"message": "HTTP 404 Not Found", "status-code": 404, "sub-code": -1})

    def unreadable(self) -> Answer:
        return _errors(400, None, "The request body is no JSON")

    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        name = str(error.path[0]) if error.path else ""
        if error.validator == "required":
            name = next(each for each in error.validator_value if each not in error.instance)
        if name == "version":
            return _out_of_date(self._existing(asked).version, -1)
        if name == "text":
            return _errors(400, "text", "Please enter a non-empty value less than 32768 characters")
        if name == "url" and error.validator == "pattern":
            return _errors(400, None, "Please specify a valid url")
        return _errors(400, name, f"Please specify a valid {name}")


def _errors(status: int, context: str | None, message: str, kind: str | None = None, **further: Any) -> Answer:
    return Answer(status, {"errors": [{"context": context, "message": message, "exceptionName": kind, **further}]})


def _out_of_date(current: int, expected: int) -> Answer:
    words = "You are attempting to modify a comment based on out-of-date information."
    kind = "com.atlassian.bitbucket.comment.CommentOutOfDateException"
    return _errors(409, None, words, kind, currentVersion=current, expectedVersion=expected)


def _shown(comment: Comment) -> Json:
    about = {"id": comment.number, "version": comment.version, "text": comment.text, "author": _person(comment.author)}
    return {**about, "severity": "NORMAL", "state": "OPEN", "threadResolved": False, "comments": [], "properties": {"repositoryId": 1}}


def _person(name: str) -> dict[str, Any]:
    return {"name": name, "slug": name, "displayName": name.title(), "id": sum(name.encode()), "active": True, "type": "NORMAL"}
