"""`anneal locutus`: Locutus' own command line, in front of the same code.

Without a configuration there are no surprises: one instance, whose state lies beside what it applies, namespace `default` for objects that
name none, every kind and every namespace, and nothing is ever deleted for not being declared any more.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import click

from handler import log
from handler.cli import flat, reports
from handler.cli.directory import Directory, Rereading
from handler.cli.goflags import GoCommand, go_duration
from handler.cli.options import PATH, command
from handler.cli.run import by_the_clock, once
from handler.cli.session import Session
from handler.config.forms import RANGES
from handler.config.git import Repository
from handler.config.load import API_VERSION, FILE_ONLY
from handler.config.settings import Prune, RendererSettings, Settings, Target

NAME = "locutus"
"""The target that there is without a configuration."""
NAMESPACE = "default"
_LATER = {"jsonnet": "--renderer", "resource": "--trigger"}
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warn": logging.WARNING, "error": logging.ERROR}


@dataclass(frozen=True, slots=True)
class _Files:
    """Where the file renderer reads."""

    directory: Path
    rollout: Path | None

    def read(self) -> Directory:
        return Directory(self.directory, self.rollout)


@command(GoCommand)
@click.option("--master", metavar="URL", default="", help="Address of the API server, before the kubeconfig's.")
@click.option("--log-level", type=click.Choice(list(_LEVELS)), default="info", show_default=True, help="What is logged.")
@click.option("--renderer", metavar="NAME", default="file", show_default=True, help="What makes the objects.")
@click.option(
    "--config-file",
    type=PATH,
    help="An anneal.yaml with one target: its guards instead of none, and its repository where no directory is named.",
)
@click.option("--renderer.file.dir", "directory", type=PATH, help="Directory of the manifests.")
@click.option("--renderer.file.rollout", "rollout", type=PATH, help="File of the Rollout.")
@click.option("--trigger", metavar="NAME", default="oneoff", show_default=True, help="oneoff | interval.")
@click.option("--trigger.interval.duration", "interval", metavar="DURATION", default="1m0s", show_default=True, help="From run to run.")
@click.option("--render-only", is_flag=True, help="Print the objects and the Rollout as JSON, and ask no cluster.")
def locutus(session: Session, *, directory: Path | None, rollout: Path | None, trigger: str, interval: str, **flags: object) -> int:
    """Roll files out as Locutus does: its flags, written as in Go.

    Without --config-file the target is called `locutus`, its state is kept in namespace `default`, and nothing is pruned.
    """
    known = session.added.renderers if session.added else FILE_ONLY
    renderer = _known("--renderer", str(flags["renderer"]), known)
    _known("--trigger", trigger, ("oneoff", "interval"))
    every = _seconds(interval)
    named = flags["config_file"] or session.named  # `--config` names the same
    config = Path(str(named)) if named else None
    if directory is None and (rollout or not config):
        raise click.UsageError("--renderer.file.dir is missing")
    session.master, session.log_level = str(flags["master"]), _LEVELS[str(flags["log_level"])]
    session.any_metrics = True  # who names a Prometheus in these files is who runs this
    target = _use(session, _Files(directory, rollout) if directory else None, config, renderer)
    if flags["render_only"]:
        return _print(session, target)
    log.configure(session.secrets.mask, level=session.log_level)
    return by_the_clock(session, (target,), every) if trigger == "interval" else once(session, (target,))


def _known(flag: str, name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    """Return a name that is one. Raises click.UsageError, which says what comes later."""
    if name in known:
        return name
    seen = "comes with a later version" if _LATER.get(name) == flag else "isn't known"
    raise click.UsageError(f"{flag}={name} {seen}; this one has {', '.join(known)}")


def _seconds(interval: str) -> float:
    found, limits = go_duration(interval), RANGES["duration"]
    if found is None or not limits.least <= found <= limits.most:
        raise click.UsageError(f"--trigger.interval.duration: expected {limits.noun} from {limits.span()}, found {interval!r}")
    return found


def _use(session: Session, files: _Files | None, config: Path | None, renderer: str) -> Target:
    """Make the files' target the session's; without files the configured one, from its repository. Raises ConfigInvalid, SourceRefused."""
    settings = _configured(session, config) if config else _unconfigured(renderer)
    if files is None:
        session.settings = settings
        return session.target(None)
    source = Rereading(files.read)
    (target,) = settings.targets
    name, now = target.name, source.now
    made = replace(target, repository=Repository(url=f"directory:{name}"), path=now.path, rollout=now.rollout)
    return session.use(replace(settings, targets=(made,)), source)


def _unconfigured(renderer: str) -> Settings:
    """Return the settings of nobody's configuration."""
    target = Target(
        name=NAME,
        repository=Repository(url=f"directory:{NAME}"),
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


def _print(session: Session, target: Target) -> int:
    """Print what would be rolled out."""
    session.sandbox.start()
    source = session.handler.source(target)
    rendered = session.handler.render(target, source.fetch(source.head(target.revision).commit, target.path))
    session.output.text(flat.line(flat.flat(rendered)) + "\n")
    return reports.DONE_CODE
