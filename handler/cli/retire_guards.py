"""What `anneal retire` was asked for, and what it refuses: what another configuration, a server or a living object may have still.

Law: under an installation without a name of its own a record says not whose it is: it ends only for who names its repository, by
`--repository` or typed where it is asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from handler.app.instances.listed_objects import KindNotServed
from handler.app.instances.registry import Instances
from handler.app.retiring import is_here, places_of
from handler.cli.session import Session
from handler.config.settings import Cluster, Settings, Target
from handler.engine.retire import Retire, Retirement
from handler.engine.run.errors import RequestRefused
from handler.model.advice import advice
from handler.model.errors import NoInstance
from handler.model.instance import template_of
from handler.model.names import kubectl
from handler.model.numbers import many
from handler.model.target_matching import repository_key
from handler.plan.admission import allows


@dataclass(frozen=True, slots=True)
class RetireRequest:
    """The command line."""

    target: str
    prune: bool
    namespace: str = ""
    kinds: tuple[str, ...] = ()
    state_namespace: str = ""
    repository: str = ""
    installation: str = ""
    dry_run: bool = False
    yes: bool = False

    @property
    def typed(self) -> str:
        """This command as it was typed; flags of the configuration and of clusters are added where it is shown."""
        flags = {"--namespace": self.namespace, "--state-namespace": self.state_namespace, "--installation": self.installation}
        flags["--repository"] = self.repository
        named = [*(("--kind", kind) for kind in self.kinds), *((flag, value) for flag, value in flags.items() if value)]
        way, more = "--prune" if self.prune else "--keep", {"--dry-run": self.dry_run, "-y": self.yes}
        return advice("anneal retire {}{words}", self.target, [way, *itertools.chain(*named), *(flag for flag in more if more[flag])])

    def shown(self, **changes: Any) -> str:
        """Return this command with other fields."""
        return replace(self, **changes).typed


def is_meant(session: Session, configured: Target) -> bool:
    """Whether flags name a configured target's own cluster; a target may have moved from the one that they name."""
    named = session.kubeconfig or session.context
    return not named or is_here(session.ways(git=False), configured, replace(configured, cluster=Cluster()))


def refuse_configured(settings: Settings, configured: Target | None, request: RetireRequest) -> None:
    """A configured target ends by its configuration; only a namespace that it may not use any more is left to say goodbye to."""
    name, namespace = request.target, request.namespace
    if taker := next((each.name for each in settings.targets if each.renamed_from == name), ""):
        seen = f"is what target {taker} was called before: its next run takes over what it has"
        raise RequestRefused.of(f"target {name}", seen, fix=advice("anneal apply {}; or remove `renamedFrom` there", taker))
    if configured is None:
        return
    if not namespace:
        what = "all that its instances have" if configured.is_template else "all of it"
        seen = f"is configured: its next run would bring {what} back"
        raise RequestRefused.of(f"target {name}", seen, fix="take it out of anneal.yaml first, and let the server read that")
    if configured.is_template:
        seen = f"is a template: what is in namespace {namespace} its instances have"
        raise RequestRefused.of(f"target {name}", seen, fix=advice("name one: anneal status {}", name))
    if allows(configured, namespace):
        seen = f"may use namespace {namespace}, so that its next run would bring back what it declares there"
        raise RequestRefused.of(f"target {name}", seen, fix=f"take {namespace} out of its `namespaces` first, and let the server read that")
    others = [each.name for each in settings.targets if each.name != name and allows(each, namespace)] if request.prune else []
    if others:
        seen = f"has objects in namespace {namespace}, which target {others[0]} may use and may declare by now"
        fix = advice("let `anneal apply {}` take over what it declares, then pass --keep for the rest", others[0])
        raise RequestRefused.of(f"target {name}", seen, fix=fix)


def refuse_living(session: Session, name: str) -> None:
    """An instance whose object lives, and is selected, ends with that."""
    template = session.settings.target(template_of(name))
    if template is None or not template.is_template or not is_meant(session, template):
        return
    try:
        identity = Instances.of(session.ways(git=False)).find(name).instance.identity
    except (NoInstance, KindNotServed):
        return
    seen = f"is the instance of {identity}, which lives: its next run would bring all of it back"
    raise RequestRefused.of(f"target {name}", seen, fix=advice("delete that, and it ends: {text}", kubectl("delete", identity)))


def refuse_strangers(request: RetireRequest, asked: Retire, shown: Retirement, *, is_configured: bool = False) -> None:
    """Refuse what a running server looks after, unless it is a configured target's, and what is of another repository than was named."""
    found, subject = shown.state.repository, f"target {asked.name}"
    if not is_configured and (server := asked.server()):
        seen = f"the server {server} looks after it: a configuration has it still"
        raise RequestRefused.of(subject, seen, fix="take it out of that, and let the server read that")
    if request.repository and (found or shown.going) and not is_same(request.repository, found):
        fix = advice("to see what it has: {text}", request.shown(repository="", dry_run=True, yes=False))
        raise RequestRefused.of(subject, f"is of {found or 'no repository yet'}, not of {request.repository}", fix=fix)


def is_same(named: str, found: str) -> bool:
    """Whether a repository that was named is the one that a record has."""
    return named == found or bool(found and repository_key(named) == repository_key(found))


def is_agreed(session: Session, request: RetireRequest, question: str, looks: Sequence[Retirement], show: Callable[[], None]) -> bool:
    """Show what would be done, and return whether it may be: `-y` was given, or a person agrees.

    Raises RequestRefused: the repository must be named, and no person can be asked; click.UsageError: no person can be asked.
    """
    output, known = session.output, {each.state.repository for each in looks if each.state.repository}
    unnamed = bool(known) and session.settings.is_shared and not request.repository
    asks = output.interactive and not request.yes
    if unnamed and not (asks or request.dry_run):
        seen = f"installation {session.settings.installation} is no name of its own: another configuration may have it, and run this target"
        way = advice("add --repository URL, as this shows it: {text}", request.shown(dry_run=True, yes=False))
        raise RequestRefused.of(f"target {request.target}", seen, fix=way)
    if not (asks or request.yes or request.dry_run):
        raise click.UsageError(f"there is no terminal to ask on, so it needs -y: {output.complete(request.shown(yes=True))}")
    show()
    if request.yes or request.dry_run:
        return True
    if not unnamed:
        return output.confirm(f"{question}?")
    typed = output.ask(f"{question}? Another configuration may have it: type its repository", "")
    return all(is_same(typed, each) for each in known)


def place(settings: Settings, session: Session, name: str, configured: Target | None) -> Target:
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
