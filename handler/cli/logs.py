"""What the containers of unhealthy objects have logged last, read live with the rights of the kubeconfig that the command uses."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from handler.cli.session import Session
from handler.engine.planner.due import FAILED
from handler.model.errors import AnnealError, RolloutFailed
from handler.model.result import Result

if TYPE_CHECKING:
    from handler.config.settings import Target
    from handler.inspect.pod_logs import LoggedPod
    from handler.state.record import State


def of_record(state: State | None) -> list[str]:
    """Return which objects a record calls unhealthy: those of failed steps, what the newest wait left, and what does worst now."""
    steps = state.rollout.steps if state and state.rollout else ()
    lines = (*state.status.unhealthy, *state.health.worst) if state else ()
    return [*(step.object for step in steps if step.outcome == FAILED), *(line.partition(": ")[0] for line in lines)]


def read(session: Session, target: Target, subjects: Iterable[str]) -> list[LoggedPod]:
    """Read the logs of the first of these objects that have pods, with the kubeconfig's own rights. Raises AnnealError."""
    from handler.inspect import pod_logs

    return pod_logs.read(lambda: session.handler.api(target, impersonated=False), subjects)


def after_failure(session: Session, ended: Result) -> None:
    """Print what the containers of a failed rollout have logged, where a person looks: the log of a pipeline keeps what it is given."""
    target = session.settings.target(ended.target)
    if session.output.as_json or not sys.stdout.isatty() or target is None or ended.code != RolloutFailed.code:
        return
    try:
        found = read(session, target, (problem.subject for problem in ended.problems))
    except AnnealError as error:
        session.output.note(f"the logs can't be read: {error.problems[0]}")
        return
    for line in (line for each in found if each.tail for line in each.lines()):
        session.output.line(line, "dim")
