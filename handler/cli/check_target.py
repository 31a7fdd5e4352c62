"""Rows of `check` about one target: whatever a run of it does, up to the first write."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from handler.cli import check_references, needed_rights
from handler.cli.check_table import Findings
from handler.cli.needed_kinds import needed
from handler.cli.render import rendered_at
from handler.cli.run_job import run
from handler.cli.session import Session, local_user
from handler.cluster.access_review import AccessRule, allowed
from handler.cluster.api import Api
from handler.config.settings import Cluster, Target
from handler.model.errors import AccessDenied, AnnealError, Problem
from handler.model.event import Job
from handler.model.numbers import counted, many
from handler.model.render import Rendered
from handler.model.result import Outcome


class CompareClocks(Protocol):
    """Compares clocks with a target's cluster."""

    def compare(self, target: Target, api: Api) -> None:
        """Note whether they agree, once a cluster."""


class TargetChecks:
    """The steps of one target, and what each leaves for the next.

    `verdicts`: what was found of clusters, each asked once. `clocks`: compared after the cluster; None: they aren't.
    """

    def __init__(
        self,
        session: Session,
        target: Target,
        findings: Findings,
        verdicts: dict[Cluster, str | AnnealError],
        clocks: CompareClocks | None = None,
    ) -> None:
        self._session = session
        self._target = target
        self._findings = findings
        self._verdicts = verdicts
        self._clocks = clocks
        self._rendered: Rendered | None = None

    def run(self) -> None:
        """Take every step whose ground is there."""
        step = self._findings.step
        unsigned = check_references.lacks(self._target, self._session.secrets)
        if unsigned:
            self._findings.skip("git", "its credentials are missing above")
        git = not unsigned and step("git", self._git)
        cluster = step("cluster", self._cluster)
        if cluster and self._clocks:
            self._clocks.compare(self._target, self._session.handler.api(self._target, impersonated=False))
        rendered = git and step("render", self._render)
        rights_ok = cluster and step("rights", self._rights)
        if rendered and rights_ok:
            step("plan", self._plan)
        else:
            self._findings.skip("plan", "what it needs is missing above")

    def _git(self) -> str:
        target, source = self._target, self._session.handler.source(self._target)
        head = source.head(target.revision)
        commit = source.fetch(head.commit, target.path).commit
        return f"{target.repository.url} {head.ref or 'commit'} is {head.commit[:12]} {commit.subject}"

    def _cluster(self) -> str:
        cluster = self._target.cluster
        if cluster not in self._verdicts:
            try:
                self._verdicts[cluster] = reached(self._session.handler.brief_api(self._target))
            except AnnealError as error:
                self._verdicts[cluster] = error
        found = self._verdicts[cluster]
        if isinstance(found, AnnealError):
            raise found
        return found

    def _render(self) -> str:
        _, self._rendered = rendered_at(self._session, self._target)
        return f"{many(len(self._rendered.manifests), 'object')} in {self._target.path or 'the whole repository'}"

    def _rights(self) -> str:
        """Ask for what `anneal rbac` prints. Raises AccessDenied with every right that is missing and that a run can't do without."""
        session, target = self._session, self._target
        own = needed_rights.own_grants(session.settings, target)
        found = needed(session, target, self._rendered, served_only=True) if self._rendered else None
        theirs = needed_rights.target_grants(target, found) if found else ()
        missing: list[AccessRule] = []
        for grants, impersonated in ((own, False), (theirs, True)):
            rules = [rule for grant in grants for rule in _rules(grant)]
            answers = allowed(session.handler.api(target, impersonated=impersonated), rules)
            missing += [rule for rule, has in zip(rules, answers, strict=True) if not has]
        if missing:
            fix = f"an administrator can grant exactly this: anneal rbac {target.name} | kubectl apply -f -"
            raise AccessDenied(*(Problem("rights", f"may not {rule}", fix=fix) for rule in missing))
        wanted = [rule for grant in (needed_rights.wanted_grants(target, found) if found else ()) for rule in _rules(grant)]
        answers = allowed(session.handler.api(target), wanted)
        lacks = [str(rule) for rule, has in zip(wanted, answers, strict=True) if not has]
        shorter = f"; a rollout that fails says less of why without {', '.join(lacks)}" if lacks else ""
        return f"all {sum(len(grant.verbs) for grant in (*own, *theirs))} that it needs{shorter}"

    def _plan(self) -> str:
        """Plan with a dry run of every change. Raises what the run was refused for."""
        job = Job(self._target.name, "oneoff", force=True, dry_run=True, actor=local_user())
        ended = run(self._session, job, f"planning {self._target.name}")
        if ended.outcome is not Outcome.PLANNED or ended.plan is None:
            raise AnnealError(*(ended.problems or (Problem("plan", ended.message),)))
        held = f"; it would be held: {'; '.join(ended.plan.hold.reasons)}" if ended.plan.hold else ""
        return f"{counted(ended.counts)}{held}"


def reached(api: Api) -> str:
    """Ask a cluster's version; return which cluster it is. Raises AnnealError."""
    version = (api.get("/version") or {}).get("gitVersion", "?")
    return f"{api.connection.host} ({api.connection.source}) is Kubernetes {version}"


def _rules(grant: needed_rights.Grant) -> list[AccessRule]:
    """Return a grant as single questions."""
    whole = AccessRule("", grant.group, grant.resource, grant.namespace)
    return [replace(whole, verb=verb, name=name) for verb in grant.verbs for name in grant.names or ("",)]
