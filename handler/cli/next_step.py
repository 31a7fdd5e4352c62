"""What to do next about a target: the one sentence, and the exact command where there is one, that `status` leads with. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from handler.app.target_row import NewestCommit, TargetRow
from handler.app.times import ago, span, until
from handler.cli import follow_up_commands
from handler.cli.follow_up_commands import NOTHING_GIVEN, GivenFlags
from handler.config.settings import Target
from handler.config.value_formats import FORMS
from handler.engine.run.readiness import allowing
from handler.health.kinds.pods import WITH_PODS
from handler.model.advice import Advice, advice, together
from handler.model.errors import AccessDenied, ClusterUnavailable, QuotaExceeded, RolloutFailed, SecretUnavailable, TargetMoved
from handler.model.health import HealthState
from handler.model.names import kubectl
from handler.model.numbers import many
from handler.model.plan import Action
from handler.model.quotation import quoted
from handler.plan.admission import allows
from handler.state.record import Drift, Orphan, RunStatus, State, TargetHealth
from handler.state.record_values import AS_CONFIGURED, Obstacle
from handler.state.run_history import PRUNING, ROLLING
from handler.state.suspension import CONFIGURED, suspension

_NAMED = 3  # things that a refusal waits for, of which advice names so many
_GONE = ": is not there"
_WITH_LOGS = frozenset(each.kind for each in WITH_PODS)


@dataclass(frozen=True, slots=True)
class NextStep:
    """One next step. `command` is empty where nothing can be typed; `urgent`: a person must act."""

    text: str
    command: str = ""
    urgent: bool = True


_FIX = NextStep("fix the commit as said below, and push")
_CONFIGURED = NextStep("the configuration suspends it; to go on, set `suspend: false` in anneal.yaml")


def next_step(row: TargetRow, given: GivenFlags = NOTHING_GIVEN) -> NextStep:
    """Return what to do next, the most urgent thing first. `given`: the flags of this command."""
    step = _next_step(row, given)
    step = _without_configuration(step) if row.target.repository.is_directory else step
    return replace(step, text=complete(step.text, row, given), command=complete(step.command, row, given))


def complete(text: str, row: TargetRow, given: GivenFlags) -> str:
    """Return an Advice whose commands reach the same configuration and cluster as this one; no word of a record is completed."""
    at_home = row.state is not None and row.state.status.code == SecretUnavailable.code  # a Secret of the handler's own cluster
    return text if at_home else given.complete(text, row.target.cluster)


def _without_configuration(step: NextStep) -> NextStep:
    """Say what stands for a command that only a configured target has: what rolled the directory out knows where it is."""
    if step.text.startswith(_FIX.text):
        return NextStep("mend the files as said below; one that runs at an interval takes them by itself, else run the same command again")
    verb, _, rest = step.command.removeprefix("anneal ").partition(" ")
    if verb not in ("apply", "approve"):
        return step
    also = ["with", "--approve", rest.partition(" ")[2]] if verb == "approve" else []
    return NextStep(
        advice("{text} run the same `anneal locutus` or `anneal apply -f` command again{words}", step.text, also), urgent=step.urgent
    )


def _next_step(row: TargetRow, given: GivenFlags) -> NextStep:
    name, seen = row.target.name, str(row.trouble)
    if isinstance(row.trouble, TargetMoved):
        return NextStep(f"{_moved(name, seen)}; if that is meant, and anneal.yaml is right:", advice("anneal retarget {}", name))
    if isinstance(row.trouble, ClusterUnavailable):
        return NextStep(seen, follow_up_commands.reaching(row.target.cluster, given.kubectl))
    if row.trouble:
        return NextStep(seen, advice("anneal check {}", name) if row.trouble.code == AccessDenied.code else "")
    if pause := suspension(row.target, row.state, row.now):
        return _CONFIGURED if pause is CONFIGURED else NextStep("it is suspended; to go on:", advice("anneal resume {}", name))
    if row.state is None:
        lost = f"its record is missing, and {many(row.members or 0, 'object')} of it live: a run finds them again, and prunes nothing"
        seen = lost if row.members else "it has no record" if row.members is None else "it never ran"
        return _from_promoters(name, row.newest, seen) or NextStep(seen, advice("anneal apply {}", name))
    again = f"; live is looked at again {until(row.state.drift_due, row.now)}" if row.state.drift_due else ""
    return (
        _from_people(name, row.state)
        or _from_lease(name, row)
        or _from_git(row, failed=True)
        or _from_status(name, row.state.status, row)
        or _from_health(name, row.state.health, unserved=row.unserved)
        or _from_leftovers(row.target, row.state)
        or _from_git(row, failed=False)
        or _from_server(name, row)
        or _from_promoters(name, row.newest, "it is where it should be")
        or NextStep(f"nothing to do{again}", urgent=False)
    )


def _from_promoters(name: str, newest: NewestCommit | None, seen: str) -> NextStep | None:
    """Return what may be done for the next commit, which other targets haven't proven yet."""
    if newest is None or not newest.awaited:
        return None
    text = f"{seen}, and follows once more is proven, as said below"
    if held := next((each for each in newest.awaited if not each.due), None):
        return replace(_advised(text, held), urgent=False)
    return NextStep(f"{text}; without waiting for that:", advice("anneal promote {}", name), urgent=False)


