"""`anneal locutus`: Locutus' own command lines, of both its generations, in front of the same code.

    --trigger=oneoff | interval          2018 to 2021: the trigger is named
    --one-off   --trigger.interval.duration=1m     since 2023: a trigger is there once it is configured, and --one-off overrides it

As upstream, no command line runs without a trigger: a directory is never rolled out because somebody has left one out. What upstream has
for the renderer jsonnet, the trigger resource and databases is refused by name.
"""

from __future__ import annotations

from pathlib import Path

import click

from handler.cli import locutus_run
from handler.cli.go_flags import go_duration
from handler.cli.locutus_run import Flags
from handler.cli.session import Session
from handler.config.value_formats import RANGES

MINUTE = 60.0
_TRIGGERS = ("oneoff", "interval")
_NO_TRIGGER = "no trigger is named: --one-off (or --trigger=oneoff) rolls out once, --trigger.interval.duration=1m again and again"


def locutus(session: Session, *, trigger: str | None, one_off: bool, interval: str | None, listen: str, **rest: object) -> int:
    """Roll files out as Locutus does: its flags, written as in Go."""
    known("--renderer", str(rest["renderer"]), tuple(session.added.renderers) if session.added else ("file",), "jsonnet")
    if idle := [f"--{name}" for name in ("qps", "burst") if rest.pop(name) is not None]:
        session.output.note(f"without effect: {', '.join(idle)}; the API server's own priority and fairness limits what is asked of it")
    every = _every(trigger, interval, one_off=one_off, render_only=bool(rest["render_only"]))
    if listen and ":" not in listen:
        raise click.UsageError(f"--web.listen: expected host:port or :port, found {listen!r}")
    session.master = str(rest.pop("master"))
    named = rest.pop("config_file") or session.named  # `--config` names the same
    return locutus_run.roll_out(session, Flags(config=Path(str(named)) if named else None, every=every, listen=listen, **rest))  # type: ignore[arg-type]  # click has checked them


def _every(trigger: str | None, interval: str | None, *, one_off: bool, render_only: bool) -> float | None:
    """Return the seconds from run to run, None for once. Raises click.UsageError where no trigger, or no known one, is named."""
    if trigger is not None:
        known("--trigger", trigger, _TRIGGERS, "resource")
    if one_off and trigger == "interval":
        raise click.UsageError("--one-off and --trigger=interval contradict each other; leave one of them out")
    found = go_duration(interval) if interval is not None else MINUTE if trigger == "interval" else 0.0
    if found != 0.0 or trigger == "interval":
        _check(interval, found)
    if one_off or trigger == "oneoff":
        return None
    if not found and not render_only:
        raise click.UsageError(_NO_TRIGGER)
    return found or None


def _check(interval: str | None, found: float | None) -> None:
    """Raise click.UsageError for what is no duration, or none that is kept."""
    limits = RANGES["duration"]
    if found is None or not limits.least <= found <= limits.most:
        raise click.UsageError(f"--trigger.interval.duration: expected {limits.noun} from {limits.span()}, found {interval!r}")


def known(flag: str, name: str, names: tuple[str, ...], later: str) -> None:
    """Raise click.UsageError for a name that isn't known; `later`: the one that upstream has and this version hasn't."""
    if name not in names:
        seen = "comes with a later version" if name == later else "isn't known"
        raise click.UsageError(f"{flag}={name} {seen}; this one has {', '.join(names)}")
