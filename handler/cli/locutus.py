"""`anneal locutus`: Locutus' own command lines, of both its generations, in front of the same code.

    --trigger=oneoff | interval          2018 to 2021: the trigger is named
    --one-off   --trigger.interval.duration=1m     since 2023: a trigger is there once it is configured, and --one-off overrides it
    --trigger.resource.config=FILE                 objects of a kind, in both

As upstream, no command line runs without a trigger; what upstream has for databases is refused by name. Without a configuration there is
one instance, whose state lies beside what it applies, namespace `default` for objects that name none, every kind and every namespace;
nothing is deleted for not being declared any more. A resource trigger has an instance for each object.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from handler.app import log
from handler.app.run_events import SETTLE
from handler.cli import reports
from handler.cli.engine import clock_engine, objects_engine
from handler.cli.go_flags import go_duration
from handler.cli.local_source import CheckoutParts, Directory, Rereading
from handler.cli.locutus_flags import DIRECTORY, ENTRYPOINT, NAME, NAMESPACE, ROLLOUT
from handler.cli.locutus_jsonnet import JsonnetFlags
from handler.cli.render import flat, one_line
from handler.cli.run import by_objects, by_the_clock, once
from handler.cli.run_job import stoppable
from handler.cli.session import Session
from handler.config.decode import BAD, Decoder
from handler.config.git_settings import Repository, directory_url
from handler.config.load import API_VERSION
from handler.config.renderer_settings import JSONNET, RendererSettings
from handler.config.settings import Settings, Target
from handler.config.trigger_settings import ResourceTrigger, TriggerSettings
from handler.config.value_formats import RANGES
from handler.config.yaml_nodes import ConfigMistakes, compose
from handler.feedback.exposition import Exposition
from handler.model.errors import AnnealError
from handler.worker.supervisor import listen

MINUTE = 60.0
_TRIGGERS = ("oneoff", "interval", "resource")
_NO_TRIGGER = (
    "no trigger is named: --one-off (or --trigger=oneoff) rolls out once, --trigger.interval.duration=1m again and again,"
    " --trigger.resource.config=FILE for each object of a kind"
)


def locutus(session: Session, *, trigger: str | None, one_off: bool, interval: str | None, listen: str, **rest: object) -> int:
    """Roll files out as Locutus does: its flags, written as in Go."""
    known("--renderer", str(rest["renderer"]), tuple(session.added.renderers) if session.added else ("file", JSONNET))
    if idle := [f"--{name}" for name in ("qps", "burst") if rest.pop(name) is not None]:
        session.output.note(f"without effect: {', '.join(idle)}; the API server's own priority and fairness limits what is asked of it")
    objects = _objects(trigger, rest.pop("objects_file"), one_off=one_off)
    every = None if objects else _every(trigger, interval, one_off=one_off, render_only=bool(rest["render_only"]))
    if listen and ":" not in listen:
        raise click.UsageError(f"--web.listen: expected host:port or :port, found {listen!r}")
    session.master = str(rest.pop("master"))
    named = rest.pop("config_file") or session.named  # `--config` names the same
    config = Path(str(named)) if named else None
    program = _program(rest)
    flags = {**rest, "config": config, "every": every, "listen": listen, "program": program, "objects": objects}
    return roll_out(session, Flags(**flags))  # type: ignore[arg-type]  # click has checked them


def _program(rest: dict[str, object]) -> JsonnetFlags | None:
    """Take the flags of jsonnet; None: another renderer is named. Raises click.UsageError for flags that don't go together."""
    given = {"entrypoint": rest.pop("entrypoint"), "ext-str": rest.pop("strings"), "jpaths": rest.pop("searched")}
    if rest["renderer"] != JSONNET:
        if wrong := [name for name, value in given.items() if value]:
            raise click.UsageError(f"--renderer.jsonnet.{wrong[0]} goes with --renderer=jsonnet")
        return None
    if rest["directory"] or rest["rollout"]:
        name = "dir" if rest["directory"] else "rollout"
        raise click.UsageError(f"--renderer.file.{name} goes with --renderer=file; a program makes its own Rollout")
    entrypoint = given["entrypoint"] or Path(ENTRYPOINT)
    assert isinstance(entrypoint, Path)  # noqa: S101 - click has made it
    return JsonnetFlags(entrypoint, given["ext-str"], given["jpaths"])  # type: ignore[arg-type]  # the same


def _objects(trigger: str | None, file: object, *, one_off: bool) -> Path | None:
    """Return the file of the resource trigger; None: the flags name none, or another one overrides it."""
    if one_off or trigger in ("oneoff", "interval"):
        return None
    if trigger == "resource" and file is None:
        raise click.UsageError("--trigger=resource needs --trigger.resource.config=FILE, which names the kinds")
    return Path(str(file)) if file else None


def _every(trigger: str | None, interval: str | None, *, one_off: bool, render_only: bool) -> float | None:
    if trigger is not None:
        known("--trigger", trigger, _TRIGGERS)
    if one_off and trigger == "interval":
        raise click.UsageError("--one-off and --trigger=interval contradict each other; leave one of them out")
    found = go_duration(interval) if interval is not None else MINUTE if trigger == "interval" else 0.0
    if found != 0.0 or trigger == "interval":
        _check(interval, found)
    if one_off or trigger == "oneoff":
        return None
    if not found and not render_only:
        raise click.UsageError(_NO_TRIGGER)
    return found or None


def _check(interval: str | None, found: float | None) -> None:
    limits = RANGES["duration"]
    if found is None or not limits.least <= found <= limits.most:
        raise click.UsageError(f"--trigger.interval.duration: expected {limits.noun} from {limits.span()}, found {interval!r}")


