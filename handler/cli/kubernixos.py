"""`anneal kubernixos`: Kubernixos' own words in front of the same code.

    (none)    evaluate, and check against the cluster       nothing is printed or changed
    dump      print the objects, ready for kubectl apply    no cluster is asked
    apply     apply them, list what `prune` would delete
    prune     ask, and delete that                          never after an apply that failed

Words combine, and are done in this order. Without `--target` there is one instance, whose files are those of the checkout around the present
directory, its state in namespace `default`, every kind and every namespace: as upstream. Deleting is upstream's search with our guards.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import click

from handler.cli import diff, reports
from handler.cli.kubernixos_flags import DRY_RUN, NAMESPACE, VALIDATE
from handler.cli.kubernixos_source import closure
from handler.cli.render import rendered_at
from handler.cli.run_job import printing, run_as, stoppable
from handler.cli.session import Session, local_user
from handler.config.settings import Target, Wait
from handler.engine.planner.planner import Planned
from handler.engine.prune_alone import PruneAlone
from handler.model.errors import (
    AnnealError,
    AuthorError,
    ClusterUnavailable,
    ConfigInvalid,
    KubeconfigInvalid,
    ManifestInvalid,
    RenderFailed,
    RendererUnavailable,
    ServerPinned,
    SourceRefused,
)
from handler.model.event import Job
from handler.model.names import KUBERNIXOS, Identity
from handler.model.plan import Action, Change
from handler.model.result import Result

__all__ = ["NAMESPACE", "kubernixos"]
_EVAL = (RenderFailed, ManifestInvalid, SourceRefused, RendererUnavailable)
_KUBE_CONFIG = (KubeconfigInvalid, ServerPinned)
_STAGES = {**{each.code: "eval" for each in _EVAL}, **{each.code: "kube-config" for each in _KUBE_CONFIG}}
"""Code of an error -> the stage that it is of, whenever it comes."""


class _Ended(Exception):  # noqa: N818 - the end of a command, with its exit code
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def kubernixos(
    session: Session, *, words: Sequence[str], yes: bool, dry_run: str, validate: str | None, patience: float, level: int, **rest: Any
) -> int:
    """Deploy what NixOS modules declare, as Kubernixos does."""
    session.output.verbose |= level > 0
    only_shown = DRY_RUN[dry_run]
    if "prune" in words and not (yes or only_shown or session.output.interactive):
        raise click.UsageError("prune: there is no terminal to ask on, so it needs --yes")
    command = _Command(session, only_shown=only_shown, yes=yes)
    try:
        with command.stage("eval"):
            target = closure(session, str(rest["name"]), rest["target"], show_trace=bool(rest["show_trace"]))
        command.target = _flagged(target, validate, patience)
        command.go(frozenset(words))
    except _Ended as ended:
        return ended.code
    return reports.DONE_CODE


def _flagged(target: Target, validate: str | None, patience: float) -> Target:
    """Return a target with what kubectl's flags say."""
    pruning = replace(target, prune=replace(target.prune, enabled=True))
    checked = replace(pruning, validate=VALIDATE[validate]) if validate else pruning  # type: ignore[arg-type]  # both are its values
    return replace(checked, wait=Wait(timeout=patience)) if patience else checked


@dataclass(slots=True)
class _Command:
    """One command line. `only_shown`: nothing is written; `target`: what is deployed."""

    session: Session
    only_shown: bool
    yes: bool
    target: Target | None = None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Name the stage of an error that ends the command, as upstream does."""
        try:
            yield
        except AnnealError as error:
            self._fail(_STAGES.get(error.code, name), error)

    def _fail(self, stage: str, error: AnnealError) -> None:
        first, *others = reports.mended(self.session.output, error.problems)
        self.session.output.note(f'Error occurred during stage "{stage}": {first.bare()}')
        raise _Ended(reports.FAILED)

    def go(self, words: frozenset[str]) -> None:
        """Do what the words say, in upstream's order."""
        assert self.target is not None  # noqa: S101 - set before
        if "dump" in words:
            with self.stage("eval"):
                self._dump()
