"""`anneal apply` and `anneal prune`: a run that a person or a pipeline asks for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import click

from handler.cli import differences, logs, reports
from handler.cli.directory import Directory, settings_for
from handler.cli.options import PATH, command, target_argument, yes_option
from handler.cli.running import run, run_as
from handler.cli.session import Session, local_user
from handler.config.settings import Target
from handler.model.event import Job
from handler.model.plan import Action, Plan
from handler.model.result import Outcome, Result
from handler.model.words import many

STATE_NAMESPACE = "anneal-system"


@dataclass(frozen=True, slots=True)
class FromDirectory:
    """The flags of `apply -f`."""

    directory: Path
    name: str
    namespaces: tuple[str, ...]
    cluster_scoped: tuple[str, ...]
    state_namespace: str


@command()
@target_argument
@click.option("--commit", metavar="SHA", default="", help="Deploy this commit; one that isn't the head pins the target.")
@click.option("--force", is_flag=True, help="With --commit: also one that this target never ran.")
@click.option("--no-prune", is_flag=True, help="Delete nothing.")
@yes_option
@click.option("--approve", metavar="ID", default="", help="Allow what an earlier run holds under this id.")
@click.option("-f", "--filename", type=PATH, help="Apply this directory, without any anneal.yaml.")
@click.option("--name", help="With -f: the target's name.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="With -f: a namespace it may touch; the first is the default.")
@click.option("--prune", "with_prune", is_flag=True, help="With -f: delete what the directory no longer declares.")
@click.option("--cluster-scoped", multiple=True, metavar="KIND", help="With -f: a cluster-scoped kind it may declare [Namespace].")
@click.option("--state-namespace", help=f"With -f: where its state is kept [{STATE_NAMESPACE}].")
def apply(
    session: Session,
    *,
    target: str | None,
    commit: str,
    force: bool,
    no_prune: bool,
    yes: bool,
    approve: str,
    with_prune: bool,
    **local: object,
) -> int:
    """Bring the cluster to what git declares for TARGET.

    With -f it applies a directory: `anneal apply -f deploy --name shop -n shop`. Nothing is deleted then without --prune.
    """
    given = _directory_flags(target, commit, local)
    if given is None and with_prune:
        raise click.UsageError("--prune goes with -f; a configured target prunes as its settings say")
    chosen = _open(session, given) if given else session.target(target)
    prune = with_prune if given else not no_prune
    job = Job(chosen.name, "oneoff", commit=commit, force=force or not commit, prune=prune, approve=approve, actor=local_user())
    way_out = "the same command with --approve {id}" if given else ""
    return _run(session, job, yes, way_out)


def _directory_flags(target: str | None, commit: str, local: dict[str, object]) -> FromDirectory | None:
    """Return the flags of `-f`, None without it. Raises click.UsageError for what doesn't go together."""
    written = [flag for flag, value in local.items() if value and flag != "filename"]
    directory, name, namespaces = local["filename"], local["name"], local["namespaces"]
    if not isinstance(directory, Path):
        if written:
            raise click.UsageError(f"--{written[0].rstrip('s').replace('_', '-')} goes with -f DIR")
        return None
    if target or commit:
        raise click.UsageError(f"-f reads a directory; {'TARGET' if target else '--commit'} doesn't go with it")
    if not name or not isinstance(namespaces, tuple) or not namespaces:
        raise click.UsageError("-f needs --name NAME and -n NAMESPACE")
    scoped = local["cluster_scoped"] if isinstance(local["cluster_scoped"], tuple) else ()
    return FromDirectory(directory, str(name), namespaces, scoped or ("Namespace",), str(local["state_namespace"] or STATE_NAMESPACE))


def _open(session: Session, given: FromDirectory) -> Target:
    """Make the directory's target the session's."""
    settings = settings_for(given.name, given.namespaces, given.cluster_scoped, given.state_namespace)
    source = Directory(given.directory)
    if source.differs:
        session.output.note(f"{given.directory} differs from commit {source.committed.sha[:12]}; what lies there is applied")
    return session.use(settings, source)


def _run(session: Session, job: Job, yes: bool, way_out: str) -> int:
    """Ask before a deletion where a person sits; then run."""
    if job.prune and not yes and session.output.interactive:
        planned = run(session, replace(job, dry_run=True, approve=""), f"planning {job.target}")
        if planned.plan and not planned.plan.hold and not agreed(session, planned.plan):
            session.output.line("nothing was changed; --no-prune applies without deleting", "warn")
            return reports.FAILED
    return finish(session, run(session, job, f"applying {job.target}"), way_out)


def agreed(session: Session, plan: Plan) -> bool:
    """Show what would be deleted and ask; yes when nothing would."""
    going = [change for change in plan.changes if change.removes]
    for change in going:
        verb = "recreate" if change.action is Action.RECREATE else "delete"
        session.output.line(f"  {verb} {change.identity}  ({change.reason})", "bad")
    return not going or session.output.confirm(f"{many(len(going), 'object')} of {plan.target} would be deleted. Go on?")


def finish(session: Session, ended: Result, way_out: str = "") -> int:
    """Print how a run ended; return the exit code. `way_out`: what approves, with `{id}` for what is held."""
    held = ended.plan.hold if ended.plan and ended.outcome is Outcome.HELD else None
    code = reports.result(session.output, ended, way_out.format(id=held.id) if held else "")
    logs.after_failure(session, ended)
    return code


@command()
@target_argument
@yes_option
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
def prune(session: Session, target: str | None, yes: bool, dry_run: bool) -> int:
    """Delete what TARGET's git no longer declares, also where its runs don't prune; its guards hold as ever.

    It is a whole run: what differs from git is brought back, too.
    """
    chosen = session.target(target)
    pruning = replace(chosen, prune=replace(chosen.prune, enabled=True))
    job = Job(chosen.name, "oneoff", force=True, dry_run=dry_run, actor=local_user())
    if dry_run or (not yes and session.output.interactive):
        planned = run_as(session, pruning, replace(job, dry_run=True), f"planning {chosen.name}")
        if dry_run or planned.plan is None:
            return show(session, planned)
        if not planned.plan.hold and not agreed(session, planned.plan):
            session.output.line("nothing was changed", "warn")
            return reports.FAILED
    return finish(session, run_as(session, pruning, job, f"pruning {chosen.name}"))


def show(session: Session, planned: Result) -> int:
    """Print the plan of a dry run, or why there is none."""
    if planned.plan is None:
        return reports.result(session.output, planned)
    if session.output.as_json:
        session.output.document(reports.plan_facts(planned.plan))
    else:
        differences.show(session.output, planned.plan)
    return reports.DONE_CODE
