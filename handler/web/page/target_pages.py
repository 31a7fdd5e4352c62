"""The pages of one target: how it stands and rolls out, its gap, inventory, orphans, history, events and logs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from handler.config.settings import Target
from handler.model.errors import Forbidden
from handler.model.names import target_of
from handler.model.result import FAILURES, Outcome
from handler.web.page.acts import ACTS, Act, possible
from handler.web.page.overview import row_view, tone_of
from handler.web.page.rendering import render
from handler.web.page.roles import Visitor
from handler.web.page.target_view import TargetView, target_view
from handler.web.page.views import Json, NotAnswered, NotTheTargets, Page, TargetPageView

_LONGEST = 400  # characters of what an address may name
_RUN = re.compile(r"[a-z0-9.-]{1,63}\.[0-9a-f]{1,64}")


def _shown(page: Page, target: Target) -> TargetView:
    return target_view(page.answers.target(target.name), page.answers.live(target.name))


def _html(page: Page, visitor: Visitor, target: Target, tab: str, **values: Any) -> Response:
    view = values.pop("view", None) or _shown(page, target)
    acts = _acts(view) if visitor.operates(target.name) else ()
    topic = target.name if tab == "target" else ""
    values |= {"view": view, "acts": acts, "reads_logs": visitor.reads_logs(target.name), "tab": tab, "tone_of": tone_of}
    return page.html(visitor, f"{tab}.html", topic=topic, troubled=bool(view.facts["trouble"]), target=target, **values)


def overview(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show how a target stands, and its rollout; after an act also what has become of that."""
    view, asked, run = _shown(page, target), ACTS.get(request.args.get("asked", "")), _outcome(page, target, request.args.get("run", ""))
    told = asked if asked and (run or (asked.question and view.facts["trouble"]) or asked.is_done(view.facts)) else None
    instances = page.answers.instances(target.name) if view.facts.get("instances") else None  # who sees a template sees all of them
    rows = [row_view(row) for row in instances["instances"]] if instances else []
    return _html(page, visitor, target, "target", view=view, asked=told, run=run, instances=instances, rows=rows)


