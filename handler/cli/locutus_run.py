"""What `anneal locutus` does once its flags are read: one target of files, or of a configuration, once or at an interval.

Without a configuration there are no surprises: one instance, whose state lies beside what it applies, namespace `default` for objects that
name none, every kind and every namespace, and nothing is ever deleted for not being declared any more.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click

from handler.app import log
from handler.app.run_events import SETTLE
from handler.cli import locutus_output, reports
from handler.cli.engine import clock_engine
from handler.cli.local_source import Directory, Rereading
from handler.cli.locutus_flags import DIRECTORY, NAME, NAMESPACE, ROLLOUT
from handler.cli.run import by_the_clock, once
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.config.git_settings import Repository, directory_url
from handler.config.load import API_VERSION
from handler.config.settings import Prune, RendererSettings, Settings, Target
from handler.feedback.exposition import Exposition
from handler.model.errors import AnnealError
from handler.worker.supervisor import listen

_WEB = "--web.listen"
_LEVELS = {
    "all": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "none": logging.CRITICAL + 1,
}


@dataclass(frozen=True, slots=True)
class Flags:
    """What a command line asks for. `every`: seconds from run to run, None: once; `listen`: where metrics are served, empty: nowhere."""

    directory: Path | None
    rollout: Path | None
    config: Path | None
    renderer: str
    every: float | None
    log_level: str
    render_only: bool
    listen: str


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the file renderer reads."""

    directory: Path
    rollout: Path | None

    def read(self) -> Directory:
        return Directory(self.directory, self.rollout)


def roll_out(session: Session, flags: Flags) -> int:
    """Do what the flags ask for; return the exit status. Raises click.UsageError, AnnealError."""
    session.log_level = _LEVELS[flags.log_level]
    session.any_metrics = True  # who names a Prometheus in these files is who runs this
    target = _use(session, _files(session, flags), flags)
    if flags.render_only:
        return _print(session, target, flags.every)
    log.configure(session.secrets.mask, level=session.log_level)
    if flags.every is None:
        with _counted(session, flags.listen):
            return once(session, (target,))
    if flags.listen:
        session.settings = replace(session.settings, metrics=replace(session.settings.metrics, bind=flags.listen))
    engine = clock_engine(session, "locutus")
    return by_the_clock(session, (target,), flags.every, engine, _WEB if flags.listen else "metrics.bind")


def _files(session: Session, flags: Flags) -> _Files | None:
    """Return where the files are, by upstream's defaults; None: a configuration's repository has them. Raises click.UsageError."""
    if flags.config and not (flags.directory or flags.rollout):
        return None
    directory = flags.directory or Path(DIRECTORY)
    if not directory.is_dir():
        default = "" if flags.directory else ", the default; write --renderer.file.dir=DIR"
        raise click.UsageError(f"--renderer.file.dir: expected a directory, found none at {directory}{default}")
    if flags.rollout and not flags.rollout.is_file():
        raise click.UsageError(f"--renderer.file.rollout: expected a file, found none at {flags.rollout}")
    beside = Path(ROLLOUT)
    rollout = flags.rollout or (beside if beside.is_file() else None)
    if rollout is None and not flags.render_only:
        session.output.note(f"no Rollout: --renderer.file.rollout names none, and there is no {ROLLOUT} here; Anneal's own order counts")
    return _Files(directory, rollout)


def _use(session: Session, files: _Files | None, flags: Flags) -> Target:
    """Make the files' target the session's; without files the configured one, from its repository. Raises ConfigInvalid, SourceRefused."""
    settings = _configured(session, flags.config) if flags.config else _unconfigured(flags.renderer)
    if files is None:
        session.settings = settings
        return session.target(None)
    source = Rereading(files.read)
    (target,) = settings.targets
    name, now = target.name, source.now
    made = replace(target, repository=Repository(url=directory_url(name)), path=now.path, rollout=now.rollout)
    return session.use(replace(settings, targets=(made,)), source)


def _unconfigured(renderer: str) -> Settings:
    """Return the settings that hold without a configuration."""
    target = Target(
        name=NAME,
        repository=Repository(url=directory_url(NAME)),
        namespaces=("*",),
        namespace=NAMESPACE,
        cluster_scoped=("*",),
        renderer=RendererSettings(renderer),
        prune=Prune(enabled=False),
    )
    return Settings((target,), state_namespace=NAMESPACE)


def _configured(session: Session, config: Path) -> Settings:
    """Return a configuration's settings. Raises click.UsageError for one of a renderer, ConfigInvalid for mistakes in one of Anneal."""
    try:
        ours = API_VERSION in config.read_text(errors="replace")
    except OSError as error:
        raise click.UsageError(f"--config-file {config}: {error.strerror}") from None
    if not ours:
        raise click.UsageError(f"--config-file {config}: is no configuration of Anneal, and the file renderer takes none of its own")
    settings = session.read(config)
    if len(settings.targets) != 1:
        raise click.UsageError(f"--config-file {config}: expected one target, found {len(settings.targets)}")
    return settings


def _print(session: Session, target: Target, every: float | None) -> int:
    """Print what would be rolled out, once or at an interval; there an error is told, and ends nothing."""
    session.sandbox.start()
    with stoppable(session.output.note) as stop:
        while True:
            try:
                _print_once(session, target)
            except AnnealError as error:
                if every is None:
                    raise
                reports.error(session.output, error)
            if every is None or stop.wait(every):
                return reports.DONE_CODE


def _print_once(session: Session, target: Target) -> None:
    source = session.handler.source(target)
    rendered = session.handler.render(target, source.fetch(source.head(target.revision).commit, target.path))
    session.output.text(locutus_output.line(locutus_output.flat(rendered)) + "\n")


@contextlib.contextmanager
def _counted(session: Session, bind: str) -> Iterator[None]:
    """Count what one run does, and serve the counts while it lasts, if an address is given."""
    if not bind:
        yield
        return
    events = session.events
    metrics = events.add("locutus", lambda: 0.0, lambda: 1.0, session.handler.requests, settle=lambda: events.drained(SETTLE, "locutus"))
    served = Exposition(listen(bind, _WEB), metrics.text)
    served.start()
    try:
        yield
    finally:
        served.stop()
