"""`anneal kubernixos`: Kubernixos' own words in front of the same code.

    (none)    evaluate, and check against the cluster       nothing is printed or changed
    dump      print the objects, ready for kubectl apply    no cluster is asked
    apply     apply them, list what `prune` would delete
    prune     ask, and delete that                          never after an apply that failed

Words combine, and are done in this order; the first stage that fails ends the command. Deleting is upstream's search with our guards.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from handler.cli import diff, reports
from handler.cli.kubernixos_flags import DRY_RUN, VALIDATE
from handler.cli.kubernixos_source import closure, in_place, placed
from handler.cli.render import rendered_at
from handler.cli.run_job import printing, run, stoppable
from handler.cli.session import Session, local_user
from handler.config.settings import Target, Wait
from handler.engine.planner.planner import Planned
from handler.engine.prune_alone import PruneAlone
from handler.model.errors import (
    AnnealError,
    ClusterUnavailable,
    KubeconfigInvalid,
    ManifestInvalid,
    Problem,
    RendererUnavailable,
    RenderFailed,
    ServerPinned,
    SourceRefused,
)
from handler.model.event import Job
from handler.model.manifest import at
from handler.model.names import KUBERNIXOS, Identity
from handler.model.plan import Change

_STAGES = {
    **dict.fromkeys((each.code for each in (RenderFailed, ManifestInvalid, SourceRefused, RendererUnavailable)), "eval"),
    **dict.fromkeys((each.code for each in (KubeconfigInvalid, ServerPinned)), "kube-config"),
    ClusterUnavailable.code: "kube-client",
}
"""An error's code -> upstream's name of the stage that it is of, whatever is under way."""


class _Ended(Exception):
    """The command ends with this exit code; what there is to say is said."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def kubernixos(session: Session, *, words: Sequence[str], yes: bool, dry_run: str, level: int, **rest: Any) -> int:
    """Deploy what NixOS modules declare, as Kubernixos does."""
    session.output.verbose |= level > 0
    shown = DRY_RUN[dry_run]
    if "prune" in words and not (yes or shown or session.output.interactive):
        raise click.UsageError("prune: there is no terminal to ask on, so it needs --yes")
    try:
        with _stage(session, "eval"):
            chosen = closure(session, rest["name"], rest["target"], show_trace=rest["show_trace"])
        if rest["validate"] or rest["patience"]:
            chosen = _with_flags(session, chosen, rest["validate"], rest["patience"])
        _go(_Command(session, chosen, shown=shown, yes=yes), frozenset(words))
    except _Ended as ended:
        return ended.code
    return reports.DONE_CODE


def _with_flags(session: Session, target: Target, validate: str | None, patience: float) -> Target:
    checked = replace(target, validate=VALIDATE[validate]) if validate else target  # type: ignore[arg-type]  # they are its values
    flagged = replace(checked, wait=Wait(timeout=patience)) if patience else checked
    return in_place(session, flagged)


@contextlib.contextmanager
def _stage(session: Session, name: str) -> Iterator[None]:
    """End the command at an error, which names its stage as upstream does."""
    try:
        yield
    except AnnealError as error:
        raise _failed(session, name, error.code, error.problems) from None


def _failed(session: Session, stage: str, code: str, problems: Sequence[Problem]) -> _Ended:
    mended = reports.mended(session.output, problems)
    first, *others = map(placed, mended) if session.sources else mended
    session.output.note(f'Error occurred during stage "{_STAGES.get(code, stage)}": {replace(first, fix="")}')
    for line in first.fix.splitlines():
        session.output.note(f"    {line}")
    reports.problems(session.output, others)
    return _Ended(reports.FAILED)


@dataclass(frozen=True, slots=True)
class _Command:
    """What a command line works on. `shown`: nothing is written; `yes`: nothing is asked."""

    session: Session
    target: Target
    shown: bool
    yes: bool

    def job(self, *, dry_run: bool, prune: bool) -> Job:
        """Return one request of this person."""
        return Job(self.target.name, "oneoff", force=True, dry_run=dry_run, prune=prune, actor=local_user())


def _go(command: _Command, words: frozenset[str]) -> None:
    """Do what the words say, in upstream's order. Raises _Ended."""
    session = command.session
    session.sandbox.start()
    if "dump" in words:
        with _stage(session, "dump"):
            _dump(command)
    if not words:
        _check(command)
    if "apply" in words:
        _apply(command)
    if words & {"apply", "prune"}:
        with _stage(session, "all-resources"):
            planned = _looked(command)
        _list(command, planned)
        if "prune" in words and not command.shown:
            _prune(command, planned)


