"""What `anneal locutus` is declared with: names, defaults, upstream's refused flags. Flags are read as Go's `flag` package reads them.

    --flag=value   --flag value   -flag=value   -flag value          one dash or two
    --truth   --truth=false                                          1, t, T, TRUE, true, True; 0, f, F, FALSE, false, False
    1m0s   1.5h   300ms   0                                          durations (time.ParseDuration)
    5   0x10   0b11   017   1_000                                    whole numbers (strconv.ParseInt)

What isn't a flag of the command is left to click, which names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

import click

NAME = "locutus"  # the target that there is without a configuration
NAMESPACE = "default"
DIRECTORY, ROLLOUT, ENTRYPOINT = "manifests", "rollout.yaml", "jsonnet/main.jsonnet"
LOG_LEVELS = ("all", "debug", "info", "warn", "error", "none")
_RESOURCE = "the trigger resource comes with a later version"
_DATABASE = "no database triggers a rollout, is a source of one, or is reported to"
_REFUSED = {
    "--trigger.resource.config": _RESOURCE,
    "--trigger.resource.write-status": _RESOURCE,
    "--trigger.database.config": _DATABASE,
    "--source.database.file": _DATABASE,
    "--database-connections-file": _DATABASE,
    "--default-database-url-file": _DATABASE,
}
"""Upstream's other flags, and why they aren't taken."""


class GoCommand(click.Command):
    """A command whose long flags are written as in Go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse them as click would, spelled as click spells them."""
        return super().parse_args(ctx, list(spelled(self.params, args)))


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


# --- as Go reads them
_TRUE, _FALSE = ("1", "t", "T", "TRUE", "true", "True"), ("0", "f", "F", "FALSE", "false", "False")
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"([0-9]{1,12}(?:\.[0-9]{0,12})?|\.[0-9]{1,12})(ns|us|µs|μs|ms|s|m|h)"


def spelled(params: Sequence[click.Parameter], args: Sequence[str]) -> Iterator[str]:
    """Yield a Go command line as click reads it. Raises click.UsageError for a truth that is none."""
    options = {name: each for each in params if isinstance(each, click.Option) for name in each.opts}
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            yield from (arg, *rest)
            return
        flag, equals, value = _flag(arg, options)
        option = options.get(flag)
        if option is None:
            yield f"{flag}{equals}{value}"
        elif option.is_flag:
            yield from (flag,) if not equals or _truth(flag, value) else ()
        else:
            yield flag
            yield from (value,) if equals else islice(rest, 1)


def _flag(arg: str, options: Mapping[str, object]) -> tuple[str, str, str]:
    name, equals, value = arg.partition("=")
    bare = name.removeprefix("-").removeprefix("-")
    if name.startswith("-") and len(bare) > 1 and (f"--{bare}" in options or f"-{bare[0]}" not in options):
        name = f"--{bare}"
    return name, equals, value


def _truth(flag: str, value: str) -> bool:
    if value not in _TRUE + _FALSE:
        raise click.UsageError(f"{flag}: expected true or false, found {value!r}")
    return value in _TRUE


def go_int(text: str) -> int:
    """Return a whole number as Go writes it. Raises ValueError."""
    return int(text, 8 if re.fullmatch("[+-]?0[0-7]+", text) else 0)


def go_duration(text: str) -> float | None:
    """Return the seconds of a duration as Go writes it; None if it isn't one."""
    if text == "0":  # the only number without a unit
        return 0.0
    if not re.fullmatch(f"(?:{_PART})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
