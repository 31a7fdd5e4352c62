"""Azure DevOps' API for statuses and comment threads of pull requests, and for who may contribute.

Its fields, bounds and scopes are those of learn.microsoft.com/rest/api/azure/devops/git, …/security and …/ims for version 7.1; the bits are
of learn.microsoft.com/azure/devops/organizations/security/namespace-reference. No registry has its OpenAPI description.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from jsonschema.exceptions import ValidationError

from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Json, PullRequest, Refused, Request, Route, moment
from tests.fakes.git_hosts.served_host import ServedHost, password

REPOSITORY = "/{organization}/{project}/_apis/git/repositories/{repo}"
STATUSES = f"{REPOSITORY}/commits/{{sha}}/statuses"
PULL_REQUEST = f"{REPOSITORY}/pullRequests/{{id}}"
THREADS = f"{PULL_REQUEST}/threads"
COMMENTS = f"{THREADS}/{{thread}}/comments"
GIT = "2e9eb7ed-3c0a-47d4-87c1-0ffdd275fd87"
"""The security namespace of git repositories."""
CONTRIBUTE, PULL_REQUEST_CONTRIBUTE = 4, 16384
LONGEST, MOST_COMMENTS = 150_000, 500
TEXT = {"type": "string"}
FREE: dict[str, Any] = {"type": "object"}
CONTEXT = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "minLength": 1}, "genre": TEXT}}
STATUS = {
    "type": "object",
    "required": ["context"],
    "properties": {
        "context": CONTEXT,
        "state": {"type": "string", "enum": ["notSet", "pending", "succeeded", "failed", "error", "notApplicable"]},
        "description": TEXT,
        "targetUrl": {"type": "string", "pattern": "^https?://"},
        "id": {"type": "integer"},
    },
}
PULL_REQUEST_STATUS = {
    **STATUS,
    "properties": {**STATUS["properties"], "iterationId": {"type": "integer", "minimum": 1}, "properties": FREE},  # type: ignore[dict-item]  # a dict
}
KINDS = {"enum": ["unknown", "text", "codeChange", "system", 0, 1, 2, 3]}
COMMENT = {
    "type": "object",
    "required": ["content"],
    "properties": {"content": {"type": "string", "maxLength": LONGEST}, "parentCommentId": {"type": "integer"}, "commentType": KINDS},
}
THREAD_STATUS = {"enum": ["unknown", "active", "fixed", "wontFix", "closed", "byDesign", "pending", 0, 1, 2, 3, 4, 5, 6]}
CHANGED_THREAD = {"type": "object", "properties": {"status": THREAD_STATUS, "properties": FREE}}
THREAD = {
    "type": "object",
    "required": ["comments"],
    "properties": {
        "comments": {"type": "array", "minItems": 1, "items": COMMENT},
        "status": THREAD_STATUS,
        "properties": FREE,
        "threadContext": {"type": ["object", "null"]},
    },
}
READ, STATUS_READ, STATUS_WRITE = ("vso.code", "vso.code_write"), ("vso.code_status", "vso.code"), ("vso.code_status", "vso.code_write")
THREAD_READ, THREAD_WRITE = ("vso.threads_full", "vso.code", "vso.code_write"), ("vso.threads_full", "vso.code_write")


class AzureDevOps(ServedHost):
    """Azure DevOps. `users`: a person's descriptor by id; `memberships`: groups by descriptor; `entries`: bits allowed and denied, each.

    `pull_request_statuses` and `threads`: by number; `repository_id`: what the repository goes by, too; `newest_version`: that it answers;
    `signs_in`: it shows its page for signing in to whom it doesn't know, with a status that isn't a refusal.
    """

    root: ClassVar[str] = ""
    scopes: ClassVar[frozenset[str]] = frozenset({"vso.code", "vso.code_status", "vso.threads_full", "vso.security_manage", "vso.identity"})
    repository_id: ClassVar[str] = "4bc14d40-c903-45e2-872e-0462c7748079"

    def __init__(self, repository: str = "platform/shop", organization: str = "acme") -> None:
        super().__init__(repository)
        self.organization = organization
        self.newest_version = 7.1
        self.signs_in = False
        self.pull_request_statuses: dict[int, list[Json]] = {}
        self.threads: dict[int, Json] = {}
        self.memberships: dict[str, list[str]] = {}
        self.entries: dict[str, tuple[int, int]] = {}
        self.callers_bits = CONTRIBUTE | PULL_REQUEST_CONTRIBUTE

    @property
    def url(self) -> str:
        return f"{self.origin}/{self.organization}"

    def routes(self) -> Sequence[Route]:
        here, version = self._here, frozenset({"api-version"})
        listed, security = version | {"top", "skip", "latestOnly"}, ("vso.security_manage",)
        acl, identity = version | {"token", "descriptors", "includeExtendedInfo", "recurse"}, version | {"identityIds", "queryMembership"}
        return [
            Route("POST", STATUSES, here(self._create_status), STATUS_WRITE, STATUS, version),
            Route("GET", STATUSES, here(self._list_statuses), STATUS_READ, query=listed),
            Route("GET", PULL_REQUEST, here(self._pull_request), READ, query=version),
            Route("POST", f"{PULL_REQUEST}/statuses", here(self._create_pull_request_status), STATUS_WRITE, PULL_REQUEST_STATUS, version),
            Route("GET", f"{PULL_REQUEST}/statuses", here(self._list_pull_request_statuses), STATUS_READ, query=version),
            Route("POST", THREADS, here(self._create_thread), THREAD_WRITE, THREAD, version),
            Route("GET", THREADS, here(self._list_threads), THREAD_READ, query=version),
            Route("GET", f"{THREADS}/{{thread}}", here(self._thread), THREAD_READ, query=version),
            Route("PATCH", f"{THREADS}/{{thread}}", here(self._change_thread), THREAD_WRITE, CHANGED_THREAD, version),
            Route("POST", COMMENTS, here(self._create_comment), THREAD_WRITE, COMMENT, version),
            Route("GET", f"{COMMENTS}/{{comment}}", here(self._comment), THREAD_READ, query=version),
            Route("PATCH", f"{COMMENTS}/{{comment}}", here(self._change_comment), THREAD_WRITE, COMMENT, version),
            Route("DELETE", f"{COMMENTS}/{{comment}}", here(self._delete_comment), THREAD_WRITE, query=version),
            Route("GET", f"{REPOSITORY}/commits/{{sha}}/mergeBases", here(self._merge_bases), READ, query=version | {"otherCommitId"}),
            Route("GET", "/{organization}/_apis/identities", self._identities, ("vso.identity",), query=identity),
            Route("GET", f"/{{organization}}/_apis/accesscontrollists/{GIT}", self._access, security, query=acl),
            Route("GET", f"/{{organization}}/_apis/permissions/{GIT}/{{bits}}", self._own_permission, READ, query=version | {"tokens"}),
        ]

    def _here(self, answer: Any) -> Any:
        def answered(asked: Asked) -> Answer:
            project, name = self.repository.split("/")
            at = (asked.at["organization"], asked.at["project"])
            if at != (self.organization, project) or asked.at["repo"] not in (name, self.repository_id):
                words = "does not exist or you do not have permissions for the operation you are attempting."
                return _error(
                    404, f"TF401019: The Git repository with name or identifier {asked.at['repo']} {words}", "GitRepositoryNotFound"
                )
            made: Answer = answer(asked)
            return made

        return answered

    def check(self, asked: Asked) -> None:
        version = asked.one("api-version")
        if not version:
            self.violation(asked.request, "it names no api-version")
            if asked.request.method != "GET":
                words = f'No api-version was supplied for the "{asked.request.method}" request. The version must be supplied'
                raise Refused(
                    _error(400, f"{words} either as part of the Accept header or as a query parameter.", "VssVersionNotSpecified")
                )
        elif float(version.partition("-")[0]) > self.newest_version:
            words = f"The requested REST API version of {version} is out of range for this server. The latest REST API version this server"
            raise Refused(_error(400, f"{words} supports is {self.newest_version}.", "VssVersionOutOfRange"))
        super().check(asked)

    def _commit(self, sha: str) -> str:
        if sha not in self.commits:
            raise Refused(_error(404, f"TF401035: The object '{sha}' does not exist.", "GitObjectDoesNotExist"))
        return sha

    def _status(self, asked: Asked) -> Json:
        context = {"genre": None, **asked.body["context"]}
        return {"state": "notSet", **asked.body, "id": self.next_number(), "context": context, "creationDate": moment(), "createdBy": {}}

    def _create_status(self, asked: Asked) -> Answer:
        made = self._status(asked)
        self.statuses.setdefault(self._commit(asked.at["sha"]), []).append(made)
        return Answer(200, made)

    def _list_statuses(self, asked: Asked) -> Answer:
        found = self.statuses.get(self._commit(asked.at["sha"]), [])
        if asked.one("latestOnly") == "true":
            found = list({(each["context"]["genre"], each["context"]["name"]): each for each in found}.values())
        skipped = int(asked.one("skip", "0"))
        return _listed(found[skipped : skipped + int(asked.one("top", "1000"))])

    def _pull_request(self, asked: Asked) -> Answer:
        found = self._of(asked)
        about = {"pullRequestId": found.number, "title": found.title, "isDraft": found.draft, "repository": {"id": self.repository_id}}
        about |= {
            "status": {"open": "active", "merged": "completed", "closed": "abandoned"}[found.state],
            "createdBy": {"id": found.author},
        }
        about |= {"sourceRefName": f"refs/heads/{found.source}", "targetRefName": f"refs/heads/{found.target}"}
        about |= {"lastMergeSourceCommit": {"commitId": found.head}, "lastMergeTargetCommit": {"commitId": found.base}}
        return Answer(200, {**about, **({"forkSource": {"name": f"refs/heads/{found.source}"}} if found.fork else {})})

    def _create_pull_request_status(self, asked: Asked) -> Answer:
        made = self._status(asked)
        self.pull_request_statuses.setdefault(self._of(asked).number, []).append(made)
        return Answer(200, made)

    def _list_pull_request_statuses(self, asked: Asked) -> Answer:
        return _listed(self.pull_request_statuses.get(self._of(asked).number, []))

    def _create_thread(self, asked: Asked) -> Answer:
        number = self.next_number()
        pull_request = self._of(asked).number
        self.threads[number] = {"id": number, "pull_request": pull_request, "status": asked.body.get("status", "unknown")}
        for each in asked.body["comments"]:
            self._add(number, pull_request, each["content"], asked.user)
        return Answer(200, self._shown(number))

    def _add(self, thread: int, pull_request: int, text: str, author: str) -> Comment:
        made = Comment(len(self._in(thread)) + 1, pull_request, text, author, thread=thread)
        self.comments[thread * 1000 + made.number] = made
        return made

    def _in(self, thread: int) -> list[Comment]:
        return [each for each in self.comments.values() if each.thread == thread]

    def _list_threads(self, asked: Asked) -> Answer:
        number = self._of(asked).number
        return _listed([self._shown(each) for each, thread in self.threads.items() if thread["pull_request"] == number])

    def _thread(self, asked: Asked) -> Answer:
        return Answer(200, self._shown(self._existing_thread(asked)))

    def _change_thread(self, asked: Asked) -> Answer:
        number = self._existing_thread(asked)
        self.threads[number]["status"] = asked.body.get("status", self.threads[number]["status"])
        return Answer(200, self._shown(number))

    def _create_comment(self, asked: Asked) -> Answer:
        thread = self._existing_thread(asked)
        if len(self._in(thread)) >= MOST_COMMENTS:
            return _error(400, f"A thread has at most {MOST_COMMENTS} comments.", "Argument")
        return Answer(200, _comment(self._add(thread, self._of(asked).number, asked.body["content"], asked.user)))

    def _comment(self, asked: Asked) -> Answer:
        return Answer(200, _comment(self._existing(asked)))

    def _change_comment(self, asked: Asked) -> Answer:
        found = self._mine(asked)
        found.text, found.version = asked.body["content"], found.version + 1
        return Answer(200, _comment(found))

    def _delete_comment(self, asked: Asked) -> Answer:
        self._mine(asked).deleted = True
        return Answer(200)

    def _merge_bases(self, asked: Asked) -> Answer:
        found = self.merge_base(self._commit(asked.at["sha"]), self._commit(asked.one("otherCommitId")))
        return _listed([{"commitId": found}] if found else [])

    def _identities(self, asked: Asked) -> Answer:
        expanded = asked.one("queryMembership") == "expanded"
        found = [(name, self.users[name]) for name in asked.one("identityIds").split(",") if name in self.users]
        members = {of: self.memberships.get(of, []) if expanded else [] for _, of in found}
        return _listed([{"id": name, "descriptor": of, "isActive": True, "memberOf": members[of]} for name, of in found])

    def _access(self, asked: Asked) -> Answer:
        entries = {}
        for name in asked.one("descriptors").split(","):
            allow, deny = self.entries.get(name, (0, 0))
            extended = {"effectiveAllow": allow, "effectiveDeny": deny} if asked.one("includeExtendedInfo") == "true" else {}
            entries[name] = {"descriptor": name, "allow": allow, "deny": deny, "extendedInfo": extended}
        return _listed([{"inheritPermissions": True, "token": asked.one("token"), "acesDictionary": entries}])

    def _own_permission(self, asked: Asked) -> Answer:
        bits = int(asked.at["bits"])
        return _listed([self.callers_bits & bits == bits for _ in asked.one("tokens").split(",")])

    def _of(self, asked: Asked) -> PullRequest:
        number = int(asked.at["id"])
        if number not in self.pull_requests:
            raise Refused(_error(404, "TF401180: The requested pull request was not found.", "GitPullRequestNotFound"))
        return self.pull_requests[number]

    def _existing_thread(self, asked: Asked) -> int:
        number = int(asked.at["thread"])
        if number not in self.threads or self.threads[number]["pull_request"] != self._of(asked).number:
            raise Refused(_error(404, f"The comment thread {number} does not exist.", "CommentThreadNotFound"))
        return number

    def _existing(self, asked: Asked) -> Comment:
        found = self.comments.get(self._existing_thread(asked) * 1000 + int(asked.at["comment"]))
        if found is None:
            raise Refused(_error(404, f"The comment {asked.at['comment']} does not exist.", "CommentNotFound"))
        return found

    def _mine(self, asked: Asked) -> Comment:
        found = self._existing(asked)
        if found.author != asked.user:
            raise Refused(self.forbidden(asked))
        return found

    def _shown(self, number: int) -> Json:
        comments = self._in(number)
        about = {"id": number, "status": self.threads[number]["status"], "publishedDate": moment()}
        return {**about, "comments": [_comment(each) for each in comments], "isDeleted": all(each.deleted for each in comments)}

    def token_of(self, request: Request) -> str:
        return password(request) or super().token_of(request)

    def error(self, message: str) -> Json:
        return _error(0, message, "").body

    def busy(self, seconds: int) -> Answer:
        words = "TF400733: The request has been canceled: Request was blocked due to exceeding usage of resource."
        return Answer(429, self.error(words), {"Retry-After": str(seconds)})

    def unknown_token(self) -> Answer:
        if self.signs_in:
            return Answer(203, text="<html><title>Azure DevOps Services | Sign In</title></html>")
        return Answer(401, text="<html><title>Access Denied: The Personal Access Token used has expired.</title></html>")

    def forbidden(self, asked: Asked) -> Answer:
        if not self.denied and not self.may(self.tokens[self.token_of(asked.request)], asked.route.needs):
            return Answer(401, self.error("TF400813: The user is not authorized to access this resource."))
        words = "TF401027: You need the Git 'GenericContribute' permission to perform this action."
        return _error(403, words, "GitNeedsPermission")

    def missing(self, what: str) -> Answer:
        return Answer(404, text="<html><title>The resource cannot be found.</title></html>")

    def unreadable(self) -> Answer:
        return _error(400, "TF400898: An Internal Error Occurred.", "Argument")

    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        name = ".".join(str(each) for each in error.path) or "body"
        if error.validator == "maxLength":
            return _error(400, f"The comment content exceeds the maximum of {LONGEST} characters.", "Argument")
        return _error(400, f"Value cannot be null or is not valid.\r\nParameter name: {name}", "ArgumentNull")


def _error(status: int, message: str, kind: str) -> Answer:
    name = f"{kind}Exception"
    about = {"$id": "1", "innerException": None, "message": message, "typeName": f"Microsoft.TeamFoundation.Git.Server.{name}"}
    return Answer(status, {**about, "typeKey": name, "errorCode": 0, "eventId": 3000})


def _listed(found: list[Any]) -> Answer:
    return Answer(200, {"count": len(found), "value": found})


def _comment(comment: Comment) -> Json:
    about = {"id": comment.number, "parentCommentId": 0, "author": {"id": comment.author}, "commentType": "text"}
    return {**about, **({"isDeleted": True} if comment.deleted else {"content": comment.text, "isDeleted": False})}
