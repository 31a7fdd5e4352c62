"""What `anneal locutus` is declared with: names, defaults, upstream's refused flags."""

from __future__ import annotations

import click

from handler.cli.go_flags import GoCommand

NAME = "locutus"  # the target that there is without a configuration
NAMESPACE = "default"
DIRECTORY, ROLLOUT, ENTRYPOINT = "manifests", "rollout.yaml", "jsonnet/main.jsonnet"
LOG_LEVELS = ("all", "debug", "info", "warn", "error", "none")
_DATABASE = "no database triggers a rollout, is a source of one, or is reported to"
_REFUSED = {
    "--trigger.database.config": _DATABASE,
    "--source.database.file": _DATABASE,
    "--database-connections-file": _DATABASE,
    "--default-database-url-file": _DATABASE,
}
"""Upstream's other flags, and why they aren't taken."""


class Locutus(GoCommand):
    """A command that takes Locutus' flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse them; a flag of upstream's that isn't taken says why."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as unknown:
            if why := _REFUSED.get(unknown.option_name):
                raise click.UsageError(f"{unknown.option_name}: {why}", ctx) from None
            raise
