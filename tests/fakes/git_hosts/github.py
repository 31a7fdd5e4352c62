"""GitHub's API for commit statuses and comments on pull requests, by GitHub's own OpenAPI description (`infra.octokit`).

What the description doesn't say is from docs.github.com/rest and from errors that GitHub's users have quoted: a description has at most
140 characters and none above U+FFFF, a comment at most 65,536, a SHA 1,000 statuses of a context.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Protocol

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from infra.octokit.github_schema import Operation, operation
from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Grant, Json, PullRequest, Refused, Route, moment
from tests.fakes.git_hosts.served_host import ServedHost

REPOSITORY = "/repos/{owner}/{repo}"
COMMENT = f"{REPOSITORY}/issues/comments/{{comment_id}}"
TOKENS = "/app/installations/{installation_id}/access_tokens"
READ_PULL, WRITE_COMMENT = ("pull_requests:read",), ("pull_requests:write", "issues:write")
READ_COMMENT = ("pull_requests:read", "issues:read")
LIMITED = "You have exceeded a secondary rate limit and have been temporarily blocked from content creation. Please retry later."
_BOUNDS: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "target_url": ({"pattern": "^https?://"}, "target_url must use http(s) scheme"),
    "description": ({"maxLength": 140, "pattern": r"^[\u0000-\uffff]*$"}, ""),
    "context": ({"maxLength": 255}, ""),
    "body": ({"minLength": 1, "maxLength": 65_536}, ""),
}
"""What GitHub refuses and its description doesn't mention."""


class App(Protocol):
    """The endpoint for installation tokens (tests/rooms/source/github_api.py): it checks the JWT."""

    def respond(self, path: str, authorization: str, body: bytes) -> tuple[int, bytes]:
        """Answer a request for a token."""