def run(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show what has become of a run."""
    found = _run(page, target, request.args.get("id", ""))
    if found is None:
        raise NotTheTargets.of("run", "is none of this target")
    return _html(page, visitor, target, "run", run=found)


def _outcome(page: Page, target: Target, run: str) -> Json | None:
    """Return the run that an act has asked for; that it can't be read now doesn't make the act fail."""
    try:
        return _run(page, target, run)
    except NotAnswered:
        return {"run": run, "status": "unknown"}


def _run(page: Page, target: Target, run: str) -> Json | None:
    """Return how a run of a target goes on or ended; None: it is none of the target's. One that nothing is known of yet is `unknown`."""
    if not _RUN.fullmatch(run) or target_of(run) != target.name:
        return None
    found: Json | None = page.answers.ask("run", run=run)["run"]
    return found or {"run": run, "status": "unknown"}


def fragments(target: Target, facts: Mapping[str, Any]) -> Mapping[str, str]:
    """Return what of a target's page changes, by the id of its element. `facts`: `target`, `live`, as the worker has them.

    The acts are on the pages of operators alone: a browser that has no such element drops them.
    """
    view = target_view(facts["target"], facts["live"])
    live, acts = render("live.html", target=target, view=view, tone_of=tone_of), render("acts.html", target=target, acts=_acts(view))
    return {"live": live, "acts": acts}


def _acts(view: TargetView) -> tuple[Act, ...]:
    return possible(view.facts)


def gap(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show what git declares beside what lives, field by field."""
    chosen = request.args.get("object", "")[:_LONGEST]
    return _html(page, visitor, target, "gap", gap=page.answers.ask("gap", name=target.name, object=chosen)["gap"], chosen=chosen)


def inventory(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show the objects of a target, and what these own."""
    tree = _looked(page, "tree", target, {"count": 0, "shown": 0, "states": {}, "roots": [], "seen": ""})
    kind = request.args.get("kind", "")[:_LONGEST]
    return _html(page, visitor, target, "inventory", tree=tree, kind=kind)


def _looked(page: Page, question: str, target: Target, nothing: Json) -> Json:
    """Return what a look at a cluster found; where none was possible nothing, and why: the page is shown all the same."""
    try:
        found: Json = page.answers.ask(question, name=target.name)[question]
    except NotAnswered as error:
        return {**nothing, "notes": [str(error)]}
    return found


def orphans(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show what the next run deletes, and what it keeps."""
    return _html(page, visitor, target, "orphans", orphans=page.answers.ask("orphans", name=target.name)["orphans"])


def history(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show the last runs; of one of them what its commit changed."""
    view, chosen = _shown(page, target), request.args.get("run", "")[:_LONGEST]
    runs = view.state.get("history", [])
    run = next((run for run in runs if run["id"] == chosen), None)
    if chosen and run is None and view.facts["trouble"]:
        raise NotAnswered.of(f"target {target.name}", str(view.facts["trouble"]["message"]))
    if chosen and run is None:
        raise NotTheTargets.of(f"run {chosen}", "isn't in the history of this target any more")
    before = commit_before(runs, run) if run else ""
    diff = page.answers.ask("diff", name=target.name, before=before, after=run["commit"])["diff"] if run and run["commit"] else None
    return _html(page, visitor, target, "history", view=view, run=run, diff=diff, marks=run_marks(runs))


def events(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show the events of a target's objects."""
    return _html(page, visitor, target, "events", events=_looked(page, "events", target, {"events": []}))


def logs(page: Page, visitor: Visitor, target: Target) -> Response:
    """Show the end of a log, read now. Raises Forbidden: that is a permission of its own."""
    if not visitor.reads_logs(target.name):
        raise Forbidden.of(visitor.name, f"may not read logs of {target.name}; a role grants that by `logs`")
    chosen = request.args.get("object", "")[:_LONGEST]
    if not chosen:
        raise NotTheTargets.of("object", "none is named; follow a link of the inventory")
    container, previous = request.args.get("container", "")[:_LONGEST], request.args.get("previous") == "1"
    found = page.answers.ask("logs", name=target.name, object=chosen, container=container, previous=previous)["logs"]
    links = {"pods": pod_links(found), "containers": container_links(found), "query": log_query(chosen, container, previous=previous)}
    return _html(page, visitor, target, "logs", logs=found, **links)


TARGET_PAGES: Mapping[str, TargetPageView] = {
    "": overview,
    "run": run,
    "gap": gap,
    "inventory": inventory,
    "orphans": orphans,
    "history": history,
    "events": events,
    "logs": logs,
}


@dataclass(frozen=True, slots=True)
class LogLink:
    """One log. `query`: of its address; `shown`: whether it is the one that the page shows."""

    text: str
    query: str
    shown: bool


def log_query(subject: str, container: str = "", *, previous: bool = False) -> str:
    """Return the query of a log's address."""
    asked = {"object": subject, "container": container, "previous": "1" if previous else ""}
    return urlencode({name: text for name, text in asked.items() if text})


def pod_links(log: Json) -> list[LogLink]:
    """Return a link for each pod of the object whose log this is; none where it has one pod."""
    named = ((each.rpartition("/")[2], each) for each in log["pods"])
    return [LogLink(name, log_query(each), name == log["pod"]) for name, each in named]


def container_links(log: Json) -> list[LogLink]:
    """Return a link for each log that the pod has; none where there is one. They name the pod: another may do worst in a moment."""
    found = list(_containers(log, f"Pod/{log['object'].split('/')[1]}/{log['pod']}"))
    return found if len(found) > 1 else []


def _containers(log: Json, pod: str) -> Iterator[LogLink]:
    for each in log["containers"]:
        for previous in (False, True) if each["previous"] else (False,):
            text = f"{each['name']}, before its last restart" if previous else str(each["name"])
            shown = (each["name"], previous) == (log["container"], log["previous"])
            yield LogLink(text, log_query(pod, each["name"], previous=previous), shown)


def run_marks(runs: Sequence[Json]) -> dict[str, str]:
    """Return the mark of each run that has one, by the run's id: its commit is bad, or was gone back to. `runs`: the newest first.

    Of a rollback by itself the entry `rolled-back` has the commit that was gone back to; the one gone back from failed before that.
    """
    marks = dict[str, str]()
    for place, run in enumerate(runs):
        if run["outcome"] == Outcome.ROLLED_BACK:
            marks[run["id"]] = "gone back to"
            failed = (each for each in runs[place + 1 :] if each["outcome"] in FAILURES and each["commit"] != run["commit"])
            marks |= {each["id"]: "bad commit, gone back from" for each in [*failed][:1] if each["id"] not in marks}
    return marks


def commit_before(runs: Sequence[Json], run: Json) -> str:
    """Return the commit that was deployed before a run's; empty: the history doesn't say."""
    older = runs[runs.index(run) + 1 :]
    return next((each["commit"] for each in older if each["digest"] and each["commit"] != run["commit"]), "")
