"""`anneal check`: all that a server and its runs need, looked at in turn; `anneal doctor` adds the machine and a server.

    configuration    the file, and what it refers to, as `serve` resolves it
    each target      git, promotion, cluster, render, rights, plan: what a run does, up to its first write

It changes nothing. A step whose ground is missing is left out, all others are looked at: one call shows everything that is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from handler.app.external_services import fetcher
from handler.app.instances.registry import trigger_of
from handler.app.promotions import promoters_of
from handler.cli import needed_rights, reports
from handler.cli.check_table import Findings
from handler.cli.diff import by
from handler.cli.filenames import from_files
from handler.cli.instance_rights import follower_grants, how_served
from handler.cli.rbac import needed, theirs
from handler.cli.render import rendered_at
from handler.cli.run_job import run
from handler.cli.session import Session, local_user
from handler.cluster.access_review import AccessRule, allowed, whoami
from handler.cluster.api import Api
from handler.config.git_settings import git_references
from handler.config.renderer_settings import HELM, JSONNET, KUSTOMIZE, NIX
from handler.config.secrets import ALL, RUNS, Secrets, resolve_known
from handler.config.settings import Cluster, Settings, Target
from handler.config.value_formats import duration
from handler.config.webhook_providers import providers
from handler.engine.run import readiness_look
from handler.engine.run.errors import NotPromoted
from handler.model.advice import advice
from handler.model.commit_status import CommitStatus, StatusState, status_context
from handler.model.errors import AccessDenied, AnnealError, OperatorError, Problem
from handler.model.event import Job
from handler.model.numbers import counted, many
from handler.model.quotation import quoted
from handler.model.render import Rendered
from handler.model.result import Outcome
from handler.queues.sqs import URL, queue_url
from handler.render import render_tools

_GRANT = (
    "a person who may grant it gives {text} exactly this, ADMIN being a kubeconfig of theirs:"
    " anneal --kubeconfig ADMIN rbac {}{words} | kubectl --kubeconfig ADMIN apply -f -"
)
CompareClocks = Callable[[Target, Api], None]
"""Notes whether this machine's clock agrees with that of a target's cluster."""


@from_files()
def check(session: Session, target: str | None, placeholders: bool) -> int:
    """Look at configuration, secrets, git, cluster, rights, render and plan of TARGET; change nothing."""
    session.placeholders = placeholders
    findings = Findings(session.output)
    if is_configured(session, findings):
        check_targets(session, check_references(session, target, findings), findings)
    return ended(findings)


def ended(findings: Findings) -> int:
    """Print the JSON form and return the exit code."""
    findings.document()
    return reports.FAILED if findings.failed else reports.DONE_CODE


# --- the configuration
def is_configured(session: Session, findings: Findings) -> bool:
    """Note whether the configuration can be read."""

    def look() -> str:
        count = many(len(session.settings.targets), "target")  # first: it decides which file counts
        path, here = session.path, Path.cwd()
        shown = path.relative_to(here) if path.is_relative_to(here) else path  # as it would be typed here
        return f"{shown}: {count}"

    return findings.step("configuration", look)


def check_references(session: Session, named: str | None, findings: Findings) -> tuple[Target, ...]:
    """Resolve all that `serve` and `work` don't start without; return the named target, or all.

    The session works with what could be resolved: a target whose credentials are missing keeps no other from being looked at.
    """
    chosen, door = session.all_or(named), named is None
    settings = session.settings if door else replace(session.settings, targets=(*chosen, *session.settings.awaited(chosen)))
    needs = (ALL if door else RUNS) - ({"decryption"} if session.placeholders else set())
    secrets, problems = resolve_known(settings, session.environ, needs=needs, fetch=fetcher(session.environ))
    session.secrets = secrets
    for subject, mine, seen in _PARTS:
        theirs = tuple(problem for problem in problems if mine(problem.subject))
        text = seen(settings, secrets)
        if theirs:
            findings.bad(subject, theirs)
        elif text and (door or subject not in _DOORS):
            findings.good(subject, text)
    if door:
        findings.step("queue", lambda: _queue(session))
    else:
        findings.skip("door", "what only `anneal serve` needs; it is looked at when no target is named")
    return chosen


def _webhooks(settings: Settings, _secrets: Secrets) -> str:
    found = {name: len(getattr(settings.webhooks, name).secrets) for name in providers(type(settings.webhooks))}
    lines = [f"{name}: {many(count, 'secret')}" for name, count in found.items() if count]
    own = {target.name: len(target.repository.webhook.secrets) for target in settings.targets}
    lines += [f"{name}: {many(count, 'secret')} of its own" for name, count in own.items() if count]
    return ", ".join(lines) or f"none; pushes are found by looking at git each {duration(settings.interval)}"


def _tokens(settings: Settings, _secrets: Secrets) -> str:
    return ", ".join(token.name for token in settings.replay.tokens)


def _page(settings: Settings, _secrets: Secrets) -> str:
    page = settings.page
    ways = {"a trusted proxy": page.proxy, "OpenID Connect": page.oidc, "tokens": page.tokens} if page else {}
    return f"{page.url}, signed in to by {', '.join(way for way, given in ways.items() if given)}" if page else ""


def _prometheus(settings: Settings, _secrets: Secrets) -> str:
    return ", ".join(f"{each.url}{' with a token' if each.token else ''}" for each in settings.prometheus)


def _credentials(_settings: Settings, secrets: Secrets) -> str:
    count = len(secrets.git)
    return f"{many(count, 'git credential')} found" if count else "none are configured for git"


def _decryption(settings: Settings, secrets: Secrets) -> str:
    arns = {arn for target in settings.targets if target.decryption for arn in target.decryption.kms}
    counts = ((len(secrets.decryption), "age secret"), (len(arns), "KMS key"))
    return ", ".join(many(count, name) for count, name in counts if count)


def _queue(session: Session) -> str:
    url = queue_url(session.settings, session.environ)
    named = f" ({URL})" if session.environ.get(URL) else ""
    templates = [target.name for target in session.settings.targets if target.is_template]
    left = f"; functions that share it don't run {', '.join(templates)}: `anneal serve` does" if templates else ""
    return f"{url}{named}{left}" if url else "none; requests wait in the server's memory, and what is lost there is found by looking at git"


_PARTS: tuple[tuple[str, Callable[[str], bool], Callable[[Settings, Secrets], str]], ...] = (
    ("webhooks", lambda path: path.startswith("webhooks.") or ".repository.webhook." in path, _webhooks),
    ("tokens", lambda path: path.startswith("replay."), _tokens),
    ("page", lambda path: path.startswith("page."), _page),
    ("prometheus", lambda path: path.startswith("prometheus["), _prometheus),
    ("decryption", lambda path: ".decryption." in path, _decryption),
    ("credentials", lambda path: ".repository.auth." in path or ".charts[" in path, _credentials),
)
"""Row, whether a problem's path belongs to it, and what is said where nothing is wrong; empty: nothing of the kind is configured."""
_DOORS = ("webhooks", "tokens", "page")


