"""How anything leaves the command line: with control characters escaped, as lines and tables or as JSON.

Law: nothing is printed but through an Output. Colour, tables and a moving line only where a person looks (a terminal, no NO_COLOR).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import click

from handler.model.errors import Problem
from handler.model.to_json import plain

_TERMINAL = "/dev/tty"
_COLOURS = {"good": "green", "bad": "red", "warn": "yellow", "dim": "bright_black", "head": "cyan"}

_COMMAND = re.compile(r"`[^`]+`")  # what a text quotes to be typed; it is broken only where it fits on no line
_KEPT = "\0"  # stands for a blank that isn't broken at


class Output:
    """Standard output of one command.

    `piped`: standard input holds manifests, so questions go to the terminal itself; `way_out`: the fix of a problem here; `complete`: puts
    this command's flags for configuration and cluster into a text's commands.
    """

    def __init__(self, *, as_json: bool = False, verbose: bool = False, wide: bool = False) -> None:
        self.as_json = as_json
        self.wide = wide
        self.verbose = verbose
        self.piped = False
        self.way_out: Callable[[Problem], str] = lambda problem: problem.fix
        self.complete: Callable[[str], str] = lambda text: text
        self._moving: Any = None

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked."""
        return not self.as_json and sys.stdout.isatty() and (_has_terminal() if self.piped else sys.stdin.isatty())

    @property
    def moves(self) -> bool:
        """Whether a moving line is seen."""
        return not self.as_json and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    @property
    def width(self) -> int | None:
        """Columns of the terminal that standard output is; None: it is none, and lines have any length."""
        return _width(sys.stdout)

    def clean(self, text: str, kept: str = "\n\t") -> str:
        """Return text that may be printed: nothing in it that a terminal would obey, but for what is `kept`."""
        return "".join(char if char.isprintable() or char in kept else char.encode("unicode_escape").decode() for char in text)

    def styled(self, text: str, style: str) -> str:
        """Colour text that is clean, where colour is shown."""
        in_colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        return click.style(text, fg=_COLOURS[style]) if style and in_colour else text

    def line(self, text: str = "", style: str = "", *, err: bool = False, hang: int | None = None, whole: bool = False) -> None:
        """Print one line, whatever is in it, wrapped where a terminal is narrower; nothing in JSON form.

        `hang`: the indent of what is wrapped; None: two more than the line's own. `whole`: not wrapped, so that a command can be copied.
        """
        if not self.as_json:
            width = None if whole else _width(sys.stderr if err else sys.stdout)
            click.echo(self.styled(wrapped(self.clean(text, ""), width, hang), style), err=err)

    def lines(self, text: str, *, whole: bool = True) -> None:
        """Print lines of ours."""
        for line in text.split("\n"):
            self.line(line, whole=whole)

    def detail(self, text: str) -> None:
        """Print a line on -v only."""
        if self.verbose:
            self.line(text, "dim")

    def note(self, text: str) -> None:
        """Print a line for people to standard error, whatever form the output has."""
        click.echo(self.clean(text, ""), err=True)

    def text(self, text: str) -> None:
        """Print a document (YAML, shell) as it is; line breaks and indents are its own."""
        click.echo(self.clean(text), nl=False)

    def document(self, value: Any) -> None:
        """Print a value as JSON."""
        click.echo(json.dumps(plain(value), indent=2))  # ASCII: a terminal obeys some others

    def table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows: a table on a terminal, columns of plain text elsewhere."""
        cleaned = [[self.clean(cell, "") for cell in row] for row in rows]
        if sys.stdout.isatty():
            _rich_table(heads, cleaned)
            return
        widths = [max(len(cell) for cell in column) for column in zip(heads, *cleaned, strict=True)]
        for row in (heads, *cleaned):
            click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())

    def ask(self, text: str, default: str | None) -> str:
        """Ask for a line; return it, or the default where nothing is typed. Raises click.Abort: Ctrl-C, or the terminal is gone."""
        from handler.cli import question

        return question.ask(self.clean(text), default, sys.stdin, sys.stdout)

    def confirm(self, text: str) -> bool:
        """Ask a person; no is the default. Raises as `ask`."""
        from handler.cli import question

        if not self.piped:
            return question.confirm(self.clean(text), sys.stdin, sys.stdout)
        with open(_TERMINAL) as keys, open(_TERMINAL, "w") as shown:  # noqa: PTH123 - a device
            return question.confirm(self.clean(text), keys, shown)

    @contextlib.contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Show a moving line with the time elapsed while something runs; nothing without a terminal."""
        if not self.moves:
            yield
            return
        self._moving = _rich_progress(self.clean(what))
        try:
            with self._moving:
                yield
        finally:
            self._moving = None

    @contextlib.contextmanager
    def still(self) -> Iterator[None]:
        """Take the moving line away while something is printed or asked."""
        if self._moving:
            self._moving.stop()
        try:
            yield
        finally:
            if self._moving:
                self._moving.start()

    @contextlib.contextmanager
    def picture(self) -> Iterator[Callable[[list[tuple[str, str]]], None] | None]:
        """Yield what draws lines (text, style) in the place of those before; None where nothing can be drawn in its place."""
        if self.as_json or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
            yield None
            return
        with _rich_picture() as update:
            width = self.width
            yield lambda lines: update("\n".join(self.styled(wrapped(self.clean(text, ""), width), style) for text, style in lines))


def wrapped(text: str, width: int | None, hang: int | None = None) -> str:
    """Break lines that are longer than a terminal is wide between words. `hang`: see `Output.line`."""
    return "\n".join(part for line in text.split("\n") for part in _broken(line, width, hang))


def _broken(line: str, width: int | None, hang: int | None) -> list[str]:
    if width is None or len(line) <= width:
        return [line]
    text = line.lstrip(" ")
    own = line[: len(line) - len(text)]
    further = " " * min(len(own) + 2 if hang is None else hang, width // 2)
    room = width - len(further)
    whole = _COMMAND.sub(lambda found: found[0].replace(" ", _KEPT) if len(found[0]) <= room else found[0], text)
    lines = textwrap.wrap(whole, width, initial_indent=own, subsequent_indent=further, break_long_words=False, break_on_hyphens=False)
    return [line.replace(_KEPT, " ") for line in lines]


def _width(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    return shutil.get_terminal_size().columns


def _rich_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(head, no_wrap=head == "COMMIT")  # so that it can be copied; the others give way
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)


def _has_terminal() -> bool:
    with contextlib.suppress(OSError), open(_TERMINAL):  # noqa: PTH123 - a device
        return True
    return False


def _rich_progress(what: str) -> contextlib.AbstractContextManager[Any]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=sys.stdout.isatty(),  # else it would go where the line moves
    )
    progress.add_task(escape(what), total=None)
    return progress


@contextlib.contextmanager
def _rich_picture() -> Iterator[Callable[[str], None]]:
    from rich.live import Live
    from rich.text import Text

    with Live(auto_refresh=False) as live:
        yield lambda text: live.update(Text.from_ansi(text), refresh=True)
