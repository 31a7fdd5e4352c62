"""`anneal orphans`: what the next run deletes and why, what keeps the rest, and what a guard holds. It writes nothing."""

from __future__ import annotations

from handler.cli.live_look import exit_code_of, failed, look_at, named, print_end, print_looks, print_next, style_of
from handler.cli.output import Output
from handler.cli.session import Session
from handler.inspect.orphans import LiveOrphan, Orphans
from handler.inspect.signs import FATES, Fate


def orphans(session: Session, target: str | None, exit_code: bool) -> int:
    """Show what the next run of TARGET, or of all, that compares live deletes and why; what keeps the rest, and what a guard holds."""
    with look_at(session, target, lambda inspector, name: inspector.orphans(name)) as found:
        seen = print_looks(session.output, target, found, _orphans)
    going = any(each.counts[Fate.DELETED] or each.counts[Fate.RECREATED] for each in seen)
    return exit_code_of(seen, differs=exit_code and going)


def _orphans(output: Output, found: Orphans) -> None:
    if failed(output, found.seen):
        return
    for each in found.orphans:
        _orphan(output, each)
    print_end(output, found.seen, named(found.counts, FATES), nothing="no orphans")
    if found.counts[Fate.DELETED] + found.counts[Fate.RECREATED]:
        print_next(output, found.seen, _does(found))


def _does(found: Orphans) -> str:
    """Return the command that deletes: an apply leaves exclusive namespaces to drift runs, prune doesn't."""
    return "prune" if any(each.stays for each in found.orphans if each.fate is Fate.DELETED) else "apply"


def _orphan(output: Output, each: LiveOrphan) -> None:
    sign = FATES[each.fate]
    marks = (
        "held" if each.held else "",
        each.reason,
        f"since {each.since}" if each.since and each.since not in each.reason else "",
        f"to keep it: {each.stays}" if each.stays else "",
        f"finalizers: {', '.join(each.finalizers)}" if each.finalizers else "",
    )
    notes = "; ".join(filter(None, marks))
    output.line(f"{sign.sign} {sign.word:10} {each.object}{f'  ({notes})' if notes else ''}", style_of(sign))
