"""What every command takes, and how its errors end: each command is a function of a Session that returns the exit code.

The common options may stand before or after the command's name; what stands after it wins.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from handler.cli.printing import Output
from handler.model.errors import AnnealError, ConfigInvalid

TABLES = "tables"
"""Where the group keeps the tables of a program of its own for its command."""
_COMMON: tuple[Callable[[Any], Any], ...] = (
    click.option("-c", "--config", metavar="FILE", help="Configuration [ANNEAL_CONFIG, ./anneal.yaml, /etc/anneal/anneal.yaml]."),
    click.option("--kubeconfig", metavar="FILE", help="Kubeconfig, before the target's own and KUBECONFIG."),
    click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
    click.option("-o", "--output", type=click.Choice(["text", "json"]), help="Form of what is printed."),
    click.option("-v", "--verbose", count=True, help="Say more: what is unchanged or kept, and why."),
)


class _Named(click.Path):
    """A path that is named: a shell's variable that isn't set would else be the directory that the command is run in."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse an empty one."""
        if value == "":
            self.fail("is empty; the present directory is written as a dot", param, ctx)
        return super().convert(value, param, ctx)


PATH = _Named(path_type=Path)


def in_both_places(function: Callable[[], None]) -> Callable[..., None]:
    """Give the group the common options and keep what was written there for its command."""

    def keep(**given: Any) -> None:
        ctx = click.get_current_context()
        ctx.obj = {**given, TABLES: ctx.obj}

    return _with_common(functools.update_wrapper(keep, function))


def _with_common(function: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(_COMMON):
        function = option(function)
    return function


def command(cls: type[click.Command] = click.Command) -> Callable[[Callable[..., int]], click.Command]:
    """Make a command of a function `(session, **arguments) -> exit code`; whatever it raises is printed and becomes one."""

    def decorate(function: Callable[..., int]) -> click.Command:
        def run(**given: Any) -> None:
            ctx = click.get_current_context()
            common = {key: given.pop(key) or (ctx.obj or {}).get(key) for key in ("config", "kubeconfig", "context", "output", "verbose")}
            output = Output(as_json=common["output"] == "json", verbose=bool(common["verbose"]))
            ctx.exit(_guarded(function, output, common, given))

        taking = _with_common(functools.update_wrapper(run, function))
        made: click.Command = click.command(function.__name__.replace("_", "-"), cls=cls)(taking)
        return made

    return decorate


def _guarded(function: Callable[..., int], output: Output, common: dict[str, Any], given: dict[str, Any]) -> int:
    """Run a command; an error is printed as its problems, an unexpected one on one line (with its trace on -v)."""
    from handler import log  # noqa: PLC0415 - `anneal --help` stays fast
    from handler.cli import reports  # noqa: PLC0415 - the same
    from handler.cli.session import Session  # noqa: PLC0415 - the same

    log.configure(output.clean, level=logging.WARNING, plain=True)
    try:
        added = (click.get_current_context().obj or {}).get(TABLES)
        with Session(output, os.environ, common["config"], common["kubeconfig"] or "", common["context"] or "", added) as session:
            return function(session, **given)
    except AnnealError as error:
        return reports.error(output, error)
    except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - a trace may hold what must be masked
        return reports.unexpected(output, error)


def _complete_target(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    """Offer the configured targets; a configuration with mistakes offers none."""
    from pathlib import Path  # noqa: PLC0415 - only a shell that completes needs these

    from handler.config.load import find, load  # noqa: PLC0415 - the same

    root = ctx.find_root()
    try:
        settings = load(find(ctx.params.get("config") or root.params.get("config"), os.environ, Path.cwd()))
    except ConfigInvalid:
        return []
    return [target.name for target in settings.targets if target.name.startswith(typed)]


target_argument = click.argument("target", required=False, shell_complete=_complete_target)
"""TARGET; may be left out when there is just one."""
targets_argument = click.argument("targets", nargs=-1, shell_complete=_complete_target)
"""TARGETS; may be left out for all of them."""
yes_option = click.option("-y", "--yes", is_flag=True, help="Don't ask.")
