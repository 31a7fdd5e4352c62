"""`GET /api/...` and `/metrics`: how targets stand, for named tokens. The worker is asked; this process reaches no cluster."""

from __future__ import annotations

import functools
import json
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Protocol

from flask import Response, jsonify

from handler import __version__
from handler.config.settings import ReplayToken, Settings
from handler.feedback.exposition import CONTENT_TYPE
from handler.feedback.prometheus import DoorCounts, DoorMetrics
from handler.model.errors import AnnealError, BadPayload, Forbidden, NoInstance, WorkerUnavailable
from handler.model.names import target_of
from handler.model.pull_request import lead_target
from handler.queues.pending import Work
from handler.web.recent_deliveries import RecentDeliveries
from handler.web.tokens import PathNotFound, Tokens, configured, require, touches

_LOG = logging.getLogger("anneal.read")
MOST_TARGETS, PAGE = 1000, 500
MOST_INSTANCES = 100
MOST_DELIVERIES, LATEST = 500, 100
MOST_NAME = 1000  # characters of an object's name that are asked for: kind, namespace and name have fewer
_GONE = (
    "is neither waiting nor remembered nor recorded: a run that changed nothing leaves no record, and only the worker process that ran it"
    " remembers it, for a while"
)
_LINES = "aren't served here: functions write them to their log, and CloudWatch reads them there (namespace Anneal)"
_RUN = re.compile(r".+\.[0-9a-f]{12}")  # the form of a run's id; another text is none of ours


class AskWorker(Protocol):
    """Puts a question to the worker process."""

    def __call__(self, question: str, **about: Any) -> dict[str, Any]:
        """Return its answer. Raises WorkerUnavailable."""


@dataclass(frozen=True, slots=True)
class WorkerLink:
    """The way to the worker. `waits`: what the web process itself still has of a request; `sees`: what waits and runs can be asked for.

    A queue elsewhere can't be looked into: what isn't recorded may wait there, run, or never have been asked.
    """

    ask: AskWorker
    waits: Callable[[str], Work | None]
    sees: bool = True


@dataclass(frozen=True, slots=True)
class StatusApi:
    """Answers read requests of named tokens."""

    settings: Settings
    tokens: Tokens
    worker: WorkerLink
    recent: RecentDeliveries
    counts: DoorCounts

    def targets(self, authorization: str, query: Mapping[str, str]) -> Response:
        """A page of the targets that the token may read, by name."""
        token = self._reader(authorization)
        limit = _number(query, "limit", PAGE, MOST_TARGETS)
        left = [name for name in self._readable(token) if name > query.get("after", "")]
        page = left[:limit]
        found = self._answered("targets", names=page, retired=True) if page else {"targets": [], "retired": []}
        listed, following = sorted(found["targets"], key=lambda row: str(row["target"])), page[-1] if len(left) > limit else None
        retired = [row for row in found["retired"] if touches(token, str(row["target"]))]
        return jsonify(version=__version__, targets=listed, retired=retired, next=following)

    def target(self, authorization: str, target: str) -> Response:
        """One target, whole."""
        configured(self._reader(authorization), target, self.settings)
        return jsonify(self._answered("target", name=target)["target"])

    def instances(self, authorization: str, target: str, query: Mapping[str, str]) -> Response:
        """A page of a template's instances that the token may read, by name; a token of some of them reads those."""
        token = self._reader(authorization)
        limit = _number(query, "limit", MOST_INSTANCES, MOST_INSTANCES)
        template = self.settings.target(target)
        if template is None or not template.is_template or not _may_have_some(token, target):
            configured(token, target, self.settings)
            raise PathNotFound.of(f"target {target[:64]}", "has no instances: its `trigger` names no resource")
        found = self._answered("instances", name=target, globs=list(token.targets), after=query.get("after", ""), limit=limit)
        if not (found["count"] or found["trouble"]):
            configured(token, target, self.settings)  # a token of none of them learns nothing of the template
        return jsonify(found)

    def gap(self, authorization: str, target: str, query: Mapping[str, str]) -> Response:
        """How a target's objects and fields stand against git now; of one `object` its equal fields, too."""
        configured(self._reader(authorization), target, self.settings)
        return jsonify(self._answered("gap", name=target, object=query.get("object", "")[:MOST_NAME])["gap"])

    def orphans(self, authorization: str, target: str) -> Response:
        """What a target's next run would delete, and what it would keep."""
        configured(self._reader(authorization), target, self.settings)
        return jsonify(self._answered("orphans", name=target)["orphans"])

    def run(self, authorization: str, run: str) -> Response:
        """One run, by its id."""
        configured(self._reader(authorization), lead_target(target_of(run)), self.settings)
        ours = self.worker.waits(run)  # before the worker is asked: what it is handed meanwhile is found in one of the two
        found = self._answered("run", run=run)["run"] or (_queued(ours) if ours else None)
        if found is None and (self.worker.sees or not _RUN.fullmatch(run)):
            raise PathNotFound.of(f"run {run[:80]}", _GONE)
        return jsonify(found or _unknown(run))

    def deliveries(self, authorization: str, query: Mapping[str, str]) -> Response:
        """What arrived at this process lately, and what the targets have recorded."""
        token = self._reader(authorization)
        limit = _number(query, "limit", LATEST, MOST_DELIVERIES)
        wanted = query.get("target")
        if wanted is not None:
            configured(token, wanted, self.settings)
        names = self._readable(token) if wanted is None else [wanted]
        everything = "*" in token.targets and wanted is None
        here = self.recent.shown(frozenset(names).__contains__, everything=everything, limit=limit)
        kept = self._recorded(names)
        return jsonify(since=self.recent.since, process=here, recorded=kept["recorded"][:limit], unread=kept["unread"])

    def openapi(self, authorization: str) -> Response:
        """The description of all this, for any token."""
        self.tokens.bearer(authorization)
        return Response(_document(), mimetype="application/json")

    def metrics(self, authorization: str) -> Response:
        """Both processes' metrics, for a token that may see every target."""
        token = self.tokens.bearer(authorization)
        require(token, "metrics")
        if "*" not in token.targets:
            raise Forbidden.of(f"token {token.name}", "may not touch every target, and metrics show them all")
        if not isinstance(self.counts, DoorMetrics):
            raise PathNotFound.of("metrics", _LINES)
        return Response(exposed(self.counts, self.worker.ask), content_type=CONTENT_TYPE)

    def _reader(self, authorization: str) -> ReplayToken:
        token = self.tokens.bearer(authorization)
        require(token, "read")
        return token

    def _readable(self, token: ReplayToken) -> list[str]:
        return sorted(target.name for target in self.settings.targets if touches(token, target.name))

    def _recorded(self, names: list[str]) -> dict[str, Any]:
        try:
            return self._answered("deliveries", names=names) if names else {"recorded": [], "unread": []}
        except WorkerUnavailable as error:
            unread = {"code": error.code, "message": str(error), "seen": "", "age": None}
            return {"recorded": [], "unread": [{"target": name, **unread} for name in names]}

    def _answered(self, question: str, **about: Any) -> dict[str, Any]:
        return _answered(self.worker.ask, question, **about)


