"""What one command works with: settings, secrets and the handler, each made, and loaded, when it is first asked for.

Only the credentials of the targets that the command names are resolved: another target's missing token is not its problem.
"""

from __future__ import annotations

import difflib
import getpass
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from handler.cli.output import Output

if TYPE_CHECKING:
    from handler.app.build import Handler
    from handler.app.connections import Connections, Options, RecordPlace
    from handler.app.run_events import RunEvents
    from handler.app.tables import Tables
    from handler.cli.follow_up_commands import GivenFlags
    from handler.config.load import ReadInclude
    from handler.config.secrets import Secrets
    from handler.config.settings import Settings, Target
    from handler.engine.planner.desired import CommitSource
    from handler.model.plan import Change, Plan
    from handler.model.run_trigger import RunTrigger
    from handler.render import Sandbox
    from handler.triggers import Webhook


class Session:
    """One command's composition. As a context it ends what it started.

    `named`: the --config flag; `added`: the tables of a program of its own; `from_files`: `-f` names what is declared; `again`: what goes
    on with a run of this command; empty: `anneal apply`, and a server; `wrote`: prints what a run has written; `agrees`: see
    `handler.engine.run.dependencies.Dependencies`, set before the handler is made; `places`, `placeholders`: see `Options`; `reads`: the
    command works on records alone, so without a configuration those of the cluster are its targets; `naming`: returns this command with
    its configuration named.
    """

    def __init__(
        self,
        output: Output,
        environ: Mapping[str, str],
        config: str | None = None,
        kubeconfig: str = "",
        context: str = "",
        added: Tables | None = None,
    ) -> None:
        self.output = output
        self.environ = environ
        self.kubeconfig = kubeconfig
        self.context = context
        self.master = ""
        self.any_metrics = False
        self.placeholders = False
        self.log_level = logging.INFO
        self.sources: dict[str, CommitSource] = {}
        self.from_files = False
        self.again = ""
        self.named = config
        self.added = added
        self.reads = False
        self.naming: Callable[[str], str] = lambda file: f"-c {file}"
        self.places: dict[str, RecordPlace] = {}
        self.wrote: Callable[[Sequence[Change]], None] = lambda _: None
        self.agrees: Callable[[Plan], bool] | None = None
        self._chosen: tuple[Target, ...] = ()
        self.beside: tuple[Target, ...] = ()
        output.complete = self._complete
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the render child's server, and say which walls programs lacked."""
        if self._sandbox:
            self._sandbox.close()
            if self._sandbox.lacks:
                lacks = " and ".join(self._sandbox.lacks)
                self.output.note(f"programs that render ran without walls {lacks}: this system has none; `anneal serve` refuses that")

    @cached_property
    def path(self) -> Path:
        """Where the configuration is. Raises ConfigInvalid. One of the working directory is replaced here where it doesn't count."""
        from handler.config.load import find

        return find(self.named, self.environ, Path.cwd())

    @property
    def is_beside(self) -> bool:
        """Whether the configuration was found in the working directory, and this command names none."""
        return not (self.named or self.environ.get("ANNEAL_CONFIG")) and self.path == Path.cwd() / "anneal.yaml"

    @cached_property
    def settings(self) -> Settings:
        """The configuration, or what stands for it where there is none. Raises ConfigInvalid with every mistake; as `trust.counted`."""
        from handler.config.load import ConfigNotFound

        try:
            if self.is_beside:
                from handler.cli import trust

                self.path, found = trust.counted(self.path, self.read, self.environ, self.output, self.naming)
                return found
            return self.read(self.path)
        except ConfigNotFound as missing:
            if not self.reads:
                raise
            from handler.cli import recorded_instances

            found, self.places = recorded_instances.settings(self.environ, self.options, missing)
            return found

    @property
    def configured(self) -> tuple[Target, ...]:
        """The targets; none where there is no configuration. Raises ConfigInvalid with every mistake."""
        from handler.config.load import ConfigNotFound

        try:
            return self.settings.targets
        except ConfigNotFound:
            return ()

    @cached_property
    def operators_targets(self) -> tuple[Target, ...]:
        """Those of a configuration that was named, or is the machine's: what lies in the working directory isn't looked at."""
        from handler.config.load import ConfigNotFound, find

        try:
            return self.read(find(self.named, self.environ, Path.cwd(), beside=False)).targets
        except ConfigNotFound:
            return ()

    def read(self, path: Path, read_include: ReadInclude | None = None) -> Settings:
        """Read a configuration that may name what this program's tables have. Raises ConfigInvalid with every mistake."""
        from handler.config.load import load

        return self.added.read(path, read_include) if self.added else load(path, read_include)

    @property
    def webhooks(self) -> Mapping[str, Webhook]:
        """Whose deliveries are understood."""
        from handler.triggers import WEBHOOKS

        return self.added.webhooks if self.added else WEBHOOKS

    @property
    def run_triggers(self) -> Mapping[str, RunTrigger]:
        """What asks for runs by itself."""
        from handler.model.run_trigger import RUN_TRIGGERS, run_triggers

        return run_triggers(self.added.triggers) if self.added else RUN_TRIGGERS

    def use(self, settings: Settings, source: CommitSource) -> Target:
        """Work with these settings of one target, whatever a configuration file says, and with commits that come from `source`."""
        self.settings = settings
        (target,) = settings.targets
        self.sources[target.name] = source
        return self.target(target.name)

    @property
    def several(self) -> bool:
        """Whether more than one target is configured."""
        return len(self.settings.targets) > 1

    def target(self, name: str | None) -> Target:
        """Return the named target, or the only one. Raises click.UsageError: there is no such target, or several and none is named."""
        names = [target.name for target in self.settings.targets]
        if name is None and len(names) == 1:
            name = names[0]
        found = (self.settings.target(name) or self._instance(name)) if name else None
        if found is None:
            raise click.UsageError(_which(name, names, "recorded" if self.places else "configured"))
        self._chosen = (found,)
        return found

    def _instance(self, name: str) -> Target | None:
        """Return an instance by its object, else by its record; None: no template has such ones. Raises NoInstance: it has neither."""
        template = self.settings.target(name.partition(".")[0]) if "." in name else None  # `model.instance`, which few commands load
        if template is None or not template.is_template:
            return None
        from handler.app.instances.registry import Instances
        from handler.model.errors import NoInstance

        self._chosen = (template,)  # whose credentials it needs
        instances = Instances.of(self.ways(git=False))
        try:
            return instances.find(name)
        except NoInstance:
            if found := instances.recorded(name):
                return found
            raise

    def all_or(self, name: str | None) -> tuple[Target, ...]:
        """Return the named target, or all of them."""
        self._chosen = (self.target(name),) if name else self.settings.targets
        return self._chosen

    def these_or_all(self, names: Sequence[str]) -> tuple[Target, ...]:
        """Return the named targets, each once, or all of them; a command works with no other."""
        chosen = tuple(self.target(name) for name in dict.fromkeys(names)) or self.settings.targets
        self._chosen = chosen
        return chosen

    @cached_property
    def secrets(self) -> Secrets:
        """The chosen targets' credentials. Raises SecretUnavailable.

        Of those that they depend on, and of others that a command looks at (`beside`), what there is: what lacks them can't be seen.
        """
        from handler.app.external_services import fetcher
        from handler.config.secrets import RUNS, resolve_all, resolve_known

        chosen, fetch = replace(self.settings, targets=self._chosen), fetcher(self.environ)
        needs = RUNS - {"decryption"} if self.placeholders else RUNS
        secrets = resolve_all(chosen, self.environ, needs=needs, fetch=fetch)
        if beside := (*self.settings.awaited(self._chosen), *self.beside):
            secrets, _ = resolve_known(replace(chosen, targets=(*self._chosen, *beside)), self.environ, needs=needs, fetch=fetch)
        return secrets

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where renders run; `start` it before other work, so that it is ready when the render comes."""
        from handler.render import Sandbox

        self._sandbox = Sandbox()
        return self._sandbox

    @cached_property
    def handler(self) -> Handler:
        """What runs jobs."""
        from handler.app.build import Handler

        return Handler(self.settings, self.secrets, self.sandbox, self.environ, self.options, tables=self.added)

    def ways(self, *, git: bool, patience: float = 0.0) -> Connections:
        """Return the ways to clusters, for read-only commands; what runs jobs isn't loaded. Raises SecretUnavailable.

        `git`: to git hosts, too. `patience`: seconds that a cluster has for an answer, if that is more than all readers give it.
        """
        from handler.app.connections import Connections
        from handler.app.record_summaries import PATIENCE
        from handler.config.secrets import Secrets

        secrets = self.secrets if git else Secrets()
        return Connections(self.settings, secrets, self.environ, replace(self.options, brief=max(patience, PATIENCE)))

    @property
    def given(self) -> GivenFlags:
        """The flags by which another command reaches the same configuration and clusters."""
        from handler.cli.follow_up_commands import GivenFlags

        flags = {"--kubeconfig": self.kubeconfig, "--context": self.context}
        clusters = tuple(part for flag, value in flags.items() if value for part in (flag, value))
        return GivenFlags((*(("-c", self.named) if self.named else ()), *clusters), clusters)

    def _complete(self, text: str) -> str:
        from handler.config.settings import Cluster

        given = self.given
        alone = self._chosen[0].cluster if len(self._chosen) == 1 else Cluster()
        return replace(given, anneal=() if self.from_files else given.anneal).complete(text, alone)

    @property
    def options(self) -> Options:
        """What the command line says of clusters and of where commits come from."""
        from handler.app.connections import Options

        return Options(
            self.kubeconfig,
            self.context,
            self.master,
            self.sources,
            any_metrics=self.any_metrics,
            placeholders=self.placeholders,
            terminal=sys.stderr.isatty(),
            announce=self.events.announce,
            places=self.places,
            agrees=self.agrees,
        )

    @cached_property
    def events(self) -> RunEvents:
        """The feedback of this command."""
        from handler.app.run_events import RunEvents

        return RunEvents()


def _which(name: str | None, names: list[str], are: str) -> str:
    known = ", ".join(sorted(names)) or "none"
    if name is None:
        return f"which target? {are} are: {known}"
    near = difflib.get_close_matches(name, names, n=1)
    return f"no target {name!r}; " + (f"did you mean {near[0]}?" if near else f"{are} are: {known}")


def local_user() -> str:
    """Return this command's user, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in many containers
        return f"uid {os.getuid()}"
