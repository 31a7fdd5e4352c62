"""`anneal retire`: ends a target that isn't configured any more, or what one has in a namespace that left its whitelist.

It works by the record alone. All of it is shown with its counts, then asked. Without a configuration the flags, or their defaults, say
where the record is.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import click

from handler.app.instances.listed_objects import KindNotServed
from handler.app.instances.registry import Instances
from handler.app.retiring import exclusive_notes, is_here, places_of, retire_of
from handler.cli import diff, reports
from handler.cli.output import Output
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.config.load import ConfigNotFound
from handler.config.settings import Cluster, Settings, Target
from handler.engine.retire import Retire, Retired, Retirement
from handler.engine.run.errors import RequestRefused
from handler.model.errors import NoInstance
from handler.model.instance import is_instance, template_of
from handler.model.names import IDENTITY, PART_OF, STATE_NAMESPACE, Identity, kubectl
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
    dry_run: bool,
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
    if is_instance(target):
        _refuse_living(session, target)
    session.beside = settings.targets  # what they declare by now isn't deleted, nor left to what they delete
    if prune and settings.targets:
        session.sandbox.start()
    place = _place(settings, session, target, configured)
    asked = retire_of(session.handler, place, prune=prune, kinds=kinds, namespace=namespace, written=before)
    with session.output.working(f"looking at what {target} has"):
        shown = asked.look()
    flags = {"--namespace": namespace, "--state-namespace": state_namespace, "--installation": installation}
    typed = _typed(target, "--prune" if prune else "--keep", kinds, flags)
    if configured is None:
        _refuse_strangers(session, target, asked, shown, typed, repository)
    typed += ["--repository", repository] if repository else []
    if not (yes or dry_run or session.output.interactive):
        command = session.output.complete(shlex.join([*typed, "-y"]))
        raise click.UsageError(f"there is no terminal to ask on, so it needs -y: {command}")
    notes = [*summary(shown, namespace), *exclusive_notes(session.handler, before, place, shown.staying)]
    _show(session, shown, notes)
    if dry_run:
        return _only_shown(session, target, asked, shown, notes)
    if not yes and not session.output.confirm(
        f"Retire {f'what {target} has in {namespace}' if namespace else f'{target}, and its record'}?"
    ):
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


def _refuse_living(session: Session, name: str) -> None:
    """An instance whose object lives, and is selected, ends with that."""
    template = session.settings.target(template_of(name))
    if template is None or not template.is_template:
        return
    try:
        identity = Instances.of(session.ways(git=False)).find(name).instance.identity
    except (NoInstance, KindNotServed):
        return
    seen = f"is the instance of {identity}, which lives: its next run would bring all of it back"
    raise RequestRefused.of(f"target {name}", seen, fix=f"delete that, and it ends: {kubectl('delete', identity)}")


def _refuse_strangers(session: Session, name: str, asked: Retire, shown: Retirement, typed: Sequence[str], repository: str) -> None:
    """Refuse what another configuration may run: a server does, or no target of this one is of its repository."""
    found, subject = shown.state.repository, f"target {name}"
    if server := asked.server():
        seen = f"the server {server} looks after it: a configuration has it still"
        raise RequestRefused.of(subject, seen, fix="take it out of that, and let the server read that")
    known = {key for each in session.configured for key in each.repository.keys}
    if known and found and repository_key(found) not in {*known, repository_key(repository)}:
        seen = f"is of {found}, which no configured target has: another configuration may run it"
        again = session.output.complete(shlex.join([*typed, "--repository", found]))
        raise RequestRefused.of(subject, seen, fix=f"only if none does: {again}")


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


def _typed(name: str, way: str, kinds: Sequence[str], flags: Mapping[str, str]) -> list[str]:
    """Return this command as it was typed; flags of the configuration and of clusters are added where it is shown."""
    named = [*(("--kind", kind) for kind in kinds), *((flag, value) for flag, value in flags.items() if value)]
    return ["anneal", "retire", name, way, *(part for pair in named for part in pair)]


def _show(session: Session, shown: Retirement, notes: Sequence[str]) -> None:
    output = session.output
    for change in (*shown.going, *shown.staying):
        diff.one(output, change)
    for line in notes:
        output.line(line, "warn")
    if state := shown.state.suspend:
        output.line(f"it is suspended by {state.by}: {state.reason or 'no reason given'}", "warn")


def summary(shown: Retirement, namespace: str = "") -> list[str]:
    """Return what would be done, in the words of the guards."""
    whole = many(shown.planned.plan.live_members, "live object")
    place = f" in namespace {namespace}" if namespace else ""
    going, staying = len(shown.going), len(shown.staying)
    lines = [f"{going} of {whole} would be deleted{place}"] if going else []
    lines += [f"{staying} of {whole} would stay{place}, without our marks"] if staying else []
    kinds = sorted({str(change.identity.kind) for change in shown.staying if "prune.kinds" in change.reason})
    lines += [f"to delete those of kind {', '.join(kinds)}, too: {' '.join(f'--kind {kind}' for kind in kinds)}"] if kinds else []
    lines = lines or [f"no object of it lives{place}"]
    space = Identity("", "Namespace", "", namespace)
    return [*lines, *([_STAYS.format(*_ends(space))] if any(change.identity == space for change in shown.planned.plan.prunes) else [])]


def _ends(space: Identity) -> tuple[str, ...]:
    """Return how a Namespace is called that is no content of itself, and what deletes it, or lets go of it."""
    marks = (kubectl(verb, space, f"{key}-") for verb, key in (("label", PART_OF), ("annotate", IDENTITY)))
    return str(space), kubectl("delete", space), " && ".join(marks)


_STAYS = "{0} itself stays, for it isn't in itself: `{1}` deletes it, with all that is left there; `{2}` lets go of it"


def _only_shown(session: Session, name: str, asked: Retire, shown: Retirement, notes: Sequence[str]) -> int:
    output = session.output
    if output.as_json:
        going, staying = ([str(change.identity) for change in changes] for changes in (shown.going, shown.staying))
        output.document({"target": name, "namespace": asked.namespace, "toDelete": going, "toLetGo": staying, "notes": [*notes]})
    output.line("nothing was changed: it was only shown", "good")
    return reports.DONE_CODE


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
