"""The whole application with a page, a queue that keeps, and a worker that always answers the same; and a browser without a screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from handler.config.secrets import resolve_all
from handler.model.errors import WorkerUnavailable
from handler.model.event import Job
from handler.queues import Queue
from handler.state.record import Run, State
from handler.web.app import WHOLE, Routes, create_app
from handler.web.status_api import WorkerLink
from tests.fakes.page_visits import PAGE_SECRETS, URL, page_settings
from tests.unit.state.samples import NOON, full, sha
from tests.unit.web.page.records import facts_of, row_of

OWN = {"Origin": URL, "Sec-Fetch-Site": "same-origin"}
COUNTS = {"equal": 0, "differs": 0, "missing": 0, "undeclared": 1, "itself": 0}
GOING = {
    "object": "Service/shop/old",
    "group": "",
    "uid": "u1",
    "place": "",
    "state": "undeclared",
    "action": "prune",
    "deletes": True,
    "held": False,
    "reason": "no longer declared",
    "sibling": "",
    "adopted": False,
    "terminating": "",
    "finalizers": [],
    "counts": {"equal": 0, "differs": 0, "undeclared": 0, "itself": 0},
    "fields": [],
    "omitted": 0,
}
LOST = {"action": "lose", "object": "ConfigMap/shop/settings", "group": "", "uid": "u2", "reason": "a hook deletes it", "held": True}
SEEN = {"target": "shop-prod", "at": NOON, "aim": "head", "commit": sha("c"), "deployed": sha(), "outcome": "planned", "message": ""}
TAIL: dict[str, Any] = {"omitted": 0, "hold": None, "notes": [], "problems": [], "who": "", "code": ""}
GAP = SEEN | {"counts": COUNTS, "fields": COUNTS, "objects": [GOING], "due": [], "lost": [LOST]} | TAIL
ORPHANS = (
    SEEN | {"counts": {"deleted": 0, "recreated": 0, "expires": 0, "kept": 0, "left": 0, "undeclared": 0, "held": 0}, "orphans": []} | TAIL
)
TREE = {"target": "shop-prod", "commit": "", "seen": NOON, "count": 0, "shown": 0, "states": {}, "roots": [], "notes": []}
EVENTS: dict[str, Any] = {"target": "shop-prod", "seen": NOON, "count": 0, "events": [], "notes": []}
LOGS = {"target": "shop-prod", "object": "Pod/shop/a", "pod": "a", "container": "main", "previous": False, "lines": ["one", "two"]}
LOGS |= {"withheld": "", "fix": "", "notes": [], "containers": [{"name": "main", "previous": False}], "pods": []}
DIFF: dict[str, Any] = {"target": "shop-prod", "before": "", "after": sha(), "counts": {"created": 1}, "count": 0, "objects": []}
DIFF |= {"notes": [], "problems": []}
RUN = Run("shop-prod.0123456789ab", "push", "applied", NOON, sha(), "Add api", "Ada <ada@example.com>", "ada", digest="d" * 12)


class Kept(Queue):
    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def put(self, job: Job) -> str:
        self.jobs.append(job)
        return f"{job.target}.0123456789ab"


class Door:
    """The application, and what it asked of a worker that always answers the same."""

    def __init__(self, state: State | None = None, *parts: Any) -> None:
        self.state: State | None = state or replace(full(), history=(RUN,))
        self.queue, self.asked, self.trouble = Kept(), list[dict[str, Any]](), dict[str, dict[str, str]]()
        self.run: dict[str, Any] | None = None
        self.away = self.by_configuration = False
        self.unread: dict[str, Any] = {}
        self.retired: list[dict[str, Any]] = []
        settings = page_settings()
        secrets = resolve_all(settings, PAGE_SECRETS, needs={"page", "tokens", "webhooks"})
        link = WorkerLink(self.answer, lambda _run: None)
        self.app = create_app(settings, secrets, self.queue, lambda: True, worker=link, routes=Routes(parts or WHOLE))

    def answer(self, question: str, **about: Any) -> dict[str, Any]:
        self.asked.append({"question": question, **about})
        if self.away:
            raise WorkerUnavailable.of("worker", "doesn't answer", fix="ask again in a second")
        if question in self.trouble:
            return {"trouble": self.trouble[question]}
        answers: dict[str, Callable[[], Any]] = {
            "targets": lambda: {
                "targets": [row_of(self.state) | {"target": name} | self.unread for name in about["names"]],
                "retired": self.retired,
            },
            "target": lambda: {"target": facts_of(self.state) | {"target": about["name"]} | self._suspended() | self.unread},
            "picture": lambda: {"picture": None},
            "deliveries": lambda: {"recorded": [], "unread": []},
            "suspend": lambda: {"done": "suspended"},
            "resume": lambda: {"done": "resumed"},
            "run": lambda: {"run": self.run},
        }
        shapes = {"gap": GAP, "orphans": ORPHANS, "tree": TREE, "events": EVENTS, "logs": LOGS, "diff": DIFF}
        return answers[question]() if question in answers else {question: shapes[question]}

    def _suspended(self) -> dict[str, bool]:
        return {"suspended": True, "suspendedByConfiguration": True} if self.by_configuration else {}

    def browser(self, who: str = "") -> FlaskClient:
        client = self.app.test_client()
        if who:
            found = client.post("/ui/login", data={"token": PAGE_SECRETS[who]}, headers=OWN, base_url=URL)
            assert found.status_code == 303
        return client


def get(client: FlaskClient, path: str) -> TestResponse:
    return client.get(path, base_url=URL)


def fields(page: TestResponse) -> dict[str, str]:
    """The hidden fields of the form that a confirmation shows."""
    form = page.text[page.text.index('class="confirm"') :]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', form))


def post(client: FlaskClient, path: str, form: dict[str, str], headers: dict[str, str] | None = None) -> TestResponse:
    return client.post(path, data=form, headers=OWN if headers is None else headers, base_url=URL)