class GitHub(ServedHost):
    """GitHub. `users`: a person's permission of admin, maintain, write, triage, read, none.

    `app`, with `installed` as the permissions of its installation, hands out tokens that this host then knows.
    """

    root: ClassVar[str] = "/api/v3"
    scopes: ClassVar[frozenset[str]] = frozenset({"statuses:write", "pull_requests:write", "contents:read", "metadata:read"})

    def __init__(self, repository: str = "acme/shop", app: App | None = None, installed: Mapping[str, str] | None = None) -> None:
        super().__init__(repository)
        self.app = app
        self.installed = installed or {"statuses": "write", "pull_requests": "write", "contents": "read", "metadata": "read"}

    def routes(self) -> Sequence[Route]:
        return [
            self._route("POST", f"{REPOSITORY}/statuses/{{sha}}", self._create_status, ("statuses:write",)),
            self._route("GET", f"{REPOSITORY}/commits/{{ref}}/statuses", self._list_statuses, ("statuses:read",)),
            self._route("GET", f"{REPOSITORY}/pulls/{{pull_number}}", self._pull_request, READ_PULL),
            self._route("POST", f"{REPOSITORY}/issues/{{issue_number}}/comments", self._create_comment, WRITE_COMMENT),
            self._route("GET", COMMENT, self._comment, READ_COMMENT),
            self._route("PATCH", COMMENT, self._change_comment, WRITE_COMMENT),
            self._route("DELETE", COMMENT, self._delete_comment, WRITE_COMMENT),
            self._route("GET", f"{REPOSITORY}/compare/{{basehead}}", self._compare, ("contents:read",)),
            self._route("GET", f"{REPOSITORY}/collaborators/{{username}}/permission", self._permission, ("metadata:read",)),
            self._route("POST", TOKENS, self._access_token, ()),
        ]

    def _route(self, method: str, path: str, answer: Any, needs: tuple[str, ...]) -> Route:
        described = operation(method, path)

        def conforming(asked: Asked) -> Answer:
            if "owner" in asked.at and f"{asked.at['owner']}/{asked.at['repo']}".lower() != self.repository.lower():
                return self.missing("")
            made: Answer = answer(asked)
            return _conforming(made, described)

        return Route(method, path, conforming, needs, bounded(described.request), described.query)

    def check(self, asked: Asked) -> None:
        if not asked.request.headers.get("user-agent"):
            self.violation(asked.request, "it names no User-Agent")
            raise Refused(
                Answer(403, text="Request forbidden by administrative rules. Please make sure your request has a User-Agent header")
            )
        super().check(asked)

    def may(self, grant: Grant, needs: Sequence[str]) -> bool:
        return super().may(grant, needs) or super().may(grant, [each.replace(":read", ":write") for each in needs])

    def _create_status(self, asked: Asked) -> Answer:
        sha, body = asked.at["sha"], asked.body
        if sha not in self.commits:
            raise Refused(Answer(422, self.error(f"No commit found for SHA: {sha}")))
        context = body.get("context", "default")
        before = self.statuses.setdefault(sha, [])
        if sum(each["context"].lower() == context.lower() for each in before) >= 1000:
            raise Refused(_failed("Status", "This SHA and context has reached the maximum number of statuses."))
        made = _example("POST", f"{REPOSITORY}/statuses/{{sha}}", 201)
        made |= {"id": self.next_number(), "url": f"{self.url}/repos/{self.repository}/statuses/{sha}"}
        made |= dict.fromkeys(("created_at", "updated_at"), moment())
        made |= {name: body.get(name) for name in ("state", "target_url", "description")} | {"context": context}
        made["creator"]["login"] = asked.user
        before.append(made)
        return Answer(201, made)

    def _list_statuses(self, asked: Asked) -> Answer:
        if asked.at["ref"] not in self.commits:
            raise Refused(Answer(422, self.error(f"No commit found for SHA: {asked.at['ref']}")))
        newest_first = self.statuses.get(asked.at["ref"], [])[::-1]
        size, page = min(int(asked.one("per_page", "30")), 100), int(asked.one("page", "1"))
        shown = newest_first[(page - 1) * size : page * size]
        there_is_more = len(newest_first) > page * size
        link = f'<{self.url}{asked.request.path}?per_page={size}&page={page + 1}>; rel="next"'
        return Answer(200, shown, {"Link": link} if there_is_more else {})

    def _pull_request(self, asked: Asked) -> Answer:
        found = self._of(int(asked.at["pull_number"]))
        made = _example("GET", f"{REPOSITORY}/pulls/{{pull_number}}", 200)
        made |= {"number": found.number, "title": found.title, "draft": found.draft, "requested_teams": []}
        made |= {"state": "open" if found.state == "open" else "closed", "merged": found.state == "merged"}
        made["user"]["login"] = found.author
        for side, sha, branch in (("head", found.head, found.source), ("base", found.base, found.target)):
            made[side] |= {"sha": sha, "ref": branch}
            made[side]["repo"]["full_name"] = f"{found.author}/shop" if side == "head" and found.fork else self.repository
        if found.orphan:
            made["head"]["repo"] = None
        return Answer(200, made)

    def _create_comment(self, asked: Asked) -> Answer:
        found = self._of(int(asked.at["issue_number"]))
        if found.locked:
            raise Refused(Answer(403, self.error("Unable to create comment because issue is locked.")))
        made = Comment(self.next_number(), found.number, asked.body["body"], asked.user)
        self.comments[made.number] = made
        return Answer(201, self._shown(made))

    def _comment(self, asked: Asked) -> Answer:
        return Answer(200, self._shown(self._existing(asked)))

    def _change_comment(self, asked: Asked) -> Answer:
        found = self._existing(asked)
        found.text, found.version = asked.body["body"], found.version + 1
        return Answer(200, self._shown(found))

    def _delete_comment(self, asked: Asked) -> Answer:
        del self.comments[self._existing(asked).number]
        return Answer(204)

    def _compare(self, asked: Asked) -> Answer:
        base, _, head = asked.at["basehead"].partition("...")
        found = self.merge_base(base, head)
        if not {base, head} <= self.commits:
            return self.missing("")
        if not found:
            return Answer(404, _error(f"No common ancestor between {base} and {head}."))
        made = _example("GET", f"{REPOSITORY}/compare/{{basehead}}", 200)
        made["merge_base_commit"]["sha"] = found
        made["base_commit"]["sha"] = base
        made["status"] = "identical" if base == head else {base: "ahead", head: "behind"}.get(found, "diverged")
        return Answer(200, made)

    def _permission(self, asked: Asked) -> Answer:
        name = asked.at["username"]
        if name not in self.users:
            return self.missing("")
        role = self.users[name]
        made = _example("GET", f"{REPOSITORY}/collaborators/{{username}}/permission", 200)
        made |= {"permission": {"maintain": "write", "triage": "read"}.get(role, role), "role_name": role}
        made["user"] |= {"login": name, "role_name": role}
        return Answer(200, made)

    def _access_token(self, asked: Asked) -> Answer:
        wanted = asked.body.get("permissions", self.installed)
        if any(not _within(access, self.installed.get(name, "")) for name, access in wanted.items()):
            raise Refused(Answer(422, self.error("The permissions requested are not granted to this installation.")))
        assert self.app is not None
        sent = asked.request
        status, content = self.app.respond(f"{self.root}{sent.path}", sent.headers.get("authorization", ""), sent.content)
        answer = Answer(status, json.loads(content))
        if status == 201:
            scopes = frozenset(f"{name}:{access}" for name, access in answer.body["permissions"].items())
            self.tokens[answer.body["token"]] = Grant("anneal[bot]", scopes)
        return answer

    def _of(self, number: int) -> PullRequest:
        if number not in self.pull_requests:
            raise Refused(self.missing(""))
        return self.pull_requests[number]

    def _existing(self, asked: Asked) -> Comment:
        number = int(asked.at["comment_id"])
        if number not in self.comments:
            raise Refused(self.missing(""))
        return self.comments[number]

    def _shown(self, comment: Comment) -> Json:
        made = _example("GET", COMMENT, 200)
        made |= {"id": comment.number, "body": comment.text, "url": f"{self.url}/repos/{self.repository}/issues/comments/{comment.number}"}
        made["issue_url"] = f"{self.url}/repos/{self.repository}/issues/{comment.pull_request}"
        made["user"]["login"] = comment.author
        return made

    def error(self, message: str) -> Json:
        return _error(message)

    def busy(self, seconds: int) -> Answer:
        return Answer(403, _error(LIMITED), {"Retry-After": str(seconds)})

    def unknown_token(self) -> Answer:
        return Answer(401, _error("Bad credentials"))

    def forbidden(self, asked: Asked) -> Answer:
        kind = "integration" if asked.user.endswith("[bot]") else "personal access token"
        return Answer(403, _error(f"Resource not accessible by {kind}"))

    def missing(self, what: str) -> Answer:
        return Answer(404, _error("Not Found"))

    def unreadable(self) -> Answer:
        return Answer(400, _error("Problems parsing JSON"))

    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        name = str(error.path[0]) if error.path else ""
        if error.validator == "required":
            wanted = next(each for each in error.schema["required"] if each not in asked.body)
            return Answer(422, _error(f'Invalid request.\n\n"{wanted}" wasn\'t supplied.'))
        if error.validator in ("maxLength", "minLength", "pattern", "enum"):
            return _out_of_bounds(name, error)
        return Answer(422, _error(f"Invalid request.\n\nFor 'properties/{name}', {error.message}."))