# --- targets
def check_targets(session: Session, chosen: tuple[Target, ...], findings: Findings, clocks: CompareClocks | None = None) -> None:
    """Look at each target. `clocks`: called for each whose cluster answers."""
    verdicts: dict[Cluster, str | AnnealError] = {}
    for each in chosen:
        findings.about(each.name, heading=session.several)
        _TargetChecks(session, each, findings, verdicts, clocks).run()


@dataclass
class _TargetChecks:
    """The steps of one target. `verdicts`: on clusters, each asked once; `deployed`: the target, or one of its instances if any."""

    session: Session
    target: Target
    findings: Findings
    verdicts: dict[Cluster, str | AnnealError]
    clocks: CompareClocks | None
    rendered: Rendered | None = field(default=None, init=False)
    deployed: Target | None = field(init=False)

    def __post_init__(self) -> None:
        self.deployed = None if self.target.is_template else self.target

    def run(self) -> None:
        step = self.findings.step
        unsigned = any(ref not in self.session.secrets.git for _, ref in git_references(self.target.repository))
        if unsigned:
            self.findings.skip("git", "its credentials are missing above")
        git = not unsigned and step("git", self._git)
        if git and self.target.depends_on:
            step("order", self._order)
        if git and self.target.repository.feedback:
            step("feedback", self._feedback)
        cluster = step("cluster", self._cluster)
        if cluster and self.clocks:
            self.clocks(self.target, self.session.handler.api(self.target, impersonated=False))
        if self.target.revision.promoted and git:
            step("promotion", self._promotion)
        empty = self.target.is_template and cluster and step("instances", self._instances) and not self.deployed
        rendered = git and self.deployed and step("render", self._render)
        rights_ok = cluster and step("rights", self._rights)
        if rendered and rights_ok:
            step("plan", self._plan)
        else:
            self.findings.skip("plan", "there is no instance to plan yet" if empty else "what it needs is missing above")

    def _git(self) -> str:
        target, source = self.target, self.session.handler.source(self.target)
        head = source.head(target.revision)
        commit = source.fetch(head.commit, target.path).commit
        return f"{target.repository.url} {head.ref or 'commit'} is {head.commit[:12]} {commit.subject}"

    def _feedback(self) -> str:
        """Ask the host's API for what it shows of the head: by the credentials that write there, and without a write."""
        target, handler = self.target, self.session.handler
        api, head = handler.git_api(target), handler.source(target).head(target.revision).commit
        context = status_context(self.session.settings.installation, target.name)
        shown = api.shows(CommitStatus(head, context, StatusState.SUCCESS, ""))
        asked = " and ".join(each for each, wanted in self._wanted().items() if wanted)
        return (
            f"the host's API answers{', and shows a status' if shown else ''}; whether the token may write {asked}, the first of them says"
        )

    def _wanted(self) -> dict[str, bool]:
        return {"commit statuses": self.target.has_commit_statuses, "comments on pull requests": self.target.plans_pull_requests}

    def _order(self) -> str:
        """Say which targets it comes after, and whether each is ready for its head; that one isn't is no mistake."""
        dependencies, head = self.session.handler.dependencies(self.target.name), self.session.handler.head(self.target, math.inf)
        if not head.commit:
            return f"after {' and '.join(self.target.depends_on)}; nothing is proven yet that might wait"
        found = [(each.target.name, readiness_look.obstacle(dependencies, each, head.commit, math.inf)) for each in dependencies.awaited]
        return "after " + ", ".join(
            f"{name}, for which a run would wait: {why.why}" if why else f"{name}, which is ready" for name, why in found
        )

    def _promotion(self) -> str:
        """Read the records of the targets that it follows. Raises AnnealError: one can't be read."""
        promoters = promoters_of(self.session.handler, self.target)
        records = [promoters.records.read(name) for name in promoters.names]
        found = (f"{each.target} has {each.state.commit[:12] if each.state else 'no record yet'}" for each in records)
        return ", ".join(found)

    def _cluster(self) -> str:
        cluster = self.target.cluster
        if cluster not in self.verdicts:
            try:
                self.verdicts[cluster] = reached(self.session.handler.brief_api(self.target))
            except AnnealError as error:
                self.verdicts[cluster] = error
        found = self.verdicts[cluster]
        if isinstance(found, AnnealError):
            raise found
        return found

    def _instances(self) -> str:
        """Count the objects that are instances; one of them stands for all in what follows. Raises AnnealError: they aren't known."""
        found = self.session.handler.instances.look(self.target)
        self.deployed = found[min(found)] if found else None
        kind = trigger_of(self.target).main.kind
        return f"{many(len(found), kind)}, of which {min(found)} is looked at" if found else f"there is no {kind} yet: nothing to render"

    def _render(self) -> str:
        _, self.rendered = rendered_at(self.session, self.deployed or self.target)
        made = f"{many(len(self.rendered.manifests), 'object')} in {self.target.path or 'the whole repository'}"
        programs = self.rendered.renderer in (KUSTOMIZE, HELM, NIX)
        needs_walls = (programs or self.target.decryption) and self.target.sandbox != "weak"
        strict = "; no cloud function renders it without `sandbox: weak`" if needs_walls else ""
        return "; ".join((f"{made}{by(self.rendered.renderer)}{strict}", *_engine(self.rendered), *self.rendered.notes))

    def _rights(self) -> str:
        """Ask for what `anneal rbac` prints. Raises AccessDenied with every missing right that a run can't do without."""
        session, target = self.session, self.deployed or self.target
        own = needed_rights.own_grants(session.settings, target)
        if self.target.is_template:
            own = (*own, *follower_grants(session.settings, self.target, how_served(session.handler, self.target)))
        found = needed(session, target, self.rendered, served_only=True) if self.rendered else None
        granted = () if target.is_template else theirs(session, target, found)
        missing: list[AccessRule] = []
        for grants, impersonated in ((own, False), (granted, True)):
            rules = [rule for grant in grants for rule in _rules(grant)]
            answers = allowed(session.handler.api(target, impersonated=impersonated), rules)
            missing += [rule for rule, has in zip(rules, answers, strict=True) if not has]
        if missing:
            whose, flags = _account(session.handler.api(target, impersonated=False))
            fix = advice(_GRANT, whose, self.target.name, flags)
            raise AccessDenied(*(Problem("rights", f"may not {rule}", fix=fix) for rule in missing))
        wanted = [rule for grant in (needed_rights.wanted_grants(target, found) if found else ()) for rule in _rules(grant)]
        answers = allowed(session.handler.api(target), wanted)
        lacks = [str(rule) for rule, has in zip(wanted, answers, strict=True) if not has]
        shorter = f"; a rollout that fails says less of why without {', '.join(lacks)}" if lacks else ""
        return f"all {sum(len(grant.verbs) for grant in (*own, *granted))} that it needs{shorter}"

    def _plan(self) -> str:
        job = Job(self.target.name, "oneoff", force=True, dry_run=True, actor=local_user())
        result = run(self.session, job, f"planning {self.target.name}")
        if result.code == NotPromoted.code:
            return f"nothing yet: {result.problems[0].message if result.problems else result.message}"
        if result.outcome is not Outcome.PLANNED or result.plan is None:
            raise AnnealError(*(result.problems or (Problem("plan", result.message),)))
        held = f"; it would be held: {'; '.join(result.plan.hold.reasons)}" if result.plan.hold else ""
        return f"{counted(result.counts)}{held}"


