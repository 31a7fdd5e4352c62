"""Commands that bring a cluster to what git or a directory declares, or show what that would change."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from handler.cli.go_flags import go_int
from handler.cli.kubernixos_flags import DRY_RUN, VALIDATE, Kubernixos, Word, timeout
from handler.cli.kubernixos_flags import NAME as CLOSURE
from handler.cli.locutus_flags import DIRECTORY, ENTRYPOINT, LOG_LEVELS, ROLLOUT, Locutus
from handler.cli.options import PATH, TABLES, command, files_options, placeholders_option, target_argument, targets_argument, yes_option
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
    """The name of a row that asks for runs, of the table that the program has."""

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


@command("render", renders=True)
@click.option("--commit", metavar="SHA", default="", help="Render this commit instead of the head.")
@click.option("--rollout", is_flag=True, help='Print {"objects": {key: manifest}, "rollout": {…}} as one line of JSON, as Locutus does.')
@click.option("--show-secrets", is_flag=True, help="Show the values of Secrets, and of fields named like one.")
@placeholders_option
@files_options
def render() -> None:
    """Print the objects that a commit of TARGET declares, as YAML or JSON.

    The cluster is asked only for what a Helm chart looks at, or takes values from.

    With --rollout, each object has the key by which a Rollout may call it.
    """


@command("apply", renders=True)
@click.option("--commit", metavar="SHA", default="", help="Plan this commit instead of the head.")
@click.option("--no-prune", is_flag=True, help="Plan without deleting anything.")
@click.option("--prune", "with_prune", is_flag=True, help="With -f: show what `apply -f --prune` would delete.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 when something would change.")
@files_options
def plan() -> None:
    """Show what a run of TARGET would change, or one of files; change nothing.

    Fields are shown live → declared, with the manager that owns them live. Values of Secrets are masked.
    """


@command("adopt", renders=True)
@click.option("--from", "owners", metavar="TOOL|ID", multiple=True, help="A tool (flux, helm, …), or an ApplySet's id; repeatable.")
@yes_option
@click.option("--dry-run", is_flag=True, help="Only show what would change hands.")
@click.option("--approve", metavar="ID", default="", help="Allow what an earlier run holds under this id.")
@target_argument
def adopt() -> None:
    """Take over what other tools have deployed of what git declares for TARGET, in one run that asks first.

    Without --from all owners are listed, each with what it would give and what to stop there first, and nothing is changed. The run is a
    whole one, under all guards; anneal.yaml needs no `adopt` for it and stays as it is, and so do the recorded settings.

    A server may run the target meanwhile: what isn't taken over yet it refuses before its first write, and one Lease serves both. A run
    that was killed is finished by the same command.
    """


@command("apply", renders=True)
@click.option("--commit", metavar="SHA", default="", help="Deploy this commit; one that isn't the head pins the target.")
@click.option("--force", is_flag=True, help="With --commit: also one that this target never ran.")
@click.option("--no-prune", is_flag=True, help="Delete nothing.")
@yes_option
@click.option("--approve", metavar="ID", default="", help="Allow what an earlier run holds under this id.")
@click.option("--prune", "with_prune", is_flag=True, help="With -f: delete what the files no longer declare.")
@files_options
def apply() -> None:
    """Bring the cluster to what git declares for TARGET, or to what files declare.

    `anneal apply -f deploy --name shop -n shop` applies a directory, `kustomize build x | anneal apply -f - …` standard input. Nothing is
    deleted then without --prune. At a terminal the plan is shown and asked about first.
    """


@command("apply", renders=True)
@yes_option
@click.option("--approve", metavar="ID", default="", help="Allow what an earlier run holds under this id.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@files_options
def prune() -> None:
    """Delete what TARGET's git no longer declares, also where its runs don't prune; its guards hold as ever.

    It is a whole run: what differs from git is brought back, too.
    """


@command("run", Triggered)
@targets_argument
@click.option("--trigger", metavar="NAME", type=TriggerName(), default="oneoff", show_default=True, help="What asks for runs: see below.")
@click.option("--interval", metavar="DURATION", default="1m", show_default=True, help="With --trigger=interval: from run to run, about.")
def run() -> None:
    """Bring TARGETS, or all that are configured, to what git declares, without a push.

    `oneoff` ends with the runs; all other triggers stay until SIGTERM. A failure of a run is a line of their log and ends nothing.
    """


@command("decide", renders=True)
@target_argument
@click.option("--to", "commit", metavar="SHA", default="", help="Go to this commit of its history instead of the one before.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@yes_option
def rollback() -> None:
    """Deploy what TARGET was on before, whole, and pin it.

    After a rollout that failed or hangs that is the commit it was on; else the newest other deployment that succeeded. Commits that change
    nothing of the target keep the pin; `anneal unpin` follows the branch again.
    """


@command("decide", renders=True)
@target_argument
@click.option(
    "--commit", metavar="SHA", default="", help="This commit, of those that they have recorded, instead of the one that they have now."
)
@click.option("--force", is_flag=True, help="Also one that isn't healthy there, was rolled back from, or that they never had.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@yes_option
def promote() -> None:
    """Deploy what the targets that TARGET follows have, without waiting until it has soaked.

    It must be on TARGET's branch and newer than what TARGET has. Nothing is pinned: TARGET follows again once something newer has soaked.
    """


@command("locutus", Locutus)
@click.option("--master", metavar="URL", default="", help="Address of the API server, before the kubeconfig's.")
@click.option("--log-level", type=click.Choice(LOG_LEVELS), default="info", show_default=True, help="What is logged.")
@click.option("--renderer", metavar="NAME", default="file", show_default=True, help="What makes the objects.")
@click.option(
    "--config-file",
    type=PATH,
    help="An anneal.yaml with one target: its guards instead of none, and its repository where no files are named."
    " With --renderer=jsonnet also the program's configuration.",
)
@click.option("--renderer.file.dir", "directory", type=PATH, help=f"Directory of the manifests [{DIRECTORY}/].")
@click.option("--renderer.file.rollout", "rollout", type=PATH, help=f"File of the Rollout [{ROLLOUT}, if it is there].")
@click.option("--renderer.jsonnet.entrypoint", "entrypoint", type=PATH, help=f"The program [{ENTRYPOINT}].")
@click.option("--renderer.jsonnet.ext-str", "strings", metavar="NAME=VALUE", multiple=True, help="An external variable of it; repeatable.")
@click.option("--renderer.jsonnet.jpaths", "searched", metavar="DIR", multiple=True, help="A directory of its imports; repeatable.")
@click.option("--trigger", metavar="NAME", help="oneoff | interval | resource.")
@click.option("--one-off", is_flag=True, help="Roll out once, whatever other triggers are configured.")
@click.option("--trigger.interval.duration", "interval", metavar="DURATION", help="From run to run [1m0s with --trigger=interval].")
@click.option("--trigger.resource.config", "objects_file", type=PATH, help="A resource trigger: each object is rolled out by itself.")
@click.option(
    "--trigger.resource.write-status/--trigger.resource.no-write-status",
    "write_status",
    default=True,
    show_default=True,
    help="Write how that goes into the objects' status.",
)
@click.option("--render-only", is_flag=True, help="Print the objects and the Rollout as JSON, and ask no cluster.")
@click.option("--web.listen", "listen", metavar="HOST:PORT", default="", help="Serve /metrics there while it runs; upstream's is :8080.")
@click.option("--qps", metavar="NUMBER", type=go_int, help="Without effect.")
@click.option("--burst", metavar="NUMBER", type=go_int, help="Without effect.")
def locutus() -> None:
    """Roll files out as Locutus does: its flags, written as in Go.

    Without --config-file the target is called `locutus`, its state is kept in namespace `default`, and nothing is pruned.
    """


@command("kubernixos", Kubernixos, renders=True, forms=("text",))
@click.argument("words", nargs=-1, type=Word(), metavar="[dump] [apply] [prune]")
@click.option("--show-trace", is_flag=True, help="Show the trace of an evaluation that fails.")
@yes_option
@click.option("--name", default=CLOSURE, show_default=True, help="Name of what is deployed: one for each closure of a cluster.")
@click.option("--target", metavar="NAME", help="A target of anneal.yaml, with its guards, instead of MODULES.")
@click.option("--dry-run", type=click.Choice([*DRY_RUN]), default="none", help="kubectl's: only show what would change.")
@click.option("--validate", type=click.Choice([*VALIDATE]), help="kubectl's: dry-run new objects before the first write, or not.")
@click.option("--timeout", "patience", metavar="DURATION", type=timeout, default="0", help="kubectl's: wait so long until all is healthy.")
@click.option("--force-conflicts", is_flag=True, help="kubectl's: without effect, what is declared is always written.")
@click.option("--v", "level", metavar="LEVEL", type=go_int, default="0", help="kubectl's -v=LEVEL: above 0 as --verbose.")
def kubernixos() -> None:
    """Deploy what NixOS modules declare, as Kubernixos does.

    MODULES and PACKAGES are Nix expressions in the environment. Without a word all is evaluated and checked, nothing printed or changed;
    `dump` prints the objects, `apply` applies them and lists what would go, `prune` deletes that.
    """
