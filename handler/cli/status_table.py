"""All targets as a table, a line each, trouble first; and below it what to do about each that is in trouble. Pure.

On a terminal it fits: columns without anything in them are left out, the subject is cut, then the least important columns go. Elsewhere
every column is there, in this order, its cells without a space but for the last one's: a program reads it by fields.
"""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from handler.app.cluster_looks import problem
from handler.app.overview import EXPLAINED, cluster_subject
from handler.app.retired import RetiredTarget
from handler.app.target_row import NOT_KNOWN, TROUBLE, Level, TargetRow
from handler.app.times import brief
from handler.cli import follow_up_commands
from handler.cli.follow_up_commands import NOTHING_GIVEN, GivenFlags
from handler.cli.next_step import complete, is_of_git_host, next_step
from handler.cli.target_page import drift_text
from handler.config.settings import Cluster
from handler.model.advice import Advice, advice
from handler.model.errors import ClusterUnavailable
from handler.model.names import DEFAULT_INSTALLATION
from handler.model.numbers import many
from handler.model.quotation import quoted
from handler.model.to_json import camel, plain
from handler.queues.bulkheads import git_host
from handler.state.record_format import seconds_of, stamp

HEADS = ("TARGET", "PHASE", "HEALTH", "COMMIT", "AGE", "HEAD", "SINCE", "DRIFT", "HELD", "NEXT", "LOOKED", "SUBJECT")
WIDE = (*HEADS[:-1], "PHASE-SINCE", "SERVER", "CLUSTER", "REVISION", "SUBJECT")
NONE = "-"
_LEAVES = ("LOOKED", "NEXT", "AGE", "DRIFT", "HELD", "SUBJECT", "SINCE", "HEAD", "COMMIT")
"""What a narrow terminal doesn't show, in this order."""
_ALWAYS = ("TARGET", "PHASE", "HEALTH", "COMMIT")
_SUBJECT = 12  # characters of a subject below which it isn't worth its place
_GAP = "  "
_STYLES = {
    Level.UNREAD: "bad",
    Level.FAILED: "bad",
    Level.HELD: "warn",
    Level.UNSERVED: "warn",
    Level.OFF: "warn",
    Level.UNFOLLOWED: "warn",
}
Styled = tuple[str, str]


def cells(row: TargetRow) -> dict[str, str]:
    """Return what each column shows of a target."""
    known, newest = row.summary, row.newest
    looked, server = row.pulse.looked(row.looked_after), row.pulse.server(row.looked_after)
    behind, info = row.is_behind, newest.info if newest else None
    found = {
        "TARGET": row.target.name,
        "PHASE": row.phase,
        "HEALTH": known.health if row.recorded else "",
        "COMMIT": known.commit[:8],
        "AGE": _age(known.applied, row.now),
        "HEAD": newest.commit[:8] if newest and behind else "?" if newest and newest.trouble else "",
        "SINCE": brief(row.now - info.time) if behind and info else "",
        "DRIFT": str(known.drifted) if known.drifted else "",
        "HELD": "yes" if known.held else "",
        "NEXT": _next(row),
        "LOOKED": brief(row.now - looked) if looked else "",
        "PHASE-SINCE": _age(known.since, row.now),
        "SERVER": server.name if server else "",
        "CLUSTER": row.target.cluster.name.replace(" ", "_"),
        "REVISION": str(row.target.revision).replace(" ", "_"),
        "SUBJECT": known.subject or _instances(row),
    }
    return {name: text or NONE for name, text in found.items()}


def _instances(row: TargetRow) -> str:
    """Say how many instances a template has, and how many need a person."""
    if row.instances is None:
        return ""
    return many(row.instances, "instance") + (f", {row.unwell} not well" if row.unwell else "")


def _age(at: str, now: float) -> str:
    return brief(now - seconds_of(at)) if at else ""


def _next(row: TargetRow) -> str:
    at = row.summary.next_try
    return "" if not at or row.unserved else brief(seconds_of(at) - row.now) if seconds_of(at) > row.now else "now"


def table(rows: Sequence[TargetRow], *, width: int | None, wide: bool = False) -> Iterator[Styled]:
    """Yield the lines, each with its style. `width`: the terminal's columns; None: there is no terminal. `wide`: with more columns."""
    found = [cells(row) for row in rows]
    heads = list(WIDE if wide else HEADS)
    if width is not None and not wide:
        heads = [head for head in heads if head in _ALWAYS or any(each[head] != NONE for each in found)]
        heads = _fitting(heads, found, width)
    sizes = {head: _size(head, found) for head in heads}
    if width is not None and not wide and heads[-1] == "SUBJECT":
        sizes["SUBJECT"] = min(sizes["SUBJECT"], width - sum(sizes[head] + len(_GAP) for head in heads[:-1]))
    styles = ("dim", *(_STYLES.get(row.level, "") for row in rows))
    for line, style in zip(({head: head for head in heads}, *found), styles, strict=True):
        text = _GAP.join(_padded(line[head], sizes[head]) for head in heads).rstrip()
        yield (text if width is None or wide else _cut(text, width)), style