def _engine(rendered: Rendered) -> Iterator[str]:
    """Say which engine has evaluated jsonnet, and of the library why."""
    reads, why = dict(rendered.reads.paths), "its walls don't stand here, where the target isn't `sandbox: weak`"
    try:
        program = render_tools.find(JSONNET)
    except OperatorError as error:
        why = error.problems[0].message
    else:
        if program.read in reads:
            yield f"evaluated by Google's program, jsonnet {program.version}"
    if render_tools.read_name(render_tools.LIBRARY) in reads:
        yield f"evaluated by Google's library in C++, which takes several times as long as its program: {why}"


def reached(api: Api) -> str:
    """Ask a cluster's version; return which cluster it is. Raises AnnealError."""
    version = (api.get("/version") or {}).get("gitVersion", "?")
    return f"{api.connection.host} ({api.connection.source}) is Kubernetes {version}"


def _account(api: Api) -> tuple[str, list[str]]:
    """Return whose rights were looked at, and the flags by which `anneal rbac` binds that account; none: it isn't known."""
    try:
        name, _ = whoami(api)
    except AnnealError:  # before Kubernetes 1.28, or it may not ask
        return "the handler", []
    prefix, _, account = name.partition("system:serviceaccount:")
    return quoted(name), ["--user", name] if prefix or not account else ["--service-account", account.replace(":", "/")]


def _rules(grant: needed_rights.Grant) -> list[AccessRule]:
    whole = AccessRule("", grant.group, grant.resource, grant.namespace)
    return [replace(whole, verb=verb, name=name) for verb in grant.verbs for name in grant.names or ("",)]
