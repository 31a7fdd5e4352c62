"""Commands that show what is recorded: how targets stand, what ran, what waits as a dead letter."""

from __future__ import annotations

import click

from handler.cli.options import FORMS, command, files_options, target_argument


@command("status", reads=True, forms=(*FORMS, "wide"))
@click.option("-w", "--watch", is_flag=True, help="Look again and again: redraw on a terminal, print what changes elsewhere.")
@click.option("--exit-code", "coded", is_flag=True, help="Exit with 0 if all is well, 1 if something can't be read, 2 in trouble.")
@click.option("--offline", is_flag=True, help="Don't ask git hosts.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(0.1, 3600),
    default=4.0,
    show_default=True,
    envvar="ANNEAL_STATUS_TIMEOUT",
    help="Wait for no cluster and no git host longer [ANNEAL_STATUS_TIMEOUT].",
)
@click.option(
    "--logs", "with_logs", is_flag=True, help="With a target: the last lines of unhealthy containers, read now, with your rights."
)
@files_options
def status() -> None:
    """Say how all targets stand, a line each, trouble first, and what to do next; or all about TARGET.

    It asks clusters and git hosts at the same time.
    """


@command("rollout", reads=True)
@target_argument
@click.option("-w", "--watch", is_flag=True, help="Follow it until it ends.")
@click.option("--logs", "with_logs", is_flag=True, help="Also the last lines of unhealthy containers, read now, with your rights.")
def rollout() -> None:
    """Show the groups and steps of TARGET's newest rollout: what is done, what goes on, since when. Without one: how TARGET does.

    Exit codes: 0 done or under way, 1 failed or gone back from, 4 suspended while it was watched.
    """


@command("gap", renders=True)
@target_argument
@click.option("--commit", metavar="SHA", default="", help="Look from this commit instead of the head or the pin.")
@click.option("--exit-code", is_flag=True, help="Exit with 2 when a run that compares live would change something.")
def gap() -> None:
    """Show how each object of TARGET, or of all targets, stands against git; change nothing.

    Objects and fields are equal, differ, are undeclared (live has them, git doesn't), or change by themselves: ignored, without a manager
    as the API server's defaults, filled in or not kept by it, written by a controller through a subresource. Equal ones are counted; -v
    lists them. Values of Secrets are masked.
    """


@command("orphans", renders=True)
@target_argument
@click.option("--exit-code", is_flag=True, help="Exit with 2 when a run that compares live would delete something.")
def orphans() -> None:
    """Show what a run of TARGET, or of all targets, that compares live deletes and why, what it keeps and why, and what a guard holds.

    That is one for a new commit, a drift run, or one that a person asks for. In exclusive namespaces it also lists what lives there
    undeclared, with the time after which a drift run deletes it, or with what keeps it; in other namespaces of a target what lives
    undeclared and unmarked, which is never touched. It writes nothing.

    Exit codes: 0 looked at, 1 a target couldn't be looked at; with --exit-code 2 when something would go now, 0 while all that is
    undeclared is kept or within its grace.
    """


@command("history", reads=True)
@click.option("--limit", type=click.IntRange(min=1), default=20, show_default=True, help="How many runs, newest first; also -n.")
@files_options
def history() -> None:
    """Show the last runs of TARGET, newest first; -v also what each changed and said."""


@command("dlq")
@click.argument("what", type=click.Choice(["list", "redrive"]))
@click.option("--target", metavar="TARGET", help="Only what asks for this target.")
@click.option("--run", metavar="ID", help="Only the request of this run.")
@click.option("--drop-unreadable", is_flag=True, help="With redrive: delete what can't be read; it is kept otherwise.")
def dlq() -> None:
    """List what ended as dead letters, or put it into the queue again.

    A message whose run came to no end, and stands in no record, comes again a few times; then SQS moves it to the queue's dead letters.

    `list` hides nothing from others for longer than it looks. `redrive` puts all of them, or those that are named, into the queue again,
    after what made them fail is mended; each is deleted only then, so none is lost. Should it be killed in between, one is asked for twice:
    a push finds nothing to do, and what was asked by name ends as it has ended.

    A commit, the end of a pin, an approval and a forced run are asked for again by `--run` alone: what was wanted then may be wrong
    by now, after others have decided. What can't be read, or asks for a target that isn't configured, stays where it is. Of one target ten
    can be seen at once: a `--run` behind those is reached after they are asked for again.
    """