def _moved(name: str, seen: str) -> str:
    lines = (line.rpartition(f"Target/{name}: ")[2].partition("; `anneal")[0] for line in seen.splitlines())
    return f"it belongs elsewhere: {', '.join(lines)}"


def _from_people(name: str, state: State) -> NextStep | None:
    if new := state.renamed_to:
        return NextStep(
            f"{quoted(str(new))} has taken over what it had: this configuration is an older one, and no run of this target writes"
        )
    if state.held and state.approval and state.approval.id == state.held.id and state.held.once == AS_CONFIGURED:
        return NextStep("its deletion is approved and runs next", advice("anneal apply {}", name), urgent=False)
    if state.held:
        going = sum(action != Action.UPDATE for action, _, _ in state.held.changes)
        what = f"{many(going, 'deletion')} {_verb(going, 'waits', 'wait')} for approval; to allow exactly {_verb(going, 'it', 'them')}:"
        return NextStep(what, allowing(name, state.held))
    return None


def _from_lease(name: str, row: TargetRow) -> NextStep | None:
    assert row.state is not None  # noqa: S101 - asked by the caller
    if row.lease and row.lease.renewing:
        looks = _looking(row.state.status)
        waits = ", and waits for what isn't gone yet, as said below; to see what holds it:" if looks else ""
        return NextStep(f"{quoted(row.lease.holder)} works on it now{waits}", looks, urgent=False)
    if row.lease:
        return NextStep(
            f"{quoted(row.lease.holder)} holds it and hasn't renewed for {row.lease.age:.0f} s; the next run takes over, or:",
            advice("anneal unlock {}", name),
        )
    status = row.state.status
    ended = status.phase == "failed" and status.who in ("author", "operator")  # what the last run came to stands in the record
    if row.state.attempt and not status.next_try and not ended:
        goes_on = ", and no server runs that would go on; now:" if row.unserved else "; the next one goes on from there, or now:"
        return NextStep(f"a run didn't finish{goes_on}", advice("anneal apply {}", name))
    return None


def _from_status(name: str, status: RunStatus, row: TargetRow) -> NextStep | None:
    if waits := _from_dependencies(advice("anneal apply {}", name), row.state, row) if row.state else None:
        return waits
    if status.phase in ("waiting", ROLLING):
        return _from_wait(name, status, row)
    return _from_failure(advice("anneal apply {}", name), status, row) if status.phase in ("failed", PRUNING) else None


def is_of_git_host(status: RunStatus, newest: NewestCommit | None) -> bool:
    """Whether a target's last run failed by what its git host still says."""
    return bool(newest and newest.trouble and status.phase == "failed" and status.message == str(newest.trouble))


