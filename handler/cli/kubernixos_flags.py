"""What `anneal kubernixos` is declared with: upstream's words, and the flags of `kubectl apply` that are taken, as kubectl spells them.

--                          may stand before kubectl's flags, or not
-v=6   -v 6   --v=6         a level; -v alone is Anneal's own
--dry-run   --validate      without a value what kubectl takes it for; a value stands behind `=`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import click

from handler.cli.go_flags import GoCommand, go_duration

NAME = "kubernixos"  # the target that there is without a configuration
NAMESPACE = "default"
WORDS = ("dump", "apply", "prune")
DRY_RUN = {"client": True, "server": True, "true": True, "none": False, "false": False}
VALIDATE = {"strict": "server", "true": "server", "ignore": "none", "false": "none"}
"""What kubectl's values are here: whether nothing is written, and the setting `validate`."""
_BARE = {"--dry-run": "client", "--validate": "strict"}
_PRUNE = "Usage of `kubectl apply --prune` is disabled in kubernixos"
_TAKEN = "taken are --dry-run, -v=LEVEL, --validate, --timeout and --force-conflicts"
_BUILD = "nothing is built, and no kubeval is run: `anneal kubernixos` without a word has the API server itself judge each object"
_LEVEL = re.compile(r"--?v(?:=(.*)|(\d+))?")


class Kubernixos(GoCommand):
    """A command that takes Kubernixos' words and flags."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse them; a flag of kubectl's that isn't taken is refused by name."""
        try:
            return super().parse_args(ctx, list(forwarded(args)))
        except click.NoSuchOption as unknown:
            seen = f"{unknown.option_name} isn't taken: nothing is forwarded to kubectl; {_TAKEN}"
            raise click.UsageError(seen, ctx) from None


def forwarded(args: Sequence[str]) -> Iterator[str]:
    """Yield a command line with kubectl's flags as Go writes them. Raises click.ClickException: --prune."""
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        name, equals, _ = arg.partition("=")
        flag = f"--{name.lstrip('-')}" if name.startswith("-") else name
        level = _LEVEL.fullmatch(arg)
        if flag == "--prune":
            raise click.ClickException(_PRUNE)
        if level and (level.lastindex or (rest and rest[0].isdecimal())):
            yield f"--v={level[level.lastindex] if level.lastindex else rest.pop(0)}"
        elif arg != "--":
            yield f"{flag}={_BARE[flag]}" if flag in _BARE and not equals else arg


class Word(click.Choice[str]):
    """One of upstream's words."""

    def __init__(self) -> None:
        super().__init__(WORDS)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse another word by name."""
        if value == "build":
            self.fail(f"build isn't taken: {_BUILD}", param, ctx)
        if value not in WORDS:
            self.fail(f"{value} isn't taken: nothing is forwarded to kubectl; the words are {', '.join(WORDS)}", param, ctx)
        return str(value)


def timeout(text: str) -> float:
    """Return the seconds of kubectl's --timeout. Raises click.BadParameter."""
    found = go_duration(text)
    if found is None or not (found == 0 or 1 <= found <= 365 * 86400):
        raise click.BadParameter(f"expected 0 or a duration from 1s, such as 1m30s, found {text!r}")
    return found
