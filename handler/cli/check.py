"""`anneal check`: everything that a run needs, looked at in turn, each with its way out. It changes nothing.

A step whose ground is missing is left out, all others are looked at: one call shows everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from handler.cli import reports, rights
from handler.cli.findings import Findings
from handler.cli.kinds import needed
from handler.cli.options import command, target_argument
from handler.cli.render import rendered_at
from handler.cli.running import run
from handler.cli.session import Session, local_user
from handler.cluster.access import Rule, allowed
from handler.config.settings import Target
from handler.model.errors import AccessDenied, AnnealError, Problem
from handler.model.event import Job
from handler.model.render import Rendered
from handler.model.result import Outcome
from handler.model.words import many


@command()
@target_argument
def check(session: Session, target: str | None) -> int:
    """Look at configuration, git, cluster, rights, render and plan of TARGET (of all when none is named); change nothing."""
    findings = Findings(session.output)
    findings.step("configuration", lambda: f"{session.path}: {many(len(session.settings.targets), 'target')}")
    if not findings.failed:
        chosen = session.all_or(target)
        findings.step("credentials", lambda: _credentials(session))
        for each in chosen if not findings.failed else ():
            _Target(session, each, findings).check(len(chosen) > 1)
    findings.document()
    return reports.FAILED if findings.failed else reports.DONE_CODE


def _credentials(session: Session) -> str:
    count = len(session.secrets.git)
    return f"{many(count, 'git credential')} found" if count else "none are needed for git"


class _Target:
    """The steps of one target, and what each leaves for the next."""

    def __init__(self, session: Session, target: Target, findings: Findings) -> None:
        self._session = session
        self._target = target
        self._findings = findings
        self._rendered: Rendered | None = None

    def check(self, named: bool) -> None:
        """Take every step whose ground is there."""
        step = self._named if named else self._findings.step
        git = step("git", self._git)
        cluster = step("cluster", self._cluster)
        rendered = git and step("render", self._render)
        rights_ok = cluster and step("rights", self._rights)
        if rendered and rights_ok:
            step("plan", self._plan)
        else:
            self._findings.skip(f"{self._target.name}: plan" if named else "plan", "what it needs is missing above")

    def _named(self, name: str, look: Callable[[], str]) -> bool:
        return self._findings.step(f"{self._target.name}: {name}", look)

    def _git(self) -> str:
        target, source = self._target, self._session.handler.source(self._target)
        head = source.head(target.revision)
        commit = source.fetch(head.commit, target.path).commit
        return f"{target.repository.url} {head.ref or 'commit'} is {head.commit[:12]} {commit.subject}"

    def _cluster(self) -> str:
        handler = self._session.handler
        api = handler.api(self._target, impersonated=False)
        version = (api.get("/version") or {}).get("gitVersion", "?")
        return f"{api.connection.host} ({api.connection.source}) is Kubernetes {version}"

    def _render(self) -> str:
        _, self._rendered = rendered_at(self._session, self._target)
        return f"{many(len(self._rendered.manifests), 'object')} in {self._target.path or 'the whole repository'}"

    def _rights(self) -> str:
        """Ask for what `anneal rbac` prints. Raises AccessDenied with every right that is missing and that a run can't do without."""
        session, target = self._session, self._target
        own = rights.own_grants(session.settings, target)
        found = needed(session, target, self._rendered) if self._rendered else None
        theirs = rights.target_grants(target, found) if found else ()
        missing: list[Rule] = []
        for grants, impersonated in ((own, False), (theirs, True)):
            rules = [rule for grant in grants for rule in _rules(grant)]
            answers = allowed(session.handler.api(target, impersonated=impersonated), rules)
            missing += [rule for rule, has in zip(rules, answers, strict=True) if not has]
        if missing:
            fix = f"an administrator can grant exactly this: anneal rbac {target.name} | kubectl apply -f -"
            last = len(missing) - 1
            raise AccessDenied(
                *(Problem(f"target {target.name}", f"may not {rule}", fix=fix if i == last else "") for i, rule in enumerate(missing))
            )
        wanted = [rule for grant in (rights.wanted_grants(target, found) if found else ()) for rule in _rules(grant)]
        answers = allowed(session.handler.api(target), wanted)
        lacks = [str(rule) for rule, has in zip(wanted, answers, strict=True) if not has]
        shorter = f"; a rollout that fails says less of why without {', '.join(lacks)}" if lacks else ""
        return f"all {sum(len(grant.verbs) for grant in (*own, *theirs))} that it needs{shorter}"

    def _plan(self) -> str:
        """Plan with a dry run of every change. Raises what the run was refused for."""
        job = Job(self._target.name, "oneoff", force=True, dry_run=True, actor=local_user())
        ended = run(self._session, job, f"planning {self._target.name}")
        if ended.outcome is not Outcome.PLANNED or ended.plan is None:
            raise AnnealError(*(ended.problems or (Problem(f"target {self._target.name}", ended.message),)))
        held = f"; it would be held: {'; '.join(ended.plan.hold.reasons)}" if ended.plan.hold else ""
        return f"{reports.counted(ended.counts)}{held}"


def _rules(grant: rights.Grant) -> list[Rule]:
    """Return a grant as single questions."""
    whole = Rule("", grant.group, grant.resource, grant.namespace)
    return [replace(whole, verb=verb, name=name) for verb in grant.verbs for name in grant.names or ("",)]
