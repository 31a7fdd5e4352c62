"""What one command works with: settings, secrets and the handler, each made when it is first asked for.

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

from handler.cli.printing import Output
from handler.config.load import find, load
from handler.config.secrets import RUNS, Secrets, resolve_all
from handler.config.settings import Settings, Target
from handler.stores import fetcher

if TYPE_CHECKING:
    from handler.build import Handler, Options
    from handler.render import Sandbox
    from handler.run.preparing import Source
    from handler.state.record import State
    from handler.tables import Tables
    from handler.triggers import Trigger


def nobody(_state: State) -> None:
    """Take no note of what a run records."""


class Session:
    """One command's composition. `named`: the --config flag; `added`: the tables of a program of its own; `seen`: see `Options`.

    As a context it ends what it started.
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
        self.log_level = logging.INFO
        self.sources: dict[str, Source] = {}
        self.named = config
        self.added = added
        self.seen: Callable[[State], None] = nobody
        self._chosen: tuple[Target, ...] = ()
        self._sandbox: Sandbox | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """End the render child's server."""
        if self._sandbox:
            self._sandbox.close()

    @cached_property
    def path(self) -> Path:
        """Where the configuration is. Raises ConfigInvalid."""
        return find(self.named, self.environ, Path.cwd())

    @cached_property
    def settings(self) -> Settings:
        """The configuration. Raises ConfigInvalid with every mistake."""
        return self.read(self.path)

    def read(self, path: Path) -> Settings:
        """Read a configuration that may name what this program's tables have. Raises ConfigInvalid with every mistake."""
        return self.added.read(path) if self.added else load(path)

    @property
    def triggers(self) -> Mapping[str, Trigger]:
        """Whose deliveries are understood."""
        from handler.triggers import TRIGGERS  # noqa: PLC0415 - few commands ask for them

        return self.added.triggers if self.added else TRIGGERS

    def use(self, settings: Settings, source: Source) -> Target:
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
        """Return the target that a command is for; the only one when it names none.

        Raises click.UsageError when there is no such target, or several and none is named.
        """
        names = [target.name for target in self.settings.targets]
        if name is None and len(names) == 1:
            name = names[0]
        found = self.settings.target(name) if name else None
        if found is None:
            raise click.UsageError(_which(name, names))
        self._chosen = (found,)
        return found

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
        """The chosen targets' credentials; from now on nothing that is printed shows them. Raises SecretUnavailable."""
        chosen = replace(self.settings, targets=self._chosen)
        secrets = resolve_all(chosen, self.environ, needs=RUNS, fetch=fetcher(self.environ))
        self.output.mask = secrets.mask
        return secrets

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where renders run; `start` it before other work, so that it is ready when the render comes."""
        from handler.render import Sandbox  # noqa: PLC0415 - not every command renders

        self._sandbox = Sandbox()
        return self._sandbox

    @cached_property
    def handler(self) -> Handler:
        """What runs jobs."""
        from handler.build import Handler  # noqa: PLC0415 - the cluster's client takes half a second to load

        return Handler(self.settings, self.secrets, self.sandbox, self.environ, self.options, tables=self.added)

    @property
    def options(self) -> Options:
        """What the command line says of clusters and of where commits come from."""
        from handler.build import Options  # noqa: PLC0415 - the same

        return Options(
            self.kubeconfig,
            self.context,
            self.master,
            self.sources,
            any_metrics=self.any_metrics,
            terminal=sys.stderr.isatty(),
            seen=self._saw,
        )

    def _saw(self, state: State) -> None:
        """Hand a record on to whoever listens now; the options were made before."""
        self.seen(state)


def _which(name: str | None, names: list[str]) -> str:
    """Say which targets there are, and the nearest one."""
    known = ", ".join(sorted(names)) or "none"
    if name is None:
        return f"which target? configured are: {known}"
    near = difflib.get_close_matches(name, names, n=1)
    return f"no target {name!r}; " + (f"did you mean {near[0]}?" if near else f"configured are: {known}")


def local_user() -> str:
    """Return who runs this command, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a uid without a name, as in many containers
        return f"uid {os.getuid()}"