# --- dump, check, apply
def _dump(command: _Command) -> None:
    """Print the objects as upstream's blob; nothing in it is hidden, for kubectl is to apply it."""
    _, rendered = rendered_at(command.session, command.target)
    blob = {"apiVersion": "v1", "kind": "List", "items": [manifest.body() for manifest in rendered.manifests]}
    command.session.output.text(json.dumps(blob, indent="\t", sort_keys=True))
    command.session.output.line()  # fails where the reader is gone, also when a write that isn't buffered ended early and said nothing


def _check(command: _Command) -> None:
    """Evaluate all, and have the cluster judge it; only what is wrong is printed."""
    with _stage(command.session, "validate"):
        ended = run(command.session, command.job(dry_run=True, prune=False), f"checking {command.target.name}")
    if reports.EXIT[ended.outcome] != reports.DONE_CODE:
        raise _failed(command.session, "validate", ended.code, ended.problems or (Problem(ended.target, ended.message),))


def _apply(command: _Command) -> None:
    session = command.session
    with _stage(session, "apply"):
        ended = run(session, command.job(dry_run=command.shown, prune=False), f"applying {command.target.name}")
    if reports.EXIT[ended.outcome] == reports.FAILED:
        reports.changes(session.output, ended)
        raise _failed(session, "apply", ended.code, ended.problems or (Problem(ended.target, ended.message),))
    if command.shown and ended.plan:
        diff.show(session.output, replace(ended.plan, prunes=()))
    elif code := reports.result(session.output, ended):
        raise _Ended(code)


# --- prune
def _looked(command: _Command) -> Planned:
    with stoppable(command.session.output.note) as stop, command.session.output.working(f"looking for what {command.target.name} has left"):
        return _run_of(command, stop).look()


def _run_of(command: _Command, stop: Any) -> PruneAlone:
    found = command.session.handler.dependencies(command.target.name)
    target = replace(found.target, prune=replace(found.target.prune, enabled=True))  # the word stands above the setting
    return PruneAlone(replace(found, target=target), command.job(dry_run=False, prune=True), stop)


def _list(command: _Command, planned: Planned) -> None:
    links = _Links(command, planned)
    for change in planned.plan.prunes:
        if change.writes:
            command.session.output.line(f"{links.line(change)} (dry-run)", whole=True)
            diff.taken(command.session.output, change)
        else:
            command.session.output.detail(f"kept: {links.of(change.identity)}: {change.reason}")


def _prune(command: _Command, planned: Planned) -> None:
    session, links = command.session, _Links(command, planned)
    count = sum(1 + sum(gone.counted for gone in change.takes) for change in planned.plan.prunes if change.writes)
    if not count:
        return
    if not (command.yes or _confirmed(session, f"You are about to delete {count} objects, please confirm with 'yes' or 'no'")):
        session.output.line("nothing was deleted", "warn")
        raise _Ended(reports.FAILED)
    session.wrote = links.print
    try:
        with printing(session), stoppable(session.output.note) as stop:
            outcomes = _run_of(command, stop).carry_out(planned)
    except AnnealError as error:
        names = {str(identity): identity for identity in planned.bodies}
        for problem in error.problems:
            if problem.subject in names:
                session.output.note(f"Failed to prune object: {links.of(names[problem.subject])} with error: {problem.message}")
        raise _failed(session, "prune", error.code, error.problems) from None
    for change in outcomes:
        if not change.writes:
            session.output.line(f"kept: {links.of(change.identity)}: {change.reason}", "warn")


def _confirmed(session: Session, question: str) -> bool:
    """Ask as upstream does: nothing typed is no."""
    typed = session.output.ask(question, "")
    while typed.lower() not in ("yes", "no", ""):
        typed = session.output.ask("Please type yes or no and then press enter", "")
    return typed.lower() == "yes"


@dataclass(frozen=True, slots=True)
class _Links:
    """How upstream names objects: by their paths, with the checksums of their labels."""

    command: _Command
    planned: Planned

    def of(self, identity: Identity) -> str:
        """Return an object's path; its name, where its kind isn't served any more."""
        resource = self.command.session.handler.discovery(self.command.target).preferred(identity.group_kind)
        return resource.path(identity.namespace, identity.name) if resource else str(identity)

    def line(self, change: Change) -> str:
        """Return upstream's line of an object that goes."""
        bodies: Mapping[Identity, dict[str, Any]] = self.planned.bodies
        checksum = at(bodies.get(change.identity), "metadata", "labels", KUBERNIXOS) or ""
        return f"Pruning: {self.of(change.identity)}, checksum: {checksum}"

    def print(self, changes: Sequence[Change]) -> None:
        """Print what went."""
        for change in changes:
            self.command.session.output.line(self.line(change), whole=True)
