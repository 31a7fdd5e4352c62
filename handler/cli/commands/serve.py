"""Commands of processes that stay."""

from __future__ import annotations

import click

from handler.cli.options import command
from handler.web import BIND, MAX_REQUESTS


@command("serve")
@click.option("--bind", metavar="HOST:PORT", default=BIND, show_default=True, envvar="ANNEAL_BIND", help="Where to listen [ANNEAL_BIND].")
@click.option("--access-log/--no-access-log", envvar="ANNEAL_ACCESS_LOG", help="Log a line of every request [ANNEAL_ACCESS_LOG].")
@click.option(
    "--max-requests",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=MAX_REQUESTS,
    show_default=True,
    envvar="ANNEAL_MAX_REQUESTS",
    help="Replace the web process after about so many; 0: never [ANNEAL_MAX_REQUESTS].",
)
def serve() -> None:
    """Serve webhooks and run targets until SIGTERM: one web process, one worker process, one supervisor.

    With a queue (`queue.sqs.url`, or ANNEAL_QUEUE_URL) what arrives waits there, and any worker on the same queue runs it.
    """


@command("serve")
def work() -> None:
    """Run what waits in the queue until SIGTERM, and the schedule: a worker without the web process.

    The queue is `queue.sqs.url`, or ANNEAL_QUEUE_URL. Start as many as you like beside `anneal serve` with the same queue: targets
    are shared out among them, each target is worked on by one at a time. What a worker that dies had in hand goes to another one
    after a minute; one that gets SIGTERM gives it back at once. Metrics are at `metrics.bind`, if that is set.
    """
