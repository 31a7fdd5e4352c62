"""How anything leaves the command line: masked, with control characters escaped, as lines and tables or as JSON.

Law: nothing is printed but through an Output. Colour, tables and a moving line only where a person looks (a terminal, no NO_COLOR).
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from handler.config.masking import Mask
from handler.model.plain import masked, plain

_COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "dim": "bright_black", "head": "cyan"}


class Output:
    """Standard output of one command. `mask`: of what is learned on the way; replaced as soon as the configured secrets are known."""

    def __init__(self, *, as_json: bool = False, verbose: bool = False) -> None:
        self.as_json = as_json
        self.verbose = verbose
        self.mask: Callable[[str], str] = Mask()

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked."""
        return not self.as_json and sys.stdin.isatty() and sys.stdout.isatty()

    @property
    def moves(self) -> bool:
        """Whether a moving line is seen."""
        return not self.as_json and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def clean(self, text: str) -> str:
        """Return text that may be printed: secrets masked, nothing in it that a terminal would obey."""
        return "".join(char if char.isprintable() or char in "\n\t" else char.encode("unicode_escape").decode() for char in self.mask(text))

    def styled(self, text: str, style: str) -> str:
        """Colour text that is clean, where colour is shown."""
        return click.style(text, fg=_COLOURS[style]) if style and _in_colour() else text

    def line(self, text: str = "", style: str = "", *, err: bool = False) -> None:
        """Print a line (or several); nothing in JSON form."""
        if not self.as_json:
            click.echo(self.styled(self.clean(text), style), err=err)

    def detail(self, text: str) -> None:
        """Print a line on -v only."""
        if self.verbose:
            self.line(text, "dim")

    def note(self, text: str) -> None:
        """Print a line for people to standard error, whatever form the output has."""
        click.echo(self.clean(text), err=True)

    def text(self, text: str) -> None:
        """Print a document (YAML, shell) as it is, but for the masks; line breaks and indents are its own."""
        click.echo(self.clean(text), nl=False)

    def document(self, value: Any) -> None:
        """Print a value as JSON, its texts masked."""
        click.echo(json.dumps(masked(plain(value), self.mask), indent=2))  # ASCII: a terminal obeys some others

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows: a table on a terminal, columns of plain text elsewhere."""
        cleaned = [[self.clean(cell).replace("\n", " ") for cell in row] for row in rows]
        if sys.stdout.isatty():
            _rich_table(heads, cleaned)
            return
        widths = [max(len(cell) for cell in column) for column in zip(heads, *cleaned, strict=True)]
        for row in (heads, *cleaned):
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def confirm(self, question: str) -> bool:
        """Ask a person; no is the default."""
        return click.confirm(self.clean(question), default=False)

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a moving line with the time elapsed while something runs; nothing where nobody looks."""
        if not self.moves:
            yield
            return
        with _rich_progress(self.clean(what)):
            yield

    @contextlib.contextmanager
    def picture(self) -> Iterator[Callable[[list[tuple[str, str]]], None] | None]:
        """Yield what draws lines (text, style) in the place of those before; None where nothing can be drawn in its place."""
        if self.as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            yield None
            return
        with _rich_picture() as update:
            yield lambda lines: update("\n".join(self.styled(self.clean(text), style) for text, style in lines))


def _in_colour() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _rich_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box  # noqa: PLC0415 - only a terminal needs rich
    from rich.console import Console  # noqa: PLC0415 - the same
    from rich.table import Table  # noqa: PLC0415 - the same
    from rich.text import Text  # noqa: PLC0415 - the same

    table = Table(*heads, box=box.SIMPLE_HEAD)
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _rich_progress(what: str) -> contextlib.AbstractContextManager[Any]:
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich
    from rich.markup import escape  # noqa: PLC0415 - the same
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - the same

    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=Console(stderr=True), transient=True
    )
    progress.add_task(escape(what), total=None)
    return progress


@contextlib.contextmanager
def _rich_picture() -> Iterator[Callable[[str], None]]:
    from rich.live import Live  # noqa: PLC0415 - only a terminal needs rich
    from rich.text import Text  # noqa: PLC0415 - the same

    with Live(auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)
