"""`anneal retire`: ends a target that isn't configured any more, or what one has in a namespace that left its whitelist.

It works by the record alone. All of it is shown with its counts, then asked. Without a configuration the flags, or their defaults, say
where the record is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from handler.app.retiring import is_here, places_of, retire_of
from handler.cli import diff, reports
from handler.cli.output import Output
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.config.load import ConfigNotFound
from handler.config.settings import Cluster, Settings, Target
from handler.engine.retire import Retire, Retired, Retirement
from handler.engine.run.errors import RequestRefused
from handler.model.names import STATE_NAMESPACE
from handler.model.numbers import many
from handler.model.plan import Change
from handler.model.target_matching import repository_key
from handler.plan.admission import allows


def retire(  # noqa: PLR0913 - its flags
    session: Session,
    *,
    target: str,
    prune: bool | None,
    namespace: str,
    kinds: tuple[str, ...],
    state_namespace: str,
    repository: str,
    installation: str,
    yes: bool,
) -> int:
    """Delete or let go of what TARGET has, then its record."""
    if prune is None:
        raise click.UsageError("pass --prune to delete what it has, or --keep to let go of it")
    if kinds and not prune:
        raise click.UsageError("--kind goes with --prune")
    before, settings = _settings(session), _settings(session, state_namespace, installation)
    session.settings = settings
    configured = settings.target(target) if before.state_namespace == settings.state_namespace else None  # else another record is meant
    configured = configured if configured and _is_meant(session, configured) else None
    _refuse_configured(settings, configured, target, namespace, prune=prune)
    if prune and settings.targets:  # what they declare by now isn't deleted
        session.beside = settings.targets
        session.sandbox.start()
    place = _place(settings, session, target, configured)
    asked = retire_of(session.handler, place, prune=prune, kinds=kinds, namespace=namespace, written=before)
    with session.output.working(f"looking at what {target} has"):
        shown = asked.look()
    if configured is None:
        _refuse_strangers(session, target, asked, shown, kinds, repository)
    if not _agreed(session, target, shown, asked, kinds, yes=yes):
        session.output.line("nothing was changed", "warn")
        return reports.FAILED
    return _carried_out(session, target, asked, shown)


def _settings(session: Session, state_namespace: str = "", installation: str = "") -> Settings:
    """Return the configuration with what the flags say otherwise; without one the defaults."""
    try:
        found = session.settings
    except ConfigNotFound:
        found = Settings((), state_namespace=STATE_NAMESPACE)
    changed: dict[str, Any] = {"state_namespace": state_namespace, "installation": installation}
    return replace(found, **{key: value for key, value in changed.items() if value})


def _is_meant(session: Session, configured: Target) -> bool:
    """Whether flags name a configured target's own cluster; a target may have moved from the one that they name."""
    named = session.kubeconfig or session.context
    return not named or is_here(session.ways(git=False), configured, replace(configured, cluster=Cluster()))


def _refuse_configured(settings: Settings, configured: Target | None, name: str, namespace: str, *, prune: bool) -> None:
    """A configured target ends by its configuration; only a namespace that it may not use any more is left to say goodbye to."""
    if taker := next((each.name for each in settings.targets if each.renamed_from == name), ""):
        seen = f"is what target {taker} was called before: its next run takes over what it has"
        raise RequestRefused.of(f"target {name}", seen, fix=f"anneal apply {taker}; or remove `renamedFrom` there")
    if configured is None:
        return
    if not namespace:
        seen = "is configured: its next run would bring all of it back"
        raise RequestRefused.of(f"target {name}", seen, fix="take it out of anneal.yaml first, and let the server read that")
    if allows(configured, namespace):
        seen = f"may use namespace {namespace}, so that its next run would bring back what it declares there"
        raise RequestRefused.of(f"target {name}", seen, fix=f"take {namespace} out of its `namespaces` first, and let the server read that")
    others = [each.name for each in settings.targets if each.name != name and allows(each, namespace)] if prune else []
    if others:
        seen = f"has objects in namespace {namespace}, which target {others[0]} may use and may declare by now"
        fix = f"let `anneal apply {others[0]}` take over what it declares, then pass --keep for the rest"
        raise RequestRefused.of(f"target {name}", seen, fix=fix)


def _refuse_strangers(session: Session, name: str, asked: Retire, shown: Retirement, kinds: Sequence[str], repository: str) -> None:
    """Refuse what another configuration may run: a server does, or no target of this one is of its repository."""
    found, subject = shown.state.repository, f"target {name}"
    if server := asked.server():
        seen = f"the server {server} looks after it: a configuration has it still"
        raise RequestRefused.of(subject, seen, fix="take it out of that, and let the server read that")
    known = {key for each in session.configured for key in each.repository.keys}
    if known and found and repository_key(found) not in {*known, repository_key(repository)}:
        seen = f"is of {found}, which no configured target has: another configuration may run it"
        again = f"{_typed(session, name, asked, kinds).removesuffix(' -y')} --repository {found}"
        raise RequestRefused.of(subject, seen, fix=f"only if none does: {session.output.complete(again)}")


