"""GitLab's API for commit statuses and notes of merge requests.

Its fields, bounds and words are those of docs.gitlab.com/api/commits#set-commit-pipeline-status, docs.gitlab.com/api/notes#merge-requests,
docs.gitlab.com/api/repositories#merge-base and docs.gitlab.com/api/project_members, and of what GitLab's own tests expect: no registry has
its OpenAPI description. A status is a job of a pipeline: it goes from state to state, and a step that isn't one is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jsonschema.exceptions import ValidationError

from tests.fakes.git_hosts.exchange import Answer, Asked, Comment, Json, PullRequest, Refused, Request, Route, moment
from tests.fakes.git_hosts.served_host import ServedHost

PROJECT = "/projects/{id}"
MERGE_REQUEST = f"{PROJECT}/merge_requests/{{iid}}"
NOTES = f"{MERGE_REQUEST}/notes"
READ, WRITE = ("read_api", "api"), ("api",)
PAGES = frozenset({"page", "per_page"})
REPORTER, DEVELOPER, MAINTAINER = 20, 30, 40
TEXT = {"type": ["string", "null"]}
STATUS = {
    "type": "object",
    "required": ["state"],
    "properties": {
        "state": {"type": "string", "enum": ["pending", "running", "success", "failed", "canceled", "skipped"]},
        "ref": {**TEXT, "maxLength": 255},
        "target_url": {**TEXT, "maxLength": 255, "pattern": "^https?://"},
        "description": {**TEXT, "maxLength": 255},
        "name": TEXT,
        "context": TEXT,
        "coverage": {"type": "number"},
        "pipeline_id": {"type": "integer"},
    },
}
NOTE_TEXT = {"type": "string", "minLength": 1, "maxLength": 1_000_000}
NEW_NOTE = {
    "type": "object",
    "required": ["body"],
    "properties": {"body": NOTE_TEXT, "internal": {"type": "boolean"}, "created_at": TEXT, "merge_request_diff_head_sha": TEXT},
}
CHANGED_NOTE = {"type": "object", "properties": {"body": NOTE_TEXT}}
STEPS: Mapping[str, tuple[str, frozenset[str]]] = {
    "pending": ("enqueue", frozenset({"created"})),
    "running": ("run", frozenset({"created", "pending"})),
    "success": ("success", frozenset({"created", "pending", "running"})),
    "failed": ("drop", frozenset({"created", "pending", "running"})),
    "canceled": ("cancel", frozenset({"created", "pending", "running"})),
    "skipped": ("skip", frozenset({"created", "pending"})),
}
"""By state: the event that leads to it, and from where."""
QUICK_ACTION = re.compile(r"^/(merge|close|reopen|approve|unapprove|assign|label|title|draft|ready|rebase|target_branch)\b", re.MULTILINE)
_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Pipeline:
    """One pipeline of a commit on a ref."""

    number: int
    sha: str
    ref: str


class GitLab(ServedHost):
    """GitLab. `users`: the access level of a person by number, both as text; `roles`: those of tokens' users, Maintainer by default.

    `branches`: which a commit is on, `main` by default; `pipelines`: oldest first; `jobs`: names that CI jobs have; `updating`: commits
    whose status another client changes; `carried_out`: quick actions of notes.
    """

    root: ClassVar[str] = "/api/v4"
    scopes: ClassVar[frozenset[str]] = frozenset({"api"})
    number: ClassVar[int] = 42

    def __init__(self, repository: str = "acme/shop") -> None:
        super().__init__(repository)
        self.roles: dict[str, int] = {}
        self.branches: dict[str, str] = {}
        self.protected: set[str] = set()
        self.pipelines: list[Pipeline] = []
        self.jobs: set[str] = set()
        self.updating: set[str] = set()
        self.carried_out: list[str] = []
        self._retried: set[int] = set()

    def routes(self) -> Sequence[Route]:
        listed = frozenset({"ref", "stage", "name", "pipeline_id", "all", "order_by", "sort"}) | PAGES
        notes = frozenset({"order_by", "sort", "activity_filter"}) | PAGES
        return [
            Route("POST", f"{PROJECT}/statuses/{{sha}}", self._in_project(self._set_status), WRITE, STATUS),
            Route("GET", f"{PROJECT}/repository/commits/{{sha}}/statuses", self._in_project(self._list_statuses), READ, query=listed),
            Route("GET", MERGE_REQUEST, self._in_project(self._merge_request), READ),
            Route("GET", NOTES, self._in_project(self._list_notes), READ, query=notes),
            Route("POST", NOTES, self._in_project(self._create_note), WRITE, NEW_NOTE),
            Route("GET", f"{NOTES}/{{note}}", self._in_project(self._note), READ),
            Route("PUT", f"{NOTES}/{{note}}", self._in_project(self._change_note), WRITE, CHANGED_NOTE),
            Route("DELETE", f"{NOTES}/{{note}}", self._in_project(self._delete_note), WRITE),
            Route("GET", f"{PROJECT}/repository/merge_base", self._in_project(self._merge_base), READ, query=frozenset({"refs[]"})),
            Route("GET", f"{PROJECT}/members/all/{{user}}", self._in_project(self._member), READ),
        ]

    def _in_project(self, answer: Any) -> Any:
        def answered(asked: Asked) -> Answer:
            if asked.at["id"] not in (self.repository, str(self.number)):
                return self.missing("Project")
            made: Answer = answer(asked)
            return made

        return answered

    def _role(self, asked: Asked, least: int) -> None:
        if self.roles.get(asked.user, MAINTAINER) < least:
            raise Refused(self.forbidden(asked))

    def _set_status(self, asked: Asked) -> Answer:
        self._role(asked, DEVELOPER)
        sha, body = asked.at["sha"], asked.body
        if sha in self.updating:
            return Answer(409, self.error("Another update to this commit status is in progress"))
        if sha not in self.commits:
            return self.missing("Commit")
        pipeline = self._pipeline(sha, body.get("ref"), body.get("pipeline_id"))
        if pipeline.ref in self.protected:
            self._role(asked, MAINTAINER)
        name = body.get("name") or body.get("context") or "default"
        if name in self.jobs:
            return Answer(400, {"message": {"name": ["has already been taken"]}})
        job = self._job(pipeline, name, asked.user)
        event, origins = STEPS[body["state"]]
        before = job["status"] if job else "created"
        if before not in origins:
            words = f'Cannot transition status via :{event} from :{before} (Reason(s): Status cannot transition via "{event}")'
            return Answer(400, self.error(words))
        if job is None:
            job = self._new_job(pipeline, name, asked.user)
        job |= {key: body[key] for key in ("target_url", "description", "coverage") if key in body} | {"status": body["state"]}
        return Answer(201, job)

    def _pipeline(self, sha: str, ref: str | None, number: int | None) -> Pipeline:
        """Return the newest pipeline that fits, or a new one."""
        mine = [each for each in self.pipelines if each.sha == sha and ref in (None, each.ref) and number in (None, each.number)]
        if mine:
            return mine[-1]
        if number is not None:
            raise Refused(self.missing("Pipeline for pipeline_id, sha and ref"))
        branch = ref or self.branches.get(sha, "main")
        if not branch:
            raise Refused(self.missing("References for commit"))
        self.pipelines.append(Pipeline(self.next_number(), sha, branch))
        return self.pipelines[-1]

    def _job(self, pipeline: Pipeline, name: str, user: str) -> Json:
        """Return the status that has not ended and is this user's; None: a post begins another."""
        wanted = (pipeline.number, pipeline.ref, name, user)
        for each in self.statuses.get(pipeline.sha, ()):
            is_it = (each["pipeline_id"], each["ref"], each["name"], each["author"]["username"]) == wanted
            if is_it and each["status"] in ("pending", "running"):
                return each
        return None

    def _new_job(self, pipeline: Pipeline, name: str, user: str) -> Json:
        jobs = self.statuses.setdefault(pipeline.sha, [])
        self._retried |= {each["id"] for each in jobs if (each["name"], each["pipeline_id"]) == (name, pipeline.number)}
        made = {
            "id": self.next_number(),
            "sha": pipeline.sha,
            "ref": pipeline.ref,
            "status": "created",
            "name": name,
            "target_url": None,
            "description": None,
            "coverage": None,
            "pipeline_id": pipeline.number,
            "allow_failure": False,
            "created_at": moment(),
            "started_at": None,
            "finished_at": None,
            "author": _person(user),
        }
        jobs.append(made)
        return made

    def _list_statuses(self, asked: Asked) -> Answer:
        self._role(asked, REPORTER)
        if asked.at["sha"] not in self.commits:
            return self.missing("Commit")
        everything = asked.one("all") in ("true", "1")
        found = [each for each in self.statuses.get(asked.at["sha"], []) if everything or each["id"] not in self._retried]
        for name in ("ref", "name", "pipeline_id"):
            found = [each for each in found if asked.one(name) in ("", str(each[name]))]
        by = asked.one("order_by", "id")
        if by not in ("id", "pipeline_id"):
            return Answer(400, {"error": "order_by does not have a valid value"})
        return self._page(asked, sorted(found, key=lambda each: int(each[by]), reverse=asked.one("sort") == "desc"))

    def _merge_request(self, asked: Asked) -> Answer:
        found = self._of(asked)
        return Answer(
            200,
            {
                "id": 1000 + found.number,
                "iid": found.number,
                "project_id": self.number,
                "title": found.title,
                "state": {"open": "opened"}.get(found.state, found.state),
                "draft": found.draft,
                "sha": found.head,
                "source_branch": found.source,
                "target_branch": found.target,
                "target_project_id": self.number,
                "source_project_id": None if found.orphan else self.number + 1 if found.fork else self.number,
                "author": _person(found.author),
                "diff_refs": {"base_sha": found.base, "head_sha": found.head, "start_sha": found.base},
                "web_url": f"{self.origin}/{self.repository}/-/merge_requests/{found.number}",
            },
        )

    def _list_notes(self, asked: Asked) -> Answer:
        number = self._of(asked).number
        found = [each for each in self.comments.values() if each.pull_request == number]
        return self._page(asked, [self._shown(each) for each in (found if asked.one("sort") == "asc" else found[::-1])])

    def _create_note(self, asked: Asked) -> Answer:
        found, text = self._of(asked), asked.body["body"]
        prose = _FENCED.sub("", text)
        actions = QUICK_ACTION.findall(prose)
        self.carried_out += actions
        if actions and not QUICK_ACTION.sub("", prose).strip():
            return Answer(202, {"commands_changes": {}, "summary": actions})
        made = Comment(self.next_number(), found.number, text, asked.user)
        self.comments[made.number] = made
        return Answer(201, self._shown(made))

    def _note(self, asked: Asked) -> Answer:
        return Answer(200, self._shown(self._existing(asked)))

    def _change_note(self, asked: Asked) -> Answer:
        found = self._mine(asked)
        found.text, found.version = asked.body["body"], found.version + 1
        return Answer(200, self._shown(found))

    def _delete_note(self, asked: Asked) -> Answer:
        del self.comments[self._mine(asked).number]
        return Answer(204)

    def _merge_base(self, asked: Asked) -> Answer:
        refs = asked.request.query.get("refs[]", [])
        if len(refs) < 2:
            return Answer(400, self.error("Provide at least 2 refs"))
        if unknown := [each for each in refs if each not in self.commits]:
            return Answer(400, self.error(f"Could not find ref{'s' if len(unknown) > 1 else ''}: {', '.join(unknown)}"))
        found = self.merge_base(*refs[:2])
        return Answer(200, {"id": found, "short_id": found[:8]}) if found else self.missing("Merge Base")

    def _member(self, asked: Asked) -> Answer:
        number = asked.at["user"]
        if not number.isdigit():
            return Answer(400, {"error": "user_id is invalid"})
        if number not in self.users:
            return Answer(404, self.error("404 Not found"))
        return Answer(200, {"id": int(number), "username": f"user-{number}", "state": "active", "access_level": int(self.users[number])})

    def _page(self, asked: Asked, found: list[Json]) -> Answer:
        size, page = min(int(asked.one("per_page", "20")), 100), int(asked.one("page", "1"))
        there_is_more = len(found) > page * size
        headers = {"X-Total": str(len(found)), "X-Page": str(page), "X-Per-Page": str(size), "X-Next-Page": str(page + 1) * there_is_more}
        return Answer(200, found[(page - 1) * size : page * size], headers)

    def _of(self, asked: Asked) -> PullRequest:
        number = int(asked.at["iid"])
        if number not in self.pull_requests:
            raise Refused(Answer(404, self.error("404 Not found")))
        return self.pull_requests[number]

    def _existing(self, asked: Asked) -> Comment:
        found = self.comments.get(int(asked.at["note"]))
        if found is None or found.pull_request != self._of(asked).number:
            raise Refused(Answer(404, self.error("404 Not found")))
        return found

    def _mine(self, asked: Asked) -> Comment:
        found = self._existing(asked)
        if found.author != asked.user:
            self._role(asked, MAINTAINER)
        return found

    def _shown(self, note: Comment) -> Json:
        return {
            "id": note.number,
            "body": note.text,
            "author": _person(note.author),
            "created_at": moment(),
            "updated_at": moment(),
            "system": False,
            "noteable_type": "MergeRequest",
            "noteable_id": 1000 + note.pull_request,
            "noteable_iid": note.pull_request,
            "project_id": self.number,
            "resolvable": False,
            "internal": False,
            "confidential": False,
        }

    def token_of(self, request: Request) -> str:
        return request.headers.get("private-token") or super().token_of(request)

    def error(self, message: str) -> Json:
        return {"message": message}

    def busy(self, seconds: int) -> Answer:
        words = "This endpoint has been requested too many times. Try again later."
        return Answer(429, {"message": {"error": words}}, {"Retry-After": str(seconds)})

    def unknown_token(self) -> Answer:
        return Answer(401, self.error("401 Unauthorized"))

    def forbidden(self, asked: Asked) -> Answer:
        grant = self.tokens[self.token_of(asked.request)]
        if self.denied or self.may(grant, asked.route.needs):
            return Answer(403, self.error("403 Forbidden"))
        words = "The request requires higher privileges than provided by the access token."
        return Answer(403, {"error": "insufficient_scope", "error_description": words, "scope": " ".join(asked.route.needs)})

    def missing(self, what: str) -> Answer:
        return Answer(404, self.error(f"404 {what} Not Found") if what else {"error": "404 Not Found"})

    def unreadable(self) -> Answer:
        return Answer(400, self.error("400 Bad request - message body does not match declared format"))

    def invalid(self, asked: Asked, error: ValidationError) -> Answer:
        name = str(error.path[0]) if error.path else ""
        if error.validator == "required":
            return Answer(400, {"error": f"{next(each for each in error.schema['required'] if each not in asked.body)} is missing"})
        if error.validator in ("enum", "type"):
            return Answer(400, {"error": f"{name} {'does not have a valid value' if error.validator == 'enum' else 'is invalid'}"})
        said = {
            "maxLength": f"is too long (maximum is {error.validator_value} characters)",
            "minLength": "can't be blank",
            "pattern": "is blocked: Only allowed schemes are http, https",
        }[str(error.validator)]
        if name == "body":
            return Answer(400, self.error(f'400 Bad request - Note {{note: ["{said}"]}}'))
        return Answer(400, {"message": {name: [said]}})


def _person(name: str) -> dict[str, Any]:
    return {"id": sum(name.encode()), "username": name, "name": name.title(), "state": "active"}