def _fitting(heads: list[str], found: Sequence[dict[str, str]], width: int) -> list[str]:
    """Return the columns that fit, the subject cut as far as that makes sense."""
    kept = list(heads)
    for leaves in ("", *_LEAVES):
        kept = [head for head in kept if head != leaves]
        least = {head: min(_size(head, found), _SUBJECT) if head == "SUBJECT" else _size(head, found) for head in kept}
        if sum(least.values()) + len(_GAP) * (len(kept) - 1) <= width:
            break
    return kept


def _size(head: str, found: Sequence[dict[str, str]]) -> int:
    return max([len(head), *(_columns(each[head]) for each in found)])


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 0 if unicodedata.combining(char) else 1 for char in text)


def _padded(text: str, size: int) -> str:
    text = _cut(text, size)
    return text + " " * (size - _columns(text))


def _cut(text: str, size: int) -> str:
    if _columns(text) <= size:
        return text
    while text and _columns(text) > size - 1:
        text = text[:-1]
    return f"{text}…"


# --- what to do
def hints(rows: Sequence[TargetRow], given: GivenFlags) -> Iterator[Styled]:
    """Yield what is wrong and the next command: once for a cluster that doesn't answer, and for each target in trouble."""
    shared: dict[tuple[Cluster, str], list[TargetRow]] = defaultdict(list)
    for row in rows:
        if row.trouble and row.recorded is None and not row.whole:
            shared[row.target.cluster, str(row.trouble)].append(row)
    for (cluster, _), group in shared.items():
        yield from _of_cluster(cluster, group, given)
    mute: dict[tuple[str, str], list[TargetRow]] = defaultdict(list)
    for row in rows:
        if row.newest and row.newest.trouble:
            mute[git_host(row.target), row.newest.trouble.code].append(row)
    for (host, _), group in mute.items():
        yield from _of_git_host(host, group)
    silent = {row.target.name for group in shared.values() for row in group}
    silent |= {row.target.name for row in rows if row.state and not row.trouble and is_of_git_host(row.state.status, row.newest)}
    shown = [row for row in rows if row.level in TROUBLE | {Level.UNREAD} and row.target.name not in silent]
    for row in shown[:EXPLAINED]:
        yield from _of_target(row, given)
    if len(shown) > EXPLAINED:
        yield f"and {len(shown) - EXPLAINED} more in trouble: anneal status TARGET", ""
    yield from _stopped(rows, given)
    if left := [row for row in rows if row.unserved and row.recorded and row.level not in TROUBLE]:
        command = given.complete(advice("anneal run --trigger interval"), left[0].target.cluster)
        yield advice("no server follows git for {}; this one does: `{text}`", _named(left), command), "dim"


def retired_lines(gone: Sequence[RetiredTarget], given: GivenFlags) -> Iterator[Styled]:
    """Yield the targets that aren't configured any more, each with what shows its end; the instances of one template together."""
    whole: dict[tuple[str, str], list[RetiredTarget]] = {}
    for each in gone:
        if each.next_of_all:
            whole.setdefault((each.template, each.cluster), []).append(each)
    for instances in whole.values():
        yield from _retired_template(instances, given)
    for each in gone:
        if each.next_of_all or (each.target, each.cluster) in whole:  # its own record ends with them
            continue
        yield f"{_moved(each)}: {each}: {f'target {each.taken_by} takes over' if each.taken_by else _way(each, 'it has')}", "warn"
        yield f"    {given.complete(each.next, Cluster())}", "head"
    if any(each.stranger for each in gone):
        lines = f"`installation: NAME` and `installationFrom: {DEFAULT_INSTALLATION}`"
        yield f"to have a name of its own, write {lines} into anneal.yaml: each target's next run takes its record along", "warn"


def _moved(each: RetiredTarget) -> str:
    return f"retired here, for it was moved to cluster {each.moved_to}" if each.moved_to else "retired"


def _way(each: RetiredTarget, what: str) -> str:
    if each.stranger:
        return f"or another configuration's, which has no `installation` of its own either; to see what {what}, and of which repository:"
    return f"what {what} stays; to see what --prune deletes (--keep lets go of it):"


def _retired_template(instances: Sequence[RetiredTarget], given: GivenFlags) -> Iterator[Styled]:
    first = instances[0]
    names = f"{', '.join(each.target for each in instances[:3])}{' and more' if len(instances) > 3 else ''}"
    place = f"{many(len(instances), 'record')} in namespace {first.namespace} of cluster {first.cluster}"
    which = f"the instances of {first.template} ({names}; {place})"
    yield f"{_moved(first)}: {which}: {_way(first, 'they have')}", "warn"
    yield f"    {given.complete(first.next_of_all, Cluster())}", "head"


