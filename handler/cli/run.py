"""`anneal run`: brings targets to what git declares without any webhook, once, or again and again.

Law: no second way to run anything. `oneoff` is what `anneal apply` does, for several targets; `interval` is the worker process with
nothing to hear but its clock, so runs of one target never overlap, and no failure ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace

import click

from handler import log
from handler.cli import reports
from handler.cli.engine import clock_engine
from handler.cli.options import command, targets_argument
from handler.cli.running import stoppable
from handler.cli.session import Session, local_user
from handler.cli.waits import told
from handler.config.forms import RANGES, seconds
from handler.config.settings import Target
from handler.model.event import Job
from handler.queues.lanes import Lanes
from handler.running import guarded
from handler.serve.supervise import run_alone

MINUTE = "1m"
TRIGGERS = ("oneoff", "interval")
_WORST = (reports.FAILED, reports.HELD, reports.BUSY)
"""Exit codes, the worst first."""


@command()
@targets_argument
@click.option("--trigger", type=click.Choice(TRIGGERS), default="oneoff", show_default=True, help="Once, or until SIGTERM.")
@click.option("--interval", metavar="DURATION", default=MINUTE, show_default=True, help="With --trigger=interval: from run to run, about.")
def run(session: Session, *, targets: Sequence[str], trigger: str, interval: str) -> int:
    """Bring TARGETS, or all that are configured, to what git declares; nobody has to push for it.

    `oneoff` runs each of them once and exits with the worst of their ends. `interval` stays: it begins at once, then compares live with
    git each time and mends what differs, whoever changed it; a failure is a line of its log and ends nothing.
    """
    every, chosen = duration(interval, "--interval"), session.these_or_all(targets)
    if not chosen:
        raise click.UsageError("no target is configured")
    return once(session, chosen) if trigger == "oneoff" else by_the_clock(session, chosen, every)


def once(session: Session, chosen: Sequence[Target], *, prune: bool = True) -> int:
    """Run each target once, several beside each other; print each end as it comes, and return the worst exit code."""
    handler, user = session.handler, local_user()
    session.sandbox.start()
    jobs = [Job(target.name, "oneoff", force=True, prune=prune, actor=user) for target in chosen]
    with stoppable(session.output.note) as stop, told(session), ThreadPoolExecutor(Lanes(session.settings).threads) as pool:
        runs = [pool.submit(guarded(handler.run), job, stop) for job in jobs]
        codes = {reports.result(session.output, ended.result()) for ended in as_completed(runs)}
    return next((code for code in _WORST if code in codes), reports.DONE_CODE)


def by_the_clock(session: Session, chosen: Sequence[Target], every: float) -> int:
    """Run these targets at once and then at their interval, until SIGTERM or SIGINT; return the exit status."""
    settings = replace(session.settings, targets=tuple(chosen), interval=every, drift_interval=RANGES["duration"].most)
    log.configure(session.secrets.mask, level=session.log_level)
    return run_alone(settings, clock_engine(session))


def duration(text: str, flag: str) -> float:
    """Return the seconds of a duration such as `30s` or `1h30m`. Raises click.UsageError."""
    found, limits = seconds(text), RANGES["duration"]
    if found is None or not limits.least <= found <= limits.most:
        raise click.UsageError(f"{flag}: expected {limits.noun} from {limits.span()}, found {text!r}")
    return found
