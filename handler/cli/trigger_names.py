"""The names that `anneal run --trigger` takes: those of the table that the program has, each with its line in the help."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from handler.cli.options import TABLES
from handler.model.run_trigger import RUN_TRIGGERS, RunTrigger, run_triggers

if TYPE_CHECKING:
    from handler.app.tables import Tables


def _added(ctx: click.Context | None) -> Tables | None:
    return (ctx.obj or {}).get(TABLES) if ctx else None


def _known(ctx: click.Context | None) -> Mapping[str, RunTrigger]:
    added = _added(ctx)
    return run_triggers(added.triggers) if added else RUN_TRIGGERS


def _heard(ctx: click.Context | None) -> Collection[str]:
    from handler.triggers import WEBHOOKS  # noqa: PLC0415 - only a mistake waits for it

    added = _added(ctx)
    return added.webhooks if added else WEBHOOKS


class TriggerName(click.ParamType[str]):
    """The name of a row that asks for runs."""

    name = "name"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return it. Raises click.UsageError: there is no such row, or it is a webhook's."""
        known = _known(ctx)
        if value not in known:
            why = "is a webhook, which `anneal serve` hears" if value in _heard(ctx) else "isn't known"
            self.fail(f"{value} {why}; known are {', '.join(known) or 'none'}", param, ctx)
        return str(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG002 - click's
        """Complete it."""
        return [CompletionItem(name, help=row.about) for name, row in _known(ctx).items() if name.startswith(incomplete)]


class Triggered(click.Command):
    """A command whose help lists the triggers."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a line for each."""
        with formatter.section("Triggers"):
            formatter.write_dl([(name, row.about) for name, row in _known(ctx).items()])
