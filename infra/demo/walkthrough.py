"""What every step needs: push and deliver and wait for the record; show a command and what it printed."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass, field

from infra.demo.cluster import Thing
from infra.demo.configuration import USUAL, Clock, Further, configuration
from infra.demo.github import Push, deliver
from infra.demo.narration import DemoFailed, Narrator
from infra.demo.repository import Commit, Repository
from infra.demo.runs import Line
from infra.demo.stage import Stage

SHOP = "shop"
_ENDS = {"applied": "recorded", "unchanged": "recorded", "failed": "refused", "held": "held"}


def milliseconds(seconds: float) -> str:
    """Write a duration: 8 ms, 2.4 s."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def counted(line: Line) -> str:
    """Write what a run did: 25 created, 2 unchanged; of one that wrote nothing, why."""
    if line.outcome == "held":
        return line.note.partition(": ")[2]
    if line.problems:
        return f"{len(line.problems)} mistakes, nothing written"
    return ", ".join(f"{number} {word}" for word, number in line.counts.items()) or line.outcome


@dataclass(slots=True)
class Walkthrough:
    """The stage, the shop's repository and the voice; `last` is the webhook that was delivered last, `clock` how `anneal serve` runs.

    `further`: the targets beside the shop's.
    """

    stage: Stage
    repository: Repository
    voice: Narrator
    last: Push | None = None
    clock: Clock = USUAL
    further: tuple[Further, ...] = ()
    _applysets: dict[str, str] = field(default_factory=dict)

    # --- git
    def push(self, commit: Commit, target: str = SHOP) -> Line:
        """Push to main, deliver the webhook, and return the end of the target's run that came of it, with the three times printed."""
        mark = self.stage.log.mark()
        pushed, acknowledged = self.send(commit)
        line = self.run_of(mark, commit, target)
        end = _ENDS.get(line.outcome, line.outcome)
        recorded = milliseconds(line.at - pushed)
        self.voice.timing(f"pushed → webhook acknowledged {milliseconds(acknowledged)} → {end} {recorded}   ({counted(line)})")
        return line

    def send(self, commit: Commit) -> tuple[float, float]:
        """Push to main and deliver the webhook; returns when it was pushed, and the seconds until its 202. No run is waited for."""
        self.voice.command(f"git push   # {commit.short} {commit.subject}")
        self.repository.push()
        pushed = time.time()
        self.last = Push(self.repository.url, commit.before, commit.sha, commit.subject, delivery=f"demo-{commit.sha[:12]}")
        self.deliver(self.last)
        return pushed, time.time() - pushed

    def deliver(self, push: Push) -> float:
        """Deliver a webhook and return the seconds until its 202. Raises DemoFailed."""
        answer = deliver(self.stage.address, self.stage.secret, push)
        if answer.status != 202:
            raise DemoFailed(f"the webhook was answered {answer.status}: {answer.document}")
        return answer.seconds

    def redeliver(self) -> tuple[str, float]:
        """Deliver the last webhook once more; returns its id and the seconds until its 202."""
        if self.last is None:
            raise DemoFailed("nothing was delivered yet")
        return self.last.delivery, self.deliver(self.last)

    def run_of(self, mark: int, commit: Commit, target: str = SHOP) -> Line:
        """Return the end of a target's first run of a commit after a mark."""

        def wanted(line: Line) -> bool:
            ended = line.message == "run" and line.outcome not in ("busy", "superseded", "lagging")
            return ended and (line.target, line.commit) == (target, commit.sha)

        return self.stage.log.wait(mark, wanted, f"a run of {commit.short}", self.stage.serving)

    def edit(self, path: str, old: str, new: str, root: str = "deploy") -> None:
        """Change a file in one place, and tell."""
        path = f"{root}/{path}"
        self.repository.replace(path, old, new)
        self.voice.say(f"{path}: {old} → {new}")

    # --- looking
    def kubectl(self, line: str, *, quiet: bool = False) -> str:
        """Run a kubectl command; shown with its output, but for `quiet` without."""
        self.voice.command(f"kubectl {line}")
        out = self.stage.kubectl.run(*shlex.split(line))
        if not quiet:
            self.voice.output(out)
        return out

    def anneal(self, line: str, *, code: int = 0, show: int = 40) -> str:
        """Run an `anneal` command that must exit with `code`; shown with the first `show` lines of its output."""
        self.voice.command(f"anneal {line}")
        done = self.stage.anneal(*shlex.split(line))
        said = done.stdout + done.stderr
        if done.returncode != code:
            raise DemoFailed(f"anneal {line}: exit {done.returncode}, not {code}:\n{said}")
        lines = said.splitlines()
        self.voice.output("\n".join(lines[:show]))
        if len(lines) > show:
            self.voice.output(f"… {len(lines) - show} lines more")
        return said

    def members(self, target: str = SHOP) -> dict[str, Thing]:
        """Return a target's objects as kubectl sees them, once it is there."""
        kubectl, names = self.stage.kubectl, self.stage.names
        self._applysets[target] = self._applysets.get(target) or kubectl.applyset(names, target)
        return kubectl.members(names, self._applysets[target])

    def is_recorded(self, commit: Commit, target: str = SHOP) -> bool:
        """Whether the target's record in the cluster names this commit."""
        return self.stage.kubectl.recorded_commit(self.stage.names, target) == commit.sha

    def settle(self) -> None:
        """Wait until the demo's own control plane has rolled everything out; a foreign cluster may take its time to pull images."""
        if not self.stage.own:
            return
        for namespace in (self.stage.names.front, self.stage.names.back):
            self.stage.kubectl.run("wait", "deployment", "--all", "--for=condition=Available", "--timeout=60s", "-n", namespace)
        self.stage.kubectl.run("wait", "job", "--all", "--for=condition=Complete", "--timeout=60s", "-n", self.stage.names.back)

    def add(self, target: Further) -> None:
        """Add a target to the configuration, tell, and start `anneal serve` anew with it."""
        self.further += (target,)
        self.voice.say("anneal.yaml gets another target, of the same repository, and anneal serve is started anew:")
        self.voice.output("\n".join(target.lines(self.stage, self.repository)))
        self.serve(self.clock)

    def serve(self, clock: Clock) -> float:
        """Start `anneal serve`, ending the one that runs; returns the seconds the start took."""
        self.stage.stop_anneal()
        self.clock = clock
        return self.stage.start_anneal(configuration(self.stage, self.repository, clock, self.further))

    def at(self, clock: Clock) -> None:
        """Let `anneal serve` run by a clock: it is started anew if it runs by another."""
        if clock == self.clock:
            return
        self.serve(clock)
        if clock == USUAL:
            known = "It keeps nothing of its own: all it knows is in git and in the cluster."
            self.voice.say(f"anneal serve is started anew with its usual intervals. {known}")
        else:
            often = f"a drift run every {clock.drift} (30m by default) and a tick every {clock.interval} (5m)"
            self.voice.say(f"anneal serve is started anew, with {often}.")
