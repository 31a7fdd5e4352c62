"""Bitbucket Cloud's API for build statuses and comments on pull requests.

Its fields, scopes and answers are those of developer.atlassian.com/cloud/bitbucket/rest (the groups commit-statuses, pullrequests, commits,
repositories and workspaces); bounds that the description leaves out are those of refusals that its users have quoted. No registry has its
OpenAPI description.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, ClassVar

from jsonschema.exceptions import ValidationError

from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Json, PullRequest, Refused, Request, Route, moment
from tests.fakes.git_hosts.served_host import USER, ServedHost, password

REPOSITORY = "/repositories/{workspace}/{slug}"
BUILD = f"{REPOSITORY}/commit/{{sha}}/statuses/build"
COMMENTS = f"{REPOSITORY}/pullrequests/{{id}}/comments"
WORKSPACE = "/workspaces/{workspace}/permissions/repositories/{slug}"
URL = r"^https?://(localhost|\d+\.\d+\.\d+\.\d+|([\w{}-]+\.)+[\w{}-]+)(:\d+)?(/.*)?$"
"""An address whose host has a domain: Bitbucket refuses `http://ci:8080`."""
LONGEST = 32_768
FIELDS = {
    "key": {"type": "string", "minLength": 1, "maxLength": 40},
    "state": {"type": "string", "enum": ["SUCCESSFUL", "FAILED", "INPROGRESS", "STOPPED"]},
    "url": {"type": "string", "pattern": URL},
    "name": {"type": "string", "maxLength": 255},
    "description": {"type": "string", "maxLength": 255},
    "refname": {"type": "string"},
}
STATUS = {"type": "object", "required": ["key", "state", "url"], "properties": FIELDS}
CHANGED_STATUS = {"type": "object", "properties": FIELDS}
CONTENT = {"type": "object", "required": ["raw"], "properties": {"raw": {"type": "string", "minLength": 1, "maxLength": LONGEST}}}
REPLIED = {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}
COMMENT = {"type": "object", "required": ["content"], "properties": {"content": CONTENT, "parent": REPLIED, "pending": {"type": "boolean"}}}


class Bitbucket(ServedHost):
    """Bitbucket Cloud. `users`: a person's permission of read, write, admin, none by account id; `by_group`: who has it by a group.

    `administrators`: users whose tokens may ask for permissions; `forks`: commits of other repositories, by their names.
    """

    root: ClassVar[str] = "/2.0"
    scopes: ClassVar[frozenset[str]] = frozenset({"repository", "repository:admin", "pullrequest:write"})

    def __init__(self, repository: str = "acme/shop") -> None:
        super().__init__(repository)
        self.by_group: set[str] = set()
        self.forks: dict[str, set[str]] = {}
        self.administrators = {USER}

    def routes(self) -> Sequence[Route]:
        reading, pulls, administering = ("repository", "repository:write"), ("pullrequest", "pullrequest:write"), ("repository:admin",)
        listed = frozenset({"page", "pagelen", "q", "sort"})
        return [
            Route("POST", BUILD, self._here(self._create_status), reading, STATUS),
            Route("GET", f"{BUILD}/{{key}}", self._here(self._status), reading),
            Route("PUT", f"{BUILD}/{{key}}", self._here(self._change_status), reading, CHANGED_STATUS),
            Route("GET", f"{REPOSITORY}/commit/{{sha}}/statuses", self._here(self._list_statuses), reading, query=listed),
            Route("GET", f"{REPOSITORY}/commit/{{sha}}", self._commit, reading),
            Route("GET", f"{REPOSITORY}/pullrequests/{{id}}", self._here(self._pull_request), pulls),
            Route("POST", COMMENTS, self._here(self._create_comment), pulls, COMMENT),
            Route("GET", COMMENTS, self._here(self._list_comments), pulls, query=listed),
            Route("GET", f"{COMMENTS}/{{comment}}", self._here(self._comment), pulls),
            Route("PUT", f"{COMMENTS}/{{comment}}", self._here(self._change_comment), pulls, COMMENT),
            Route("DELETE", f"{COMMENTS}/{{comment}}", self._here(self._delete_comment), pulls),
            Route("GET", f"{REPOSITORY}/merge-base/{{revspec}}", self._here(self._merge_base), reading),
            Route("GET", f"{REPOSITORY}/permissions-config/users/{{user}}", self._here(self._permission), administering),
            Route("GET", WORKSPACE, self._here(self._permissions), reading, query=listed),
        ]

    def _here(self, answer: Any) -> Any:
        def answered(asked: Asked) -> Answer:
            if f"{asked.at['workspace']}/{asked.at['slug']}" != self.repository:
                return self.missing(f"Repository {asked.at['workspace']}/{asked.at['slug']}")
            made: Answer = answer(asked)
            return made

        return answered

    def _commit(self, asked: Asked) -> Answer:
        place = f"{asked.at['workspace']}/{asked.at['slug']}"
        if place not in (self.repository, *self.forks):
            return self.missing(f"Repository {place}")
        found = self._sha(asked.at["sha"], self.forks.get(place, self.commits))
        return Answer(200, {"type": "commit", "hash": found, "repository": {"type": "repository", "full_name": place}})

    def _sha(self, text: str, commits: Collection[str] | None = None) -> str:
        """Return a commit by its name, or by the beginning of it."""
        found = [each for each in (self.commits if commits is None else commits) if len(text) >= 7 and each.startswith(text)]
        if len(found) != 1:
            raise Refused(self.missing(f"Commit {text}"))
        return found[0]

    def _create_status(self, asked: Asked) -> Answer:
        sha, body = self._sha(asked.at["sha"]), asked.body
        found = self._build(sha, body["key"])
        if found is None:
            found = {
                "type": "build",
                "uuid": f"{{{self.next_number()}}}",
                "created_on": moment(),
                "refname": None,
                "name": "",
                "description": "",
            }
            self.statuses.setdefault(sha, []).append(found)
        found |= {**body, "updated_on": moment()}
        return Answer(201, found)

    def _build(self, sha: str, key: str) -> Json:
        return next((each for each in self.statuses.get(sha, ()) if each["key"] == key), None)

    def _existing_status(self, asked: Asked) -> Json:
        found = self._build(self._sha(asked.at["sha"]), asked.at["key"])
        if found is None:
            raise Refused(self.missing(f"Build status {asked.at['key']}"))
        return found

    def _status(self, asked: Asked) -> Answer:
        return Answer(200, self._existing_status(asked))

    def _change_status(self, asked: Asked) -> Answer:
        found = self._existing_status(asked)
        if asked.body.get("key", found["key"]) != found["key"]:
            return self._field("key", "The key cannot be changed.")
        found |= {**asked.body, "updated_on": moment()}
        return Answer(200, found)

    def _list_statuses(self, asked: Asked) -> Answer:
        return self._page(asked, self.statuses.get(self._sha(asked.at["sha"]), []))

    def _pull_request(self, asked: Asked) -> Answer:
        found = self._of(asked)
        sides = {}
        for side, sha, branch in (("source", found.head, found.source), ("destination", found.base, found.target)):
            full_name = f"{found.author}/shop" if side == "source" and found.fork else self.repository
            repository = None if side == "source" and found.orphan else {"type": "repository", "full_name": full_name}
            sides[side] = {"commit": {"type": "commit", "hash": sha[:12]}, "branch": {"name": branch}, "repository": repository}
        state = {"open": "OPEN", "merged": "MERGED", "closed": "DECLINED"}[found.state]
        about = {"type": "pullrequest", "id": found.number, "title": found.title, "state": state, "draft": found.draft}
        return Answer(200, {**about, **sides, "author": _account(found.author)})

    def _create_comment(self, asked: Asked) -> Answer:
        made = Comment(self.next_number(), self._of(asked).number, asked.body["content"]["raw"], asked.user)
        self.comments[made.number] = made
        return Answer(201, self._shown(made))

    def _list_comments(self, asked: Asked) -> Answer:
        number = self._of(asked).number
        return self._page(asked, [self._shown(each) for each in self.comments.values() if each.pull_request == number])

    def _comment(self, asked: Asked) -> Answer:
        return Answer(200, self._shown(self._existing(asked)))

    def _change_comment(self, asked: Asked) -> Answer:
        found = self._mine(asked)
        found.text, found.version = asked.body["content"]["raw"], found.version + 1
        return Answer(200, self._shown(found))

    def _delete_comment(self, asked: Asked) -> Answer:
        found = self._mine(asked)
        found.text, found.deleted = "", True
        return Answer(204)

    def _merge_base(self, asked: Asked) -> Answer:
        one, _, other = asked.at["revspec"].partition("..")
        found = self.merge_base(self._sha(one), self._sha(other))
        return Answer(200, {"type": "commit", "hash": found}) if found else self.missing("Merge base")

    def _administered(self, asked: Asked) -> None:
        if asked.user not in self.administrators:
            raise Refused(Answer(403, self.error("You must have admin permission for this repository.")))

    def _permission(self, asked: Asked) -> Answer:
        self._administered(asked)
        name = asked.at["user"]
        if name not in self.users:
            return self.missing("User")
        return Answer(
            200, self._granted(name, "none" if name in self.by_group else self.users[name]) | {"type": "repository_user_permission"}
        )

    def _permissions(self, asked: Asked) -> Answer:
        self._administered(asked)
        wanted = asked.one("q")
        one, more = re.fullmatch(r'user\.(?:account_id|uuid)="(.*)"', wanted), re.fullmatch(r'permission>"read"', wanted)
        if wanted and not one and not more:
            self.violation(asked.request, f"a filter that isn't known here: {wanted}")
        found = {name: each for name, each in self.users.items() if each != "none"}
        found = {name: each for name, each in found.items() if not one or one[1] in (name, f"{{{name}}}")}
        return self._page(asked, [self._granted(name, each) for name, each in found.items() if not more or each != "read"])

    def _granted(self, name: str, permission: str) -> dict[str, Any]:
        repository = {"type": "repository", "full_name": self.repository}
        return {"type": "repository_permission", "permission": permission, "user": _account(name), "repository": repository}

    def _page(self, asked: Asked, found: list[Json]) -> Answer:
        size, page = min(int(asked.one("pagelen", "10")), 100), int(asked.one("page", "1"))
        body = {"size": len(found), "page": page, "pagelen": size, "values": found[(page - 1) * size : page * size]}
        there_is_more = len(found) > page * size
        following = {"next": f"{self.url}{asked.request.path}?pagelen={size}&page={page + 1}"} if there_is_more else {}
        return Answer(200, {**body, **following})

    def _of(self, asked: Asked) -> PullRequest:
        number = int(asked.at["id"])
        if number not in self.pull_requests:
            raise Refused(self.missing(f"Pull request {number}"))
        return self.pull_requests[number]

    def _existing(self, asked: Asked) -> Comment:
        found = self.comments.get(int(asked.at["comment"]))
        if found is None or found.pull_request != self._of(asked).number:
            raise Refused(self.missing("Comment"))
        return found

    def _mine(self, asked: Asked) -> Comment:
        found = self._existing(asked)
        if found.deleted:
            raise Refused(self.missing("Comment"))
        if found.author != asked.user:
            raise Refused(Answer(403, self.error("You do not have access to this comment.")))
        return found

    def _shown(self, comment: Comment) -> Json:
        content = {"type": "rendered", "raw": comment.text, "markup": "markdown", "html": f"<p>{comment.text}</p>"}
        about = {"type": "pullrequest_comment", "id": comment.number, "deleted": comment.deleted, "created_on": moment()}
        pull_request = {"type": "pullrequest", "id": comment.pull_request}
        return {**about, "content": content, "user": _account(comment.author), "pullrequest": pull_request}

    def token_of(self, request: Request) -> str:
        return password(request) or super().token_of(request)

    def error(self, message: str) -> Json:
        return {"type": "error", "error": {"message": message}}

    def _field(self, name: str, words: str) -> Answer:
        return Answer(400, {"type": "error", "error": {"fields": {name: [words]}, "message": f"{name}: {words}"}})

    def busy(self, seconds: int) -> Answer:
        return Answer(429, self.error("Rate limit for this resource has been exceeded"), {"Retry-After": str(seconds)})

    def unknown_token(self) -> Answer:
        return Answer(401, self.error("Token is invalid, expired, or not supported for this endpoint."))

    def forbidden(self, asked: Asked) -> Answer:
        scopes = self.tokens[self.token_of(asked.request)].scopes
        detail = {"granted": sorted(scopes), "required": [asked.route.needs[0]]}
        words = "Your credentials lack one or more required privilege scopes."
        return Answer(403, {"type": "error", "error": {"message": words, "detail": detail}})

    def missing(self, what: str) -> Answer:
        return Answer(404, self.error(f"{what} not found" if what else "Resource not found"))

    def unreadable(self) -> Answer:
        return Answer(400, self.error("Bad request"))

    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        names = [str(each) for each in error.path]
        if names[:1] == ["content"] and error.validator == "maxLength":
            return Answer(400, text="<h1>Bad Request (400)</h1>")
        if error.validator == "required":
            wanted = next(each for each in error.validator_value if each not in error.instance)
            return self._field(".".join([*names, wanted]), "This field is required.")
        said = {
            "maxLength": f"Ensure this value has at most {error.validator_value} characters (it has {len(str(error.instance))}).",
            "minLength": "This field is required.",
            "pattern": "Enter a valid URL.",
            "enum": f"Select a valid choice. {error.instance} is not one of the available choices.",
        }
        return self._field(".".join(names), said.get(str(error.validator), "Enter a valid value."))


def _account(name: str) -> dict[str, Any]:
    return {"type": "user", "account_id": name, "nickname": name, "display_name": name.title(), "uuid": f"{{{name}}}"}