def retired_facts(each: RetiredTarget, given: GivenFlags) -> dict[str, Any]:
    """Return a retired target as JSON."""
    return {**plain(each), **{key: given.complete(text, Cluster()) for key, text in (("next", each.next), ("nextOfAll", each.next_of_all))}}


def _stopped(rows: Sequence[TargetRow], given: GivenFlags) -> Iterator[Styled]:
    well = [row for row in rows if row.level not in TROUBLE | NOT_KNOWN]
    suspended = [row for row in well if row.summary.suspended and not row.target.suspend]
    pinned = [row for row in well if row.summary.pin and row not in suspended]
    for word, verb, group in (("suspended", "resume", suspended), ("pinned", "unpin", pinned)):
        if group:
            command = given.complete(advice("anneal {text} {}", Advice(verb), group[0].target.name), group[0].target.cluster)
            yield f"{word} ({_named(group)}); to go on: `{command}`", "dim"


def _of_cluster(cluster: Cluster, group: Sequence[TargetRow], given: GivenFlags) -> Iterator[Styled]:
    subject, trouble = cluster_subject(cluster), group[0].trouble
    yield f"{subject} ({_named(group)}): {str(trouble).removeprefix(f'{subject}: ')}", "bad"
    check = given.complete(advice("anneal check {}", group[0].target.name), cluster)
    yield f"    {follow_up_commands.reaching(cluster, given.kubectl) if isinstance(trouble, ClusterUnavailable) else check}", "head"


def _of_git_host(host: str, group: Sequence[TargetRow]) -> Iterator[Styled]:
    newest = group[0].newest
    yield f"git host {host} ({_named(group)}): {newest.trouble if newest else ''}", "warn"
    yield f"    {follow_up_commands.asking(group[0].target.repository.url)}", "head"


def _named(group: Sequence[TargetRow]) -> str:
    names = ", ".join(row.target.name for row in group[:5])
    return f"{many(len(group), 'target')}: {names}{', …' if len(group) > 5 else ''}"


def _of_target(row: TargetRow, given: GivenFlags) -> Iterator[Styled]:
    name, style = row.target.name, _STYLES.get(row.level, "")
    page = complete(advice("anneal status {}", name), row, given)
    if not row.whole and row.recorded:
        text, command = f"{row.phase}, {row.summary.health}", page
    else:
        step = next_step(row, given)
        text, command = "; ".join(part for part in (_cause(row), _alone(step.text)) if part), step.command or page
    yield f"{name}: {text}", style
    yield f"    {command}", "head"


def _alone(advice: str) -> str:
    return advice.replace("do what is said below", "mend that").replace(", as said below", "").replace(" as said below", "")


def _cause(row: TargetRow) -> str:
    state = row.state
    if state is None or row.trouble:
        return ""
    if state.status.phase in ("failed", "pruning"):
        return quoted(state.status.message.partition("\n")[0])
    if state.held:
        return quoted(state.held.reasons[0]) if state.held.reasons else ""
    if state.health.worst:
        return quoted(state.health.worst[0])
    if state.drift:
        return drift_text(state.drift[0])
    return quoted(state.pin.reason) if state.pin and state.pin.automatic else ""


# --- as JSON
def facts(row: TargetRow, given: GivenFlags = NOTHING_GIVEN) -> dict[str, Any]:
    """Return a row as JSON. `given`: the flags of this command."""
    known, newest, step = row.summary, row.newest, next_step(row, given) if row.whole or not row.recorded else None
    info = newest.info if newest else None
    head = {"commit": newest.commit, "subject": info.subject if info else "", "time": stamp(info.time) if info else ""} if newest else None
    names = ("commit", "subject", "applied", "health", "health_since", "attempt", "pin", "next_try", "drift_due", "held", "since")
    known_facts = {camel(name): getattr(known, name) for name in names} | ({"nextTry": ""} if row.unserved else {})
    return {
        "target": row.target.name,
        "trouble": row.level in TROUBLE | NOT_KNOWN,
        "level": row.level.name.lower(),
        "phase": row.phase,
        **known_facts,
        "drifted": known.drifted,
        "orphans": known.orphans,
        "cluster": row.target.cluster.name,
        "head": head and {**head, "differs": row.is_behind, "error": problem(newest.trouble) if newest and newest.trouble else None},
        **({"promotion": [each.facts() for each in newest.awaited] if newest else []} if row.target.revision.promoted else {}),
        "server": server_facts(row),
        "next": {"text": step.text, "command": step.command} if step else None,
        "error": problem(row.trouble) if row.trouble else None,
    }


def server_facts(row: TargetRow) -> dict[str, Any]:
    """Return what the heartbeat says of a target: whether a server looks after it (None: not known), which, and when one looked."""
    pulse, looked = row.pulse, row.pulse.looked(row.looked_after)
    server, last = pulse.server(row.looked_after), pulse.last
    return {
        "runs": row.is_served,
        "name": server.name if server else "",
        "version": server.version if server else "",
        "looked": stamp(looked) if looked else "",
        "lastSeen": stamp(last.renewed) if last else "",
    }
