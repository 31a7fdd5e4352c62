"""What `anneal gap` and `anneal orphans` share: looking at targets a few at once, and what is printed about each look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from handler.cli import reports
from handler.cli.output import Output
from handler.cli.session import Session
from handler.inspect.gap import Gap
from handler.inspect.inspector import Inspector
from handler.inspect.look import Seen
from handler.inspect.orphans import Orphans
from handler.inspect.plan_questions import AT_ONCE, Json, facts
from handler.inspect.signs import Sign
from handler.model.advice import Advice, advice
from handler.model.result import Outcome

DIFFERS = 2
F = TypeVar("F", Gap, Orphans)
S = TypeVar("S", bound=str)


@contextmanager
def look_at(session: Session, target: str | None, ask: Callable[[Inspector, str], F]) -> Iterator[Iterator[F]]:
    """Look at the chosen targets, a few at once; what is found comes in their order."""
    chosen = session.all_or(target)
    session.sandbox.weak = True  # it only shows
    session.sandbox.start()
    inspector = Inspector(session.handler)
    with session.output.working("looking"), ThreadPoolExecutor(AT_ONCE) as pool:
        yield pool.map(lambda each: ask(inspector, each.name), chosen)


def print_looks(output: Output, target: str | None, found: Iterator[F], show: Callable[[Output, F], None]) -> list[F]:
    """Print each look by `show`, or all as a document; return them, their problems with the way out that a shell takes."""
    seen = []
    for each in found:
        mended = replace(each, seen=replace(each.seen, problems=tuple(reports.mended(output, each.seen.problems))))
        seen.append(mended)
        with output.still():
            show(output, each)
    if output.as_json:
        told: list[Json] = [facts(each) for each in seen]
        output.document(told[0] if target else {"targets": told})
    return seen


def exit_code_of(found: Sequence[Gap | Orphans], *, differs: bool) -> int:
    """Return the exit code: of the worst look; of all that came out well, whether they differ."""
    codes = {reports.EXIT[Outcome(each.seen.outcome)] for each in found}
    worst = next((code for code in (reports.FAILED, reports.BUSY) if code in codes), reports.DONE_CODE)
    return worst or (DIFFERS if differs else reports.DONE_CODE)


def failed(output: Output, seen: Seen) -> bool:
    """Print why there is no plan; say whether there is none."""
    if seen.outcome == Outcome.PLANNED:
        return False
    reports.problems(output, seen.problems)
    output.line(f"{seen.target}: {seen.outcome}{'' if seen.problems else f': {seen.message}'}", "bad")
    return True


def style_of(sign: Sign) -> str:
    """Return the colour of a state as `Output` calls it."""
    return "dim" if sign.tone == "quiet" else sign.tone


def named(counts: Mapping[str, int], signs: Mapping[S, Sign]) -> dict[str, int]:
    """Return how many there are of each state, by its word."""
    return {sign.word: counts[state] for state, sign in signs.items()}


def print_end(output: Output, seen: Seen, counts: dict[str, int], more: str = "", nothing: str = "nothing") -> None:
    """Print the commit, how many there are of what, and the notes."""
    said = ", ".join(f"{number} {word}" for word, number in counts.items() if number) or nothing
    aim = f" ({seen.aim})" if seen.aim != "head" else ""
    output.line(f"{seen.target} at {seen.commit[:12]}{aim}: {said}{more}", "head")
    for note in seen.notes:
        output.detail(f"note: {output.complete(note)}")


def print_next(output: Output, seen: Seen, does: str = "apply") -> None:
    """Print what a guard says, and the command (`does`) that carries out what was shown, or allows it."""
    at = ["--commit", seen.commit] if seen.aim == "commit" else []
    held, then = seen.hold, advice("anneal {text} {}{words}", Advice(does), seen.target, at)
    if held is None:
        output.line(f"next: {output.complete(then)}", whole=True)
        return
    output.line(f"{seen.target} waits for approval:" if held["recorded"] else "a run holds that until it is approved:", "warn")
    for reason in held["reasons"]:
        output.line(f"  {reason}")
    allow = output.complete(advice("anneal approve {} {}", seen.target, held["id"]))
    output.line(f"allow exactly that: {allow}" if held["recorded"] else f"next: {output.complete(then)}, then {allow}", whole=True)
