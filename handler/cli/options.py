"""What every command takes, and how it is run: its work is imported when it is called, and its errors end as an exit code.

The common options may stand before or after the command's name; what stands after it wins.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handler.cli.output import Output
from handler.model.advice import advice
from handler.model.errors import AnnealError, ConfigInvalid
from handler.model.names import STATE_NAMESPACE

if TYPE_CHECKING:
    from handler.cli.session import Session

FORMS = ("text", "json")  # what `-o` takes where a command says nothing else
TABLES = "tables"  # where the group keeps the tables of a program of its own for its command


def _common(forms: Sequence[str]) -> tuple[Callable[[Any], Any], ...]:
    return (
        click.option("-c", "--config", metavar="FILE", help="Configuration [ANNEAL_CONFIG, ./anneal.yaml, /etc/anneal/anneal.yaml]."),
        click.option("--kubeconfig", metavar="FILE", help="Kubeconfig, before the target's own and KUBECONFIG."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig."),
        click.option("-o", "--output", type=click.Choice(forms), help="Form of what is printed."),
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

    return _with_common(functools.update_wrapper(keep, function), (*FORMS, "wide"))


def _with_common(function: Callable[..., None], forms: Sequence[str]) -> Callable[..., None]:
    for option in reversed(_common(forms)):
        function = option(function)
    return function


def command(
    module: str,
    cls: type[click.Command] = click.Command,
    *,
    renders: bool = False,
    reads: bool = False,
    forms: Sequence[str] = FORMS,
) -> Callable[[Callable[[], None]], click.Command]:
    """Make a command of its declaration. `module`: of this package; its function of the same name does the work.

    That function takes a Session and the declared arguments and returns the exit code; its errors are printed and become one. A name that
    Python keeps for itself ends in `_`. `renders`:
    the render child's server starts while the function is imported. `reads`: it works on records alone. `forms`: what its `-o` takes.
    """

    def decorate(declared: Callable[[], None]) -> click.Command:
        def run(**given: Any) -> None:
            ctx = click.get_current_context()
            common = {key: given.pop(key) or (ctx.obj or {}).get(key) for key in ("config", "kubeconfig", "context", "output", "verbose")}
            form = common["output"]
            if form not in (None, *forms):
                raise click.UsageError(f"-o {form} isn't a form of this command; it has {', '.join(forms)}")
            output = Output(as_json=form == "json", verbose=bool(common["verbose"]), wide=form == "wide")

            def work(session: Session) -> int:
                session.reads, session.naming = reads, _naming
                if renders:
                    session.sandbox.start()
                function = getattr(importlib.import_module(f"handler.cli.{module}"), declared.__name__)
                if not gc.isenabled():  # see `handler.cli.main`
                    gc.freeze()
                    gc.enable()
                code: int = function(session, **given)
                return code

            ctx.exit(_guarded(work, output, common))

        taking = _with_common(functools.update_wrapper(run, declared), forms)
        made: click.Command = click.command(declared.__name__.rstrip("_").replace("_", "-"), cls=cls)(taking)
        return made

    return decorate


def _naming(file: str) -> str:
    from handler.cli.filenames import again

    return again(config=file)


def _guarded(work: Callable[[Session], int], output: Output, common: dict[str, Any]) -> int:
    from handler.app import log
    from handler.cli import reports
    from handler.cli.session import Session

    log.configure(level=logging.WARNING, plain=True)
    try:
        added = (click.get_current_context().obj or {}).get(TABLES)
        with Session(output, os.environ, common["config"], common["kubeconfig"] or "", common["context"] or "", added) as session:
            return work(session)
    except AnnealError as error:
        return reports.error(output, error)
    except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - Python's own trace quotes what libraries say
        return reports.unexpected(output, error)


def _complete_target(ctx: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    from handler.cli.session import Session

    named = ctx.params.get("config") or ctx.find_root().params.get("config")
    try:
        with contextlib.redirect_stderr(None):  # nothing is asked or said
            settings = Session(Output(as_json=True), os.environ, named).settings
    except ConfigInvalid:
        return []
    return [target.name for target in settings.targets if target.name.startswith(typed)]


target_argument = click.argument("target", required=False, shell_complete=_complete_target)
"""TARGET; may be left out when there is just one."""
targets_argument = click.argument("targets", nargs=-1, shell_complete=_complete_target)
"""TARGETS; may be left out for all of them."""
all_option = click.option("--all", "every", is_flag=True, help="All targets.")
placeholders_option = click.option(
    "--placeholders", is_flag=True, help="Without any key: placeholders stand for what SOPS has encrypted and for variables of the cluster."
)
yes_option = click.option("-y", "--yes", is_flag=True, help="Don't ask.")


class _Filename(_Named):
    """A file, a directory, or `-`; what is no URL: kubectl fetches those, Anneal doesn't."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse a URL."""
        if str(value).startswith(("http://", "https://")):
            verb = ctx.info_name if ctx else "apply"
            self.fail(advice("a URL isn't fetched; pipe it: curl -fsSL {} | anneal {} -f - …", value, verb), param, ctx)
        return super().convert(value, param, ctx)


def filenames_option(text: str) -> Callable[[Any], Any]:
    """Return `-f`: files, directories and `-`, several of them."""
    return click.option("-f", "--filename", "filenames", type=_Filename(), multiple=True, help=text)


_FILES = (
    filenames_option("Files, directories or - instead of TARGET."),
    click.option("--name", help="With -f: the target's name."),
    click.option("-n", "--namespace", "namespaces", multiple=True, help="With -f: a namespace it may touch; the first is the default."),
    click.option("--cluster-scoped", multiple=True, metavar="KIND", help="With -f: a cluster-scoped kind it may declare [Namespace]."),
    click.option(
        "--adopt", multiple=True, metavar="TOOL", help="With -f: a tool (flux, helm, …), or an ApplySet's id, whose objects it takes over."
    ),
    click.option("--recreate", multiple=True, metavar="KIND", help="With -f: a kind that is deleted and made anew where it must be."),
    click.option(
        "--validate", type=click.Choice(["server", "none"]), help="With -f: dry-run new objects before the first write, or not [server]."
    ),
    click.option("--state-namespace", help=f"With -f: where its state is kept [{STATE_NAMESPACE}]."),
)


def files_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command TARGET and the options of `-f`; its work opens them (`handler.cli.filenames.from_files`)."""
    for option in reversed(_FILES):
        function = option(function)
    return target_argument(function)