def exposed(metrics: DoorMetrics, ask: AskWorker) -> str:
    """Return both processes' metrics as text; without the worker's where it doesn't answer."""
    try:
        return metrics.merged(str(_answered(ask, "metrics")["text"]))
    except WorkerUnavailable:
        return metrics.merged(None)


def _answered(ask: AskWorker, question: str, **about: Any) -> dict[str, Any]:
    """Ask the worker; what it couldn't find out is as good as its silence, but says why."""
    answer = ask(question, **about)
    if trouble := answer.get("trouble"):
        if trouble["code"] == NoInstance.code:
            raise PathNotFound.of(f"target {str(about.get('name', ''))[:64]}", "is no instance")
        raise WorkerUnavailable.of("worker", f"{trouble['code']}: {trouble['message']}")
    return answer


def _unknown(run: str) -> dict[str, Any]:
    return {"run": run, "target": target_of(run), "trigger": "", "actor": "", "status": "unknown", "requests": [run], "source": "record"}


def _may_have_some(token: ReplayToken, template: str) -> bool:
    """Whether a token's bounds may hold instances of a template."""
    return touches(token, template) or any("." in glob for glob in token.targets)


def _queued(work: Work) -> dict[str, Any]:
    job, requests = work.job, list(work.runs)
    known = {"run": work.run, "target": job.target, "trigger": job.cause, "actor": job.actor}
    return known | {"status": "queued", "requests": requests, "source": "memory"}


def logged(route: str, view: Callable[..., Response]) -> Callable[..., Response]:
    """Wrap a view so that each refusal is one line of the log, without what was sent."""

    @functools.wraps(view)
    def seen(**given: str) -> Response:
        try:
            return view(**given)
        except AnnealError as refusal:
            _LOG.warning("read refused", extra={"fields": {"route": route, "code": refusal.code, "seen": str(refusal)}})
            raise

    return seen


def _number(query: Mapping[str, str], name: str, default: int, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= most):
        raise BadPayload.of(f"query {name}", f"expected a number from 1 to {most}")
    return int(text)


@functools.cache
def _document() -> str:
    import yaml  # noqa: PLC0415 - only this route needs it

    return json.dumps(yaml.safe_load(files("handler.web").joinpath("openapi.yaml").read_text("utf-8")))