def known(flag: str, name: str, names: tuple[str, ...]) -> None:
    """Raise click.UsageError for a name that isn't known."""
    if name not in names:
        raise click.UsageError(f"{flag}={name} isn't known; this one has {', '.join(names)}")


# --- what the flags ask for
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
    """What a command line asks for. `every`: seconds from run to run, None: once; `listen`: where metrics are served, empty: nowhere.

    `program`: what `--renderer=jsonnet` evaluates; `objects`: the file of a resource trigger.
    """

    directory: Path | None
    rollout: Path | None
    config: Path | None
    renderer: str
    every: float | None
    log_level: str
    render_only: bool
    listen: str
    program: JsonnetFlags | None = None
    objects: Path | None = None
    write_status: bool = True


def roll_out(session: Session, flags: Flags) -> int:
    """Do what the flags ask for; return the exit status. Raises click.UsageError, AnnealError."""
    session.log_level = _LEVELS[flags.log_level]
    if flags.program and flags.config and not _is_ours(flags.config):
        flags = replace(flags, config=None, program=replace(flags.program, config=flags.config))
    session.any_metrics = True  # the user of this command names the Prometheus in its files
    target = _use(session, _files(session, flags), flags)
    if flags.render_only:
        return _print(session, target, flags.every)
    log.configure(level=session.log_level)
    _ = session.secrets  # what is missing is found now, not in the worker
    if flags.every is None and flags.objects is None:
        with _counted(session, flags.listen):
            return once(session, (target,))
    if flags.listen:
        session.settings = replace(session.settings, metrics=replace(session.settings.metrics, bind=flags.listen))
    listening = _WEB if flags.listen else "metrics.bind"
    if flags.every is None:
        return by_objects(session, (target,), objects_engine(session, "locutus"), listening)
    return by_the_clock(session, (target,), flags.every, clock_engine(session, "locutus"), listening)


def _files(session: Session, flags: Flags) -> Callable[[], Directory | CheckoutParts] | None:
    """Return what reads the files, at upstream's defaults; None: a configuration's repository has them. Raises click.UsageError."""
    if flags.program:
        if not flags.program.entrypoint.is_file():
            raise click.UsageError(f"--renderer.jsonnet.entrypoint: expected a file, found none at {flags.program.entrypoint}")
        return partial(flags.program.read, session.sandbox)
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
    return partial(Directory, directory, rollout)


def _use(session: Session, files: Callable[[], Directory | CheckoutParts] | None, flags: Flags) -> Target:
    """Make the files' target the session's; without files the configured one, from its repository. Raises ConfigInvalid, SourceRefused."""
    settings = _configured(session, flags.config) if flags.config else _unconfigured(flags.renderer)
    if flags.objects:
        trigger = read_trigger(flags.objects, write_status=flags.write_status)
        settings = replace(settings, targets=tuple(replace(each, trigger=trigger) for each in settings.targets))
    if files is None:
        session.settings = settings
        return session.target(None)
    source = Rereading(files)
    (target,) = settings.targets
    name, now = target.name, source.now
    rollout = now.rollout if isinstance(now, Directory) else ""
    made = replace(target, repository=Repository(url=directory_url(name)), path=now.path, rollout=rollout)
    made = replace(made, renderer=flags.program.options()) if flags.program else made
    return session.use(replace(settings, targets=(made,)), source)


def _unconfigured(renderer: str) -> Settings:
    target = Target(
        name=NAME,
        repository=Repository(url=directory_url(NAME)),
        namespaces=("*",),
        namespace=NAMESPACE,
        cluster_scoped=("*",),
        renderer=RendererSettings(renderer),
        compat="locutus",
    )
    return Settings((target,), state_namespace=NAMESPACE)


def _configured(session: Session, config: Path) -> Settings:
    """Return a configuration's settings. Raises click.UsageError for one of a renderer, ConfigInvalid for mistakes in one of Anneal."""
    if not _is_ours(config):
        raise click.UsageError(f"--config-file {config}: is no configuration of Anneal, and the file renderer takes none of its own")
    settings = session.read(config)
    if len(settings.targets) != 1:
        raise click.UsageError(f"--config-file {config}: expected one target, found {len(settings.targets)}")
    return settings


def _is_ours(config: Path) -> bool:
    try:
        return API_VERSION in config.read_text(errors="replace")
    except OSError as error:
        raise click.UsageError(f"--config-file {config}: {error.strerror}") from None


def _print(session: Session, target: Target, every: float | None) -> int:
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
    handler = session.handler
    for each in handler.instances.look(target).values() if target.is_template else (target,):
        source = handler.source(each)
        rendered = handler.render(each, source.fetch(source.head(each.revision).commit, each.path))
        session.output.text(one_line(flat(rendered)) + "\n")


@contextlib.contextmanager
def _counted(session: Session, bind: str) -> Iterator[None]:
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


_FLAG = "--trigger.resource.config"


def read_trigger(file: Path, *, write_status: bool) -> TriggerSettings:
    """Return the trigger that a file describes, read as it is in anneal.yaml: `mainResource: grafana`, `resources: [{name: grafana, …}]`.

    Raises click.UsageError: there is no such file; ConfigInvalid with every mistake in it.
    """
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{_FLAG} {file}: {getattr(error, 'strerror', None) or 'is no text'}") from None
    mistakes = ConfigMistakes(str(file))
    found = Decoder(mistakes, {}).mapping(compose(text, str(file)), ResourceTrigger, "")
    mistakes.settle()
    assert found is not BAD  # noqa: S101 - else there was a mistake
    return TriggerSettings(replace(found, write_status=write_status, across_namespaces=True, adopt_unowned=True))
