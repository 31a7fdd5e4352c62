"""`anneal` itself: which commands there are, each declared when it is called, and what the process exits with.

Law: nothing is imported for `--help` but click and the declaration (`handler.cli.commands`), so that it answers at once.
"""

from __future__ import annotations

import importlib
import keyword
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from handler import __version__
from handler.cli.options import in_both_places
from handler.model.advice import advice

USAGE = 64  # EX_USAGE of sysexits(3)

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("start", "Write a first anneal.yaml and say what comes next."),
    "import": ("start", "Print the targets that do what Flux and Argo CD objects do."),
    "check": ("start", "Look at all that a server and its runs need; change nothing."),
    "render": ("deploy", "Print the objects that a commit declares."),
    "vendor": ("start", "Write remote bases of a checkout's kustomizations into it."),
    "plan": ("deploy", "Show what a run, or apply -f, would change; change nothing."),
    "gap": ("look", "Show how live stands against git, field by field; change nothing."),
    "orphans": ("look", "Show what a run deletes, and what it keeps; change nothing."),
    "adopt": ("deploy", "Take over what other tools have deployed, once; without --from, list it."),
    "apply": ("deploy", "Bring the cluster to what git, files or standard input (-f) declare."),
    "prune": ("deploy", "Delete what git no longer declares."),
    "run": ("deploy", "Bring targets to what git declares, once or at an interval, without webhooks."),
    "status": ("look", "Say how targets stand and what to do next."),
    "rollout": ("look", "Show the steps of a target's newest rollout."),
    "history": ("look", "Show a target's last runs."),
    "approve": ("decide", "Allow what is held, and run the target."),
    "suspend": ("decide", "Pause a target, or all of them."),
    "resume": ("decide", "End a pause."),
    "unpin": ("decide", "Follow the branch again, and run the target."),
    "rollback": ("deploy", "Go back to what was deployed before, and pin it."),
    "promote": ("deploy", "Deploy what another target has, without waiting until it has soaked."),
    "replay": ("decide", "Ask a running server for a run."),
    "retarget": ("decide", "Accept another repository, installation or cluster."),
    "retire": ("decide", "Delete or let go of what a target has that is gone."),
    "unlock": ("decide", "Free the Lease of a worker that died."),
    "rbac": ("start", "Print the least rights that a target needs."),
    "doctor": ("start", "Look as check does, and at this machine and a running server."),
    "serve": ("serve", "Serve webhooks and run targets until SIGTERM."),
    "work": ("serve", "Run what waits in a queue, without the web process."),
    "dlq": ("look", "List what ended as dead letters, or ask for it again."),
    "explain-delivery": ("start", "Say what the door would answer to a webhook payload, and why."),
    "locutus": ("deploy", "Roll files out with Locutus' own flags."),
    "kubernixos": ("deploy", "Deploy NixOS modules with Kubernixos' own words."),
    "completion": ("start", "Print what makes a shell complete commands."),
}
"""Name -> the module of `handler.cli.commands` that declares it, and the line that `anneal --help` shows."""

_MEANT = {
    "delete": "prune",
    "describe": "status",
    "diff": "plan",
    "export": "import",
    "migrate": "import",
    "get": "status",
    "help": "--help",
    "logs": "status --logs",
    "reconcile": "apply",
    "sync": "apply",
    "version": "--version",
}
"""Words of kubectl, kapp, Flux and Argo CD -> what does that here."""


class Commands(click.Group):
    """Loads a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names, in the order of a target's life."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Load one."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"handler.cli.commands.{COMMANDS[cmd_name][0]}")
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(module, f"{name}_" if keyword.iskeyword(name) else name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the typed command. Raises click.UsageError, which names the one that was probably meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib  # noqa: PLC0415 - only a mistake waits for it

            near = _MEANT.get(args[0]) or next(iter(difflib.get_close_matches(args[0], COMMANDS, 1)), "")
            raise click.UsageError(
                f"{error.message.rstrip('.')}" + (advice("; for that: anneal{words}", near.split()) if near else ""), ctx
            ) from None

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

    \b
    anneal apply -f deploy --name shop -n shop    manifests, without a configuration
    anneal run --trigger interval                 follows git as anneal.yaml says
    anneal init                                   writes a first anneal.yaml

    Exit codes: 0 done, 1 failed, 3 held for approval, 4 waiting, busy, superseded or suspended, 64 usage.
    """  # noqa: D301 - click's mark of lines that stay as they are
