"""A person at 3 am: what `anneal status` shows of a target in trouble, and a shell in which exactly that is typed."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner, Result

from handler.cli.group import anneal
from tests.e2e.cli.conftest import Shop
from tests.e2e.cli.status_server import server
from tests.e2e.serve_process import ROOT
from tests.in_process import typed_in
from tests.kubectl import Kubectl
from tests.patience import until
from tests.terminal import typed

INDENT = "    "
WELL, UNKNOWN, TROUBLE, BUSY = 0, 1, 2, 4


@dataclass(frozen=True)
class Told:
    """What the table says of a trouble. `command`: in the line below; `then`: the commands that the text names besides."""

    text: str
    command: str

    @property
    def then(self) -> list[str]:
        """The commands between backticks."""
        return re.findall(r"`(anneal [^`]+)`", self.text)


@dataclass(frozen=True)
class Night:
    """A shop and the shell of a person who looks after it.

    `served`: whether a server looks after it, too; `flags`: with which each status is asked; `blank`: the shell's environment knows neither
    the configuration nor the cluster.
    """

    shop: Shop
    kubectl: Kubectl
    place: Path
    served: bool = False
    flags: Sequence[str] = field(default=())
    blank: bool = False

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Let a server look after the shop, where one is meant to; it has begun to."""
        if not self.served:
            yield
            return
        with server(self.shop, "run", "shop", "--trigger", "interval", "--interval", "2s") as log:
            until(lambda: self.shop.cli.json("status", "shop")["server"]["runs"], log.read_text)
            yield

    def brought(self, code: int = WELL) -> None:
        """Have what git has brought to the cluster, by hand where no server does it."""
        if not self.served:
            self.shop.cli("apply", "shop", "-y", code=code)

    # --- what is shown
    def says(self, *words: str, codes: Sequence[int] = (TROUBLE,)) -> Told:
        """Wait until the table has a hint with all these words, and the page shows the same command; return the hint."""
        found: list[Told] = []

        def holds() -> bool:
            shown = self._asked("--exit-code")
            hints = self._hints(shown.stdout) if shown.exit_code in codes else []
            found[:] = [hint for hint in hints if all(word in hint.text for word in words)]
            return bool(found) and any(line == INDENT + found[0].command for line in self.page().splitlines())

        until(holds, lambda: f"{words}:\n{self._asked('--exit-code').output}\n{self.page()}")
        return found[0]

    def page(self) -> str:
        """Return what is shown of the shop alone."""
        return self._asked("shop").stdout

    def is_well(self) -> None:
        """Wait until status says that all is well; where no server would better anything it is so now."""
        code: Callable[[], int] = lambda: self._asked("--exit-code").exit_code  # noqa: E731 - asked twice
        assert self.served or code() == WELL, self._asked("--exit-code").output
        until(lambda: code() == WELL, lambda: f"{self._asked('--exit-code').output}\n{self.page()}")

    def _asked(self, *arguments: str) -> Result:
        return CliRunner(env={**dict.fromkeys(("ANNEAL_CONFIG", "KUBECONFIG")), **self._own()}).invoke(
            anneal, ["status", *self.flags, *arguments]
        )

    def _hints(self, shown: str) -> list[Told]:
        lines = shown.partition("\n\n")[2].splitlines()
        below = itertools.pairwise(lines)
        return [Told(text, command.removeprefix(INDENT)) for text, command in below if command.startswith(INDENT) > text.startswith(INDENT)]

    # --- the shell
    def types(
        self, command: str, codes: Sequence[int] = (WELL,), dialogue: Iterable[tuple[str, str]] = (), kubeconfig: Path | None = None
    ) -> str:
        """Type a command as it was shown; return what it printed.

        `codes`: what it may exit with; `dialogue`: what it asks on its terminal, and the answers; `kubeconfig`: another person's.
        """
        environ = self.environ()
        if kubeconfig:
            environ["KUBECONFIG"] = str(kubeconfig)
        if dialogue:
            code, shown = typed(["bash", "-c", command], dialogue, environ=environ, cwd=self.place)
        else:
            done = typed_in(command, environ, self.place)
            code, shown = done.returncode, done.stdout + done.stderr
        assert code in codes, f"{command}: {code}\n{shown}"
        return shown

    def again(self, command: str) -> None:
        """Type the command that tries once more; where a server works on the target just now, it is asked to."""
        self.types(command, (WELL, BUSY) if self.served else (WELL,))

    def looks_again(self) -> None:
        """Type what status asks for after an attempt that another run began: what that one had on the wire may have come late."""
        told = self.says("live is to be looked at again", "no server has ever looked after it")
        until(lambda: "looked at again at once" in self.page(), self.page)
        self.types(told.command)

    def environ(self) -> dict[str, str]:
        """Return the shell's environment: Anneal and kubectl are found in it."""
        programs = self.place / "bin"
        if not programs.exists():
            programs.mkdir()
            (programs / "kubectl").symlink_to(self.kubectl.program)
            (programs / "anneal").write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m handler "$@"\n')
            (programs / "anneal").chmod(0o755)
        inherited = {name: value for name, value in os.environ.items() if name not in ("ANNEAL_CONFIG", "KUBECONFIG")}
        return {**inherited, "PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(self.place), **self._own()}

    def _own(self) -> dict[str, str]:
        known = {"ANNEAL_CONFIG": str(self.shop.cli.config), "KUBECONFIG": str(self.shop.cli.kubeconfig)}
        return {**({} if self.blank else known), **self.shop.cli.environ}
