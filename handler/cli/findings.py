"""One line for each thing that was looked at: found well, or not, with the way out. For `check` and `doctor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from handler.cli.printing import Output
from handler.model.errors import AnnealError, Problem


class Findings:
    """Prints as it goes and keeps all for the JSON form."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._rows: list[dict[str, object]] = []
        self.failed = False

    def step(self, name: str, look: Callable[[], str]) -> bool:
        """Look at one thing; say what it found, or every problem. Returns whether it is well."""
        try:
            self.good(name, look())
        except AnnealError as error:
            self.bad(name, error.problems)
            return False
        return True

    def good(self, name: str, text: str) -> None:
        """Note what is well."""
        self._rows.append({"name": name, "ok": True, "message": text, "problems": []})
        self._output.line(f"✓ {name}: {text}", "good")

    def bad(self, name: str, problems: Sequence[Problem]) -> None:
        """Note what isn't, with the way out of each problem."""
        self.failed = True
        self._rows.append({"name": name, "ok": False, "message": "", "problems": problems})
        for number, problem in enumerate(problems):
            where = f"{problem.place}: " if problem.place else ""
            head = f"✗ {name}: " if not number else "    "
            self._output.line(f"{head}{where}{problem.subject}: {problem.message}", "bad")
            if problem.fix:
                self._output.line(f"    → {problem.fix}")

    def warn(self, name: str, text: str, fix: str) -> None:
        """Note what isn't as it should be, but keeps nothing from working."""
        self._rows.append({"name": name, "ok": True, "message": text, "fix": fix, "problems": []})
        self._output.line(f"! {name}: {text}", "warn")
        self._output.line(f"    → {fix}")

    def skip(self, name: str, why: str) -> None:
        """Note what couldn't be looked at."""
        self._rows.append({"name": name, "ok": None, "message": why, "problems": []})
        self._output.line(f"- {name}: {why}", "dim")

    def document(self) -> None:
        """Print all as JSON, in that form."""
        if self._output.as_json:
            self._output.document({"ok": not self.failed, "steps": self._rows})
