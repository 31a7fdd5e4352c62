"""Commands by which a person decides what runs do next."""

from __future__ import annotations

import click

from handler.cli.options import all_option, command, target_argument, yes_option
from handler.model.names import STATE_NAMESPACE

_GUARDED = ("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim")


@command("decide")
@target_argument
@click.argument("held_id", metavar="[ID]", required=False)
@yes_option
def approve() -> None:
    """Allow exactly the deletions that TARGET holds under ID, and run it.

    Without ID a person at a terminal is shown what is held and asked; elsewhere -y allows whatever is held now.
    """


@command("decide", renders=True)
@target_argument
def unpin() -> None:
    """Follow the branch of TARGET again, and run it."""


@command("decide")
@target_argument
@all_option
@click.option("--reason", default="", help="Shown in status and where a run is asked for.")
@click.option("--until", default="", metavar="2h|TIME", help="When it ends by itself: a duration or an RFC 3339 time.")
def suspend() -> None:
    """Pause TARGET: no run writes until `anneal resume`, one under way stops before its next stage."""


@command("decide")
@target_argument
@all_option
def resume() -> None:
    """End the pause of TARGET; its next run goes on, at once with `anneal apply`."""


@command("replay")
@click.argument("target")
@click.option("--commit", metavar="SHA", default="", help="Deploy this commit; one that isn't the head pins the target.")
@click.option("--dry-run", is_flag=True, help="Only plan.")
@click.option("--force", is_flag=True, help="Run although nothing changed; no guard is passed.")
@click.option("--approve", metavar="ID", default="", help="Allow what is held under this id.")
@click.option("--unpin", is_flag=True, help="Follow the branch again.")
@click.option("--rollback", is_flag=True, help="Go back to what was deployed before, and pin it.")
@click.option("--server", metavar="URL", envvar="ANNEAL_SERVER", help="The server [ANNEAL_SERVER]; the token is in ANNEAL_TOKEN.")
@click.option("--ca-file", metavar="FILE", default="", help="PEM file of the authorities to trust instead of the system's.")
@click.option("--insecure-http", is_flag=True, help="Send the token over plain http:// to another machine.")
@click.option("--wait/--no-wait", default=None, help="Wait for the end of the run [wait, if the token may read].")
@click.option("--timeout", metavar="DURATION", default="15m", show_default=True, help="How long to wait.")
@click.option("--json", "as_json", is_flag=True, help="The same as -o json.")
def replay() -> None:
    """Ask the server for a run of TARGET, in the name of the token in ANNEAL_TOKEN."""


@command("decide")
@target_argument
@click.option("--repository", default="", metavar="URL", help="The one of its record, where the installation has no name of its own.")
@yes_option
def retarget() -> None:
    """Accept the repository, installation and cluster that TARGET's configuration names now.

    The next run plans fully: what the new place no longer declares is judged by the guards as ever.
    """


@command("retire")
@click.argument("target")
@click.option("--prune/--keep", "prune", default=None, help="Delete what it has, or let go of it.")
@click.option("-n", "--namespace", default="", metavar="NAMESPACE", help="Only what it has there, and not its record.")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(_GUARDED), help="With --prune: objects of this kind go, too.")
@click.option("--state-namespace", default="", help=f"Where its record is [the configuration's, {STATE_NAMESPACE}].")
@click.option("--repository", default="", metavar="URL", help="Its repository, where no configured target has that.")
@click.option("--installation", default="", help="The installation that its record is of [the configuration's, default].")
@click.option("--dry-run", is_flag=True, help="Show what would be done, and end there.")
@yes_option
def retire() -> None:
    """Delete (--prune), or let go of (--keep), what TARGET has that isn't configured any more; then delete its record.

    What the rules of prune keep is let go: it stays, and another tool may have it. Of a configured target only a namespace that has left
    its whitelist can be retired. Of a template that isn't configured any more all instances end.
    """


@command("decide", reads=True)
@target_argument
def unlock() -> None:
    """Free the Lease of TARGET when its holder doesn't renew it; watches for one Lease duration at most."""
