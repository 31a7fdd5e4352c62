"""Flags as Go's `flag` package reads them, for the command lines of tools written in Go.

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


class GoCommand(click.Command):
    """A command whose long flags are written as in Go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse them as click would, spelled as click spells them."""
        return super().parse_args(ctx, list(spelled(self.params, args)))


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
            yield from (flag,) if not equals or _truth(flag, value) else option.secondary_opts[:1]
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
    found = int(text, 8 if re.fullmatch("[+-]?0[0-7_]+", text) else 0)
    if text != text.strip() or not -(2**63) <= found < 2**63:
        raise ValueError(text)
    return found


def go_duration(text: str) -> float | None:
    """Return the seconds of a duration as Go writes it; None if it isn't one."""
    if text in ("0", "+0", "-0"):  # the only number without a unit
        return 0.0
    if not re.fullmatch(f"[+]?(?:{_PART})+", text):
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text))
