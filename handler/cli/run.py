"""`anneal run`: brings targets to what git declares without any webhook, once, or again and again.

Law: no second way to run anything. `oneoff` is `anneal apply` for several targets; every other trigger is the worker process without a
web process, so runs of one target never overlap, and no failure ends it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from graphlib import TopologicalSorter

import click

from handler.app import log
from handler.app.run_guard import announced, guarded
from handler.cli import reports
from handler.cli.engine import clock_engine, objects_engine, watch_engine
from handler.cli.run_job import printing, retry, stoppable
from handler.cli.session import Session, local_user
from handler.config.settings import Settings, Target
from handler.config.value_formats import RANGES, seconds
from handler.model.errors import ConfigInvalid
from handler.model.event import Job
from handler.model.result import Result
from handler.model.run_trigger import CAUSES, AskingWatch, OwnTrigger
from handler.queues.bulkheads import Bulkheads
from handler.worker.supervisor import run_alone
from handler.worker.trigger_thread import NamedTrigger
from handler.worker.worker import Engine

_WORST = (reports.FAILED, reports.HELD, reports.BUSY)  # exit codes, the worst first
_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")  # a word of the record


def run(session: Session, *, targets: Sequence[str], trigger: str, interval: str) -> int:
    """Bring TARGETS, or all that are configured, to what git declares, without a push."""
    every, chosen = duration(interval, "--interval"), session.these_or_all(targets)
    if not chosen:
        raise click.UsageError("no target is configured")
    match session.run_triggers[trigger].watch:
        case OwnTrigger.ONCE:
            return once(session, chosen)
        case OwnTrigger.CLOCK:
            return by_the_clock(session, chosen, every)
        case OwnTrigger.OBJECTS:
            return by_objects(session, chosen if targets else [each for each in chosen if each.is_template])
        case watch:
            return by_watch(session, chosen, named(trigger, watch))


def once(session: Session, chosen: Sequence[Target], *, prune: bool = True) -> int:
    """Run each target once, after those that it depends on, the rest beside each other; print each end as it comes.

    Returns the worst exit code.
    """
    handler, user = session.handler, local_user()
    session.sandbox.start()
    with stoppable(session.output.note) as stop, printing(session), ThreadPoolExecutor(Bulkheads(session.settings).threads) as pool:
        whole = announced(guarded(handler.run), session.events.announce)

        def start(target: Target) -> Future[Result]:
            return pool.submit(whole, Job(target.name, "oneoff", force=True, prune=prune, actor=user), stop)

        codes = {reports.result(session.output, ended, retry=retry(session)) for ended in in_order(chosen, start)}
    return next((code for code in _WORST if code in codes), reports.DONE_CODE)


def by_the_clock(
    session: Session, chosen: Sequence[Target], every: float, engine: Engine | None = None, listening: str = "metrics.bind"
) -> int:
    """Run these targets at once and then at their interval, until SIGTERM or SIGINT; return the exit status.

    `engine`: what the worker is made of, if not a `clock_engine`; `listening`: the flag or setting that says where metrics are asked for.
    """
    settings = replace(session.settings, targets=tuple(chosen), interval=every, drift_interval=RANGES["duration"].most)
    return _staying(session, settings, lambda: engine or clock_engine(session), listening)


def by_watch(session: Session, chosen: Sequence[Target], trigger: NamedTrigger) -> int:
    """Run these targets as a trigger of the program's own asks for it, and by the clock of a server, until SIGTERM or SIGINT.

    Returns the exit status.
    """
    return _staying(session, replace(session.settings, targets=tuple(chosen)), lambda: watch_engine(session, trigger))


def named(name: str, watch: AskingWatch) -> NamedTrigger:
    """Return a trigger by its name. Raises ConfigInvalid: no record could say that it asked for a run."""
    if name in CAUSES or not _NAME.fullmatch(name):
        seen = "is what runs of another cause are called" if name in CAUSES else "can't be what its runs are called"
        raise ConfigInvalid.of(f"trigger {name!r}", seen, fix="name its row by small letters, digits and hyphens, e.g. spool")
    return NamedTrigger(name, watch)


def by_objects(session: Session, chosen: Sequence[Target], engine: Engine | None = None, listening: str = "metrics.bind") -> int:
    """Run the instances of these templates as their objects change, until SIGTERM or SIGINT; return the exit status.

    `engine`, `listening`: as of `by_the_clock`. Raises click.UsageError: one of them has no resource trigger, or none has.
    """
    plain = [each.name for each in chosen if not each.is_template]
    if plain or not chosen:
        which = f"target {plain[0]} has" if plain else "the targets have"
        raise click.UsageError(f"--trigger=resource: {which} no trigger of that kind; it is written under trigger: {{resource: ...}}")
    settings = replace(session.settings, targets=tuple(chosen))
    return _staying(session, settings, lambda: engine or objects_engine(session), listening)


def _staying(session: Session, settings: Settings, engine: Callable[[], Engine], listening: str = "metrics.bind") -> int:
    log.configure(level=session.log_level)
    _ = session.secrets  # what is missing is found now, not in the worker
    return run_alone(settings, engine, listening)


def duration(text: str, flag: str) -> float:
    """Return the seconds of a duration such as `30s` or `1h30m`. Raises click.UsageError."""
    found, limits = seconds(text), RANGES["duration"]
    if found is None or not limits.least <= found <= limits.most:
        raise click.UsageError(f"{flag}: expected {limits.noun} from {limits.span()}, found {text!r}")
    return found


def in_order(targets: Sequence[Target], start: Callable[[Target], Future[Result]]) -> Iterator[Result]:
    """Start each target's run once those of the targets that it depends on have ended, however they did; yield ends as they come.

    A dependency that isn't among `targets` isn't run; whether it is ready its dependant's run finds out, as it does of all.
    """
    known = {target.name: target for target in targets}
    order = TopologicalSorter({target.name: [each for each in target.depends_on if each in known] for target in targets})
    order.prepare()
    running: dict[Future[Result], str] = {}
    while order.is_active():
        running |= {start(known[name]): name for name in order.get_ready()}
        done, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            order.done(running.pop(future))
            yield future.result()
