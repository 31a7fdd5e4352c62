"""`anneal` itself: which commands there are, each loaded when it is called, and what the process exits with.

Law: nothing is imported for `--help` but click, so that it answers at once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from handler import __version__
from handler.cli.options import in_both_places

USAGE = 64
"""EX_USAGE of sysexits(3)."""

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("init", "Write a first anneal.yaml and say how to set up the webhook."),
    "check": ("check", "Look at configuration, git, rights, render and plan; change nothing."),
    "render": ("render", "Print the objects that a commit declares."),
    "plan": ("plan", "Show what a run would change; change nothing."),
    "apply": ("apply", "Bring the cluster to what git declares."),
    "prune": ("apply", "Delete what git no longer declares."),
    "run": ("run", "Bring targets to what git declares, once or at an interval, without webhooks."),
    "status": ("status", "Say how targets stand and what to do next."),
    "rollout": ("rollout", "Show the steps of a target's newest rollout."),
    "history": ("history", "Show a target's last runs."),
    "approve": ("approve", "Allow what is held, and run the target."),
    "suspend": ("pause", "Pause a target, or all of them."),
    "resume": ("pause", "End a pause."),
    "unpin": ("approve", "Follow the branch again, and run the target."),
    "rollback": ("rollback", "Go back to what was deployed before, and pin it."),
    "replay": ("replay", "Ask a running server for a run."),
    "retarget": ("retarget", "Accept another repository, installation or cluster."),
    "unlock": ("unlock", "Free the Lease of a worker that died."),
    "rbac": ("rbac", "Print the least rights that a target needs."),
    "doctor": ("doctor", "Examine this machine, its tools and what it reaches."),
    "serve": ("serve", "Serve webhooks and run targets until SIGTERM."),
    "work": ("work", "Run what waits in a queue, without the web process."),
    "dlq": ("dlq", "List what ended as dead letters, or ask for it again."),
    "explain-delivery": ("explain_delivery", "Say what the door would answer to a webhook payload, and why."),
    "locutus": ("locutus", "Roll files out with Locutus' own flags."),
    "completion": ("completion", "Print what makes a shell complete commands."),
}
"""Name -> its module in this package, and the line that `anneal --help` shows."""


class Commands(click.Group):
    """Loads a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the order of a target's life."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load one."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"handler.cli.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]  # always ends the process
        """Run; ends the process with one of our exit codes."""
        extra.pop("standalone_mode", None)
        try:
            status = super().main(args, prog_name, standalone_mode=False, **extra)
        except click.UsageError as error:
            error.show()
            status = USAGE
        except click.ClickException as error:
            error.show()
            status = 1
        except click.Abort:
            click.echo("aborted", err=True)
            status = 1
        sys.exit(status if isinstance(status, int) else 0)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="anneal", message="%(prog)s %(version)s")
@in_both_places
def anneal() -> None:
    """GitOps without a controller fleet: brings clusters to what git declares.

    Exit codes: 0 done, 1 failed, 3 held for approval, 4 busy, superseded or suspended, 64 usage.
    """