def _from_git(row: TargetRow, *, failed: bool) -> NextStep | None:
    if not (row.state and row.newest and row.newest.trouble) or is_of_git_host(row.state.status, row.newest) != failed:
        return None
    then = _tries(advice("anneal apply {}", row.target.name), row)
    return NextStep(
        f"git can't be asked, as said below; once it can, {then}; to ask it the same:",
        follow_up_commands.asking(row.target.repository.url),
    )


def _from_failure(again: str, status: RunStatus, row: TargetRow) -> NextStep:
    if status.code == QuotaExceeded.code or any(each.kind == "ResourceQuota" for each in (status.refusal.facts if status.refusal else ())):
        return NextStep("a quota is full: its owner makes room, as said below, or git declares less; to try now:", again)
    return _from_what_it_names(again, status, row) or _from_author(again, status, row) or _from_next_try(again, status, row)


def _from_what_it_names(again: str, status: RunStatus, row: TargetRow) -> NextStep | None:
    if creates := _creating(row.target, status):
        return _without_namespace(creates, again, row)
    if status.code == AccessDenied.code:
        check = advice("anneal check {}", row.target.name)
        return NextStep(
            "access is denied, as said below; to see what grants it, or to go on once it is granted:", together(" && ", (check, again))
        )
    if looks := _looking(status):
        seen = advice("what is to go isn't gone yet, as said below; once it is, {text}; to see what holds it:", _tries(again, row))
        return NextStep(seen, looks, urgent=row.unserved)
    return None


def _creating(target: Target, status: RunStatus) -> str:
    """Return the command that makes the Namespaces which are all that a refusal lacks; empty: it lacks something else, too."""
    facts = status.refusal.facts if status.refusal and not status.refusal.again else ()
    missing = [each.name for each in facts if each.kind == "Namespace" and not each.seen and _may_be_made(target, each.name)]
    return together(" && ", (advice("kubectl create namespace {}", name) for name in missing)) if len(missing) == len(facts) else ""


def _may_be_made(target: Target, name: str) -> bool:
    return allows(target, name) and not FORMS["namespace"].complaint(name)


def _looking(status: RunStatus) -> str:
    """Return the command that shows why the first object isn't gone; empty: it isn't known which that is."""
    return kubectl("get", status.lingers, "-o", "yaml") if status.phase == PRUNING and status.lingers else ""


def _from_next_try(again: str, status: RunStatus, row: TargetRow) -> NextStep:
    if status.who != "nobody" or not status.next_try:
        return NextStep("do what is said below, then:", again)
    if row.unserved:
        return NextStep("no server runs that would try it again; to try now:", again)
    return NextStep(f"it is tried again {until(status.next_try, row.now)}; to try now:", again, urgent=False)


def _tries(again: str, row: TargetRow) -> str:
    return advice("`{text}` goes on, for no server runs", again) if row.unserved else "the next look goes on"


def _without_namespace(creates: str, again: str, row: TargetRow) -> NextStep:
    seen = "a Namespace is missing; to create it, if git isn't to declare it"
    if row.unserved:
        return NextStep(f"{seen}, and try again:", together(" && ", (creates, again)))
    return NextStep(f"{seen}, after which the next look goes on:", creates)


def _from_author(again: str, status: RunStatus, row: TargetRow) -> NextStep | None:
    if status.who != "author":
        return None
    seen = _FIX.text + _once_changed(status)
    failing = any(_has_pods(line) for line in row.state.health.worst) if row.state else False
    if status.code == RolloutFailed.code and failing:
        then = advice(", then `{text}`, for no server runs", again) if row.unserved else ""
        return NextStep(
            advice("{text}{text}; to see what its containers wrote:", seen, then), advice("anneal status {} --logs", row.target.name)
        )
    return NextStep(f"{seen}; no server runs, so then:", again) if row.unserved else replace(_FIX, text=seen)


