"""The table of `check` and `doctor`: a row for each thing that was looked at, printed at once; below it the way out, to be copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Literal

from handler.cli.output import Output
from handler.cli.reports import mended
from handler.model.errors import AnnealError, Problem

Verdict = Literal["ok", "warning", "failed", "skipped"]
_STYLES: dict[Verdict, str] = {"ok": "good", "warning": "warn", "failed": "bad", "skipped": "dim"}
_SUBJECT, _VERDICT = 15, 9
_OR = "; or "


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One thing. `target`: the one it is about, empty: all; `seen`: of what is well, or kept from being looked at."""

    subject: str
    verdict: Verdict
    seen: str = ""
    problems: Sequence[Problem] = ()
    target: str = ""


@dataclass
class Findings:
    """Prints rows as they come, and keeps all for the JSON form. `target`: what the next rows are about."""

    output: Output
    rows: list[CheckRow] = field(default_factory=list)
    target: str = ""

    @property
    def failed(self) -> bool:
        """Whether anything isn't as it must be."""
        return any(row.verdict == "failed" for row in self.rows)

    def about(self, target: str, *, heading: bool) -> None:
        """Let the next rows be a target's. `heading`: it isn't the only one."""
        self.target = target
        if heading:
            self.output.line(target, "head")

    def step(self, subject: str, look: Callable[[], str]) -> bool:
        """Look at one thing; note what it found, or every problem. Returns whether it is well."""
        try:
            self.good(subject, look())
        except AnnealError as error:
            self.bad(subject, error.problems)
            return False
        return True

    def good(self, subject: str, seen: str) -> None:
        """Note what is well."""
        self._add(CheckRow(subject, "ok", seen))

    def bad(self, subject: str, problems: Sequence[Problem]) -> None:
        """Note what isn't, with the way out of each problem."""
        self._add(CheckRow(subject, "failed", problems=tuple(mended(self.output, problems))))

    def warn(self, subject: str, seen: str, fix: str) -> None:
        """Note what isn't as it should be, but keeps nothing from working."""
        self._add(CheckRow(subject, "warning", problems=(Problem(subject, seen, fix=fix),)))

    def skip(self, subject: str, why: str) -> None:
        """Note what wasn't looked at."""
        self._add(CheckRow(subject, "skipped", why))

    def document(self) -> None:
        """Print all as JSON, in that form."""
        if self.output.as_json:
            self.output.document({"ok": not self.failed, "checks": self.rows})

    def _add(self, row: CheckRow) -> None:
        if not self.rows:
            self.output.line(f"{'SUBJECT':{_SUBJECT}}{'VERDICT':{_VERDICT}}SEEN", "dim")
        self.rows.append(replace(row, target=self.target))
        first = f"{row.subject:{_SUBJECT - 1}} {row.verdict:{_VERDICT - 1}} "
        texts = [_text(row, problem) for problem in row.problems] or [row.seen]
        ways_out = [self.output.complete(problem.fix) for problem in row.problems]
        for number, text in enumerate(texts):
            self.output.line((first if not number else " " * len(first)) + text, _STYLES[row.verdict], hang=len(first))
            fix = ways_out[number] if ways_out else ""
            if fix and fix not in ways_out[number + 1 :]:  # what cures several problems stands once, below the last
                for mark, way in zip_longest("→", ways(fix), fillvalue=" "):
                    self.output.lines(f"    {mark} {way}".replace("\n", "\n      "))


def ways(fix: str) -> list[str]:
    """Return the alternatives of a way out, a line each."""
    first, *others = fix.split(_OR)
    return [first, *(f"or {each}" for each in others)] if fix else []


def _text(row: CheckRow, problem: Problem) -> str:
    where = f"{problem.place}: " if problem.place else ""
    return where + (problem.message if problem.subject == row.subject else f"{problem.subject}: {problem.message}")