def bounded(schema: Mapping[str, Any] | None) -> Json:
    """Return a request's schema with what GitHub refuses beyond it; None: there is no body."""
    if schema is None:
        return None
    known = schema["properties"]
    return {**schema, "properties": known | {name: {**known[name], **_BOUNDS[name][0]} for name in known.keys() & _BOUNDS.keys()}}


def _out_of_bounds(name: str, error: ValidationError) -> Answer:
    if name == "body":
        words = (
            f"Body is too long (maximum is {error.validator_value} characters)" if error.validator == "maxLength" else "Body can't be blank"
        )
        return _failed("IssueComment", words, code="unprocessable", field="data")
    said = {
        "maxLength": f"{name} is too long (maximum is {error.validator_value} characters)",
        "pattern": _BOUNDS.get(name, ({}, ""))[1] or f"{name} contains unicode characters above 0xffff",
        "enum": f"{name} is not included in the list",
    }
    return _failed("Status", said[str(error.validator)], field=name)


def _failed(resource: str, message: str, code: str = "custom", field: str = "") -> Answer:
    found = {"resource": resource, "code": code, **({"field": field} if field else {}), "message": message}
    return Answer(422, {**_error("Validation Failed"), "errors": [found]})


def _error(message: str) -> dict[str, Any]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}


def _conforming(answer: Answer, described: Operation) -> Answer:
    """Return an answer of ours that GitHub's description allows; that a fork's repository may be gone, it doesn't mention."""
    body = answer.body
    if isinstance(body, dict) and "head" in body and body["head"]["repo"] is None:
        body = {**body, "head": {**body["head"], "repo": body["base"]["repo"]}}
    if answer.status in described.answers:
        Draft202012Validator(described.answers[answer.status]).validate(body)
    return answer


def _example(method: str, path: str, status: int) -> Json:
    return copy.deepcopy(operation(method, path).examples[status])


def _within(wanted: str, given: str) -> bool:
    levels = ("", "read", "write", "admin")
    return levels.index(wanted) <= levels.index(given)