def _from_dependencies(again: str, state: State, row: TargetRow) -> NextStep | None:
    """Say what the first target that it waits for needs."""
    if not (state.awaits and state.awaits.on and state.status.phase == "waiting"):
        return None
    first, *others = (each.testimony for each in state.awaits.on)
    more = f"; and for {' and '.join(each.target for each in others)}" if others else ""
    waits = f"{state.awaits.commit[:12]} waits for {first}{more}"
    seen = advice("{text}; once that is ready, {text}", waits, _tries(again, row))
    if first.target not in row.target.depends_on:  # a record that says so is another's
        return NextStep(seen, again)
    if row.unserved:
        now = advice("{text}; no server looks at {text} again; to do so now:", seen, first.target)
        return NextStep(now, advice("anneal apply {}", first.target))
    return _advised(seen, first)


def _advised(seen: str, obstacle: Obstacle) -> NextStep:
    """Say what helps a target that isn't ready for another. Only a command that was made here, of no record, is one to type."""
    if not (isinstance(obstacle.fix, Advice) and obstacle.fix.startswith("anneal ")):
        return NextStep(advice("{text}; {text}", seen, obstacle.fix))
    looks = obstacle.fix.startswith("anneal status ")
    return NextStep(advice("{text}; to see {text}:", seen, "how that stands" if looks else "to that"), obstacle.fix, urgent=not looks)


def _from_wait(name: str, status: RunStatus, row: TargetRow) -> NextStep:
    seen = "its rollout goes on" if status.phase == ROLLING else "what was applied isn't healthy yet"
    if row.unserved and not (row.lease and row.lease.renewing):
        return NextStep(f"{seen}, as said below, and no server runs that would look again; to look now:", advice("anneal apply {}", name))
    again = f"; it is looked at again {until(status.next_try, row.now)}" if status.next_try else ""
    return NextStep(f"{seen}, as said below{again}", urgent=False)


def _from_server(name: str, row: TargetRow) -> NextStep | None:
    head, state = row.newest.commit if row.newest else "", row.state
    behind = bool(head) and state is not None and head != state.commit
    newer = (f"{head[:12]} is proven" if row.target.revision.promoted else f"git is at {head[:12]}") if behind else ""
    if row.unserved:
        due = f"live is to be looked at again {until(state.drift_due, row.now)}" if state and state.drift_due else ""
        seen = f"{newer or due or 'nothing to do now'}, and {server_text(row)}"
        urgent = behind or row.pulse.last is not None
        return NextStep(
            f"{seen}; start `anneal serve` or `anneal run --trigger interval`, or now:", advice("anneal apply {}", name), urgent=urgent
        )
    return NextStep(f"{newer}, which the next look applies, or now:", advice("anneal apply {}", name), urgent=False) if behind else None


def server_text(row: TargetRow) -> str:
    """Say which server looks after a target and when it looked, or that none does, since when."""
    pulse, name = row.pulse, row.looked_after
    if not pulse.readable:
        return "whether a server runs isn't known: its heartbeat may not be read"
    looked = pulse.looked(name)
    seen = f"looked {span(pulse.now - looked)} ago" if looked else "hasn't looked yet"
    if server := pulse.server(name):
        return f"{quoted(server.name)} ({quoted(server.version)}) {seen}"
    if pulse.last is None:
        return "no server has ever looked after it"
    if pulse.runs(pulse.last):
        return f"no running server looks after it: {quoted(pulse.last.name)} has another configuration"
    since = max(looked, pulse.servers[pulse.targets[name][0]].renewed) if looked and pulse.targets[name][0] in pulse.servers else looked
    return f"no server has looked after it for {span(pulse.now - (since or pulse.last.renewed))}"


def _once_changed(status: RunStatus) -> str:
    """Say what of the cluster may change instead of the commit; empty: nothing that is known."""
    facts = list(dict.fromkeys(map(str, status.refusal.facts))) if status.refusal else []
    more = f" and {len(facts) - _NAMED} more" if len(facts) > _NAMED else ""
    return f"; it is tried again, too, once something changes about {', '.join(facts[:_NAMED])}{more}" if facts else ""


def _has_pods(line: str) -> bool:
    return line.partition("/")[0] in _WITH_LOGS and not line.endswith(_GONE)