def _place(settings: Settings, session: Session, name: str, configured: Target | None) -> Target:
    """Return a target on the cluster that has the record. Raises RequestRefused: none has, or several."""
    if configured:
        return configured
    given = bool(session.kubeconfig or session.context)
    found, unread = places_of(session.ways(git=False), name, given=given)
    if len(found) == 1:
        return found[0]
    if found:
        clusters = ", ".join(each.cluster.name for each in found)
        seen = f"has a record on {len(found)} clusters: {clusters}"
        raise RequestRefused.of(f"target {name}", seen, fix="name one of them: pass --kubeconfig FILE, or --context NAME")
    where = f"in namespace {settings.state_namespace} of {many(1 if given else len({t.cluster for t in settings.targets}) or 1, 'cluster')}"
    more = f"; not read: {'; '.join(unread)}" if unread else ""
    fix = "anneal status lists those that are; another place: --state-namespace NAMESPACE, --kubeconfig FILE"
    raise RequestRefused.of(f"target {name}", f"has no record {where}{more}", fix=fix)


def _typed(session: Session, name: str, asked: Retire, kinds: Sequence[str]) -> str:
    """Return this command as one types it, with its answer."""
    space = session.settings.state_namespace
    named = {"--namespace": asked.namespace, "--state-namespace": space if space != STATE_NAMESPACE else ""}
    more = [f"--kind {kind}" for kind in kinds] + [f"{flag} {value}" for flag, value in named.items() if value]
    return " ".join(["anneal retire", name, "--prune" if asked.prune else "--keep", *more, "-y"])


def _agreed(session: Session, name: str, shown: Retirement, asked: Retire, kinds: Sequence[str], *, yes: bool) -> bool:
    output = session.output
    if not yes and not output.interactive:
        raise click.UsageError(f"there is no terminal to ask on, so it needs -y: {output.complete(_typed(session, name, asked, kinds))}")
    for change in (*shown.going, *shown.staying):
        diff.one(output, change)
    for line in summary(shown, asked.namespace):
        output.line(line, "warn")
    if state := shown.state.suspend:
        output.line(f"it is suspended by {state.by}: {state.reason or 'no reason given'}", "warn")
    end = f"what {name} has in {asked.namespace}" if asked.namespace else f"{name}, and its record"
    return yes or output.confirm(f"Retire {end}?")


def summary(shown: Retirement, namespace: str = "") -> list[str]:
    """Return what would be done, in the words of the guards."""
    whole = many(shown.planned.plan.live_members, "live object")
    place = f" in namespace {namespace}" if namespace else ""
    going, staying = len(shown.going), len(shown.staying)
    lines = [f"{going} of {whole} would be deleted{place}"] if going else []
    lines += [f"{staying} of {whole} would stay{place}, without our marks"] if staying else []
    kinds = sorted({str(change.identity.kind) for change in shown.staying if "prune.kinds" in change.reason})
    lines += [f"to delete those of kind {', '.join(kinds)}, too: {' '.join(f'--kind {kind}' for kind in kinds)}"] if kinds else []
    return lines or [f"no object of it lives{place}"]


def _carried_out(session: Session, name: str, asked: Retire, shown: Retirement) -> int:
    output = session.output
    asked.wrote = lambda changes: _print(output, changes)
    with stoppable(output.note) as stop, output.working(f"retiring {name}"):
        done = asked.carry_out(shown, stop)
    if output.as_json:
        output.document(facts(name, done, asked))
    deleted = sum(change.removes for change in done.done)
    counts = f"{deleted} deleted, {len(done.done) - deleted} let go"
    if done.left:
        output.line(f"{name}: {counts}; {many(len(done.left), 'object')} came meanwhile: run it again", "warn")
        return reports.FAILED
    end = f"nothing of it is left in {asked.namespace}" if asked.namespace else "its record is gone"
    output.line(f"{name}: retired: {counts}; {end}", "good")
    return reports.DONE_CODE


def facts(name: str, done: Retired, asked: Retire) -> dict[str, Any]:
    """Return what was done as JSON."""
    return {
        "target": name,
        "namespace": asked.namespace,
        "deleted": [str(change.identity) for change in done.done if change.removes],
        "letGo": [str(change.identity) for change in done.done if not change.removes],
        "left": [str(identity) for identity in done.left],
        "ended": done.ended,
    }


def _print(output: Output, changes: Sequence[Change]) -> None:
    with output.still():
        for change in changes:
            diff.done(output, change, fields=False)