def _from_health(name: str, health: TargetHealth, *, unserved: bool) -> NextStep | None:
    if health.state == HealthState.DEGRADED and all(line.endswith(_GONE) for line in health.worst):
        return NextStep("what git declares is gone from the cluster; to bring it back:", advice("anneal apply {}", name))
    if health.state == HealthState.DEGRADED and any(map(_has_pods, health.worst)):
        return NextStep("it is degraded, as said below; to see what its containers wrote:", advice("anneal status {} --logs", name))
    if health.state == HealthState.DEGRADED:
        return NextStep("it is degraded, as said below")
    if health.state == HealthState.UNKNOWN and health.since:
        return NextStep("how it does isn't known, as said below; to judge it now:", advice("anneal apply {}", name))
    if health.state == HealthState.PROGRESSING:
        looks = "; no server looks again; to do so now:" if unserved else ""
        return NextStep(
            f"not all of it is healthy yet, as said below{looks}", advice("anneal apply {}", name) if unserved else "", urgent=False
        )
    return NextStep("it is healthy, with what is noted below", urgent=False) if health.notes else None


def _from_leftovers(target: Target, state: State) -> NextStep | None:
    if state.drift:
        return _from_drift(target.name, state.drift)
    if state.pin and state.pin.automatic:
        return NextStep(
            "its newest commit failed and was rolled back: push what mends it; to try the same once more:",
            advice("anneal unpin {}", target.name),
        )
    if state.pin:
        return NextStep("it is pinned; to follow the branch again:", advice("anneal unpin {}", target.name), urgent=False)
    siblings = sorted({orphan.sibling for orphan in state.orphans if orphan.sibling})
    if siblings:
        return NextStep(
            f"what it has given up isn't taken yet; to let {quoted(siblings[0])} take it:",
            advice("anneal apply {}", siblings[0]),
            urgent=False,
        )
    return _from_orphans(target, state.orphans)


def _from_orphans(target: Target, orphans: Sequence[Orphan]) -> NextStep | None:
    spaces = (each.identity.namespace for each in orphans)
    if outside := next((space for space in spaces if space and not allows(target, space)), ""):
        seen = f"namespace {outside} left its whitelist, and what it has there stays; to see what --prune deletes (--keep lets go of it):"
        return NextStep(seen, advice("anneal retire {} --namespace {} --prune --dry-run", target.name, outside), urgent=False)
    if unmarked := sum(orphan.unmarked for orphan in orphans):
        seen = f"{many(unmarked, 'object')} of exclusive namespaces {_verb(unmarked, 'is', 'are')} not declared"
        command, expires = advice("anneal orphans {}", target.name), any(orphan.until for orphan in orphans)
        return NextStep(f"{seen}; to see what becomes of {_verb(unmarked, 'it', 'them')}, and what keeps:", command, urgent=expires)
    if left := len(orphans):
        seen = f"{many(left, 'object')} {_verb(left, 'is', 'are')} no longer declared; to see whether {_verb(left, 'it', 'they')} may go:"
        return NextStep(seen, advice("anneal prune {} --dry-run", target.name), urgent=False)
    return None


def _from_drift(name: str, drift: Sequence[Drift]) -> NextStep:
    fields, objects = sum(bool(each.path) for each in drift), sum(not each.path for each in drift)
    seen = " and ".join(many(number, what) for number, what in ((objects, "object"), (fields, "field")) if number)
    one = fields + objects == 1
    return NextStep(
        f"{seen} {_verb(one, 'differs', 'differ')} from git; to bring {_verb(one, 'it', 'them')} back:", advice("anneal apply {}", name)
    )


def _verb(number: int, one: str, more: str) -> str:
    return one if number == 1 else more


def pinned_text(state: State, now: float) -> str:
    """Say to what a target is pinned, by whom and since when."""
    pin = state.pin
    return f"{pin.commit[:12]} by {quoted(pin.by) or 'an unknown user'} {ago(pin.at, now)}: {quoted(pin.reason)}" if pin else ""
