"""Due hooks, dry-run before the first write: a migration that the server would refuse must not be found out when half is applied.

Law: a hook for which a live object makes way is tried under a scratch name. What a hook deletes is in the plan: counted, unless a rollout
made it as this hook. What isn't ours is never deleted for a hook; nor is what others than the hook itself protect.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from handler.cluster.live import probe
from handler.cluster.parallel import parallel
from handler.cluster.write import DryRunner
from handler.engine.planner.dry_run import DryRun
from handler.engine.planner.server_answers import NO_DRY_RUN, Finding
from handler.engine.planner.stand_in import mistakes_of, scratch
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, ApiRefused, ClusterUnavailable, Problem
from handler.model.names import Identity, kubectl, uid_and_version
from handler.model.plan import SAID, Action, Cause, Change, Due
from handler.model.rollout import Hook, Policy
from handler.plan import missing_objects
from handler.plan.admission import Desired
from handler.plan.hooks import PlannedHooks, is_made
from handler.plan.inventory import Membership, is_member
from handler.plan.judge import NO_HOOK_TAKES
from handler.plan.managed_fields import is_ours_alone
from handler.plan.prune import kept_by_itself
from handler.plan.retention import lost_by_write
from handler.plan.steering import left_alone
from handler.rollout.hook_annotations import ROLLOUT, is_act, lasts

_AFTERWARDS = frozenset({Policy.SUCCEEDED, Policy.FAILED})


def replaces(hook: Hook) -> bool:
    """Whether what lives under a hook's name is deleted before it runs: by its policy, or for it can't be run again otherwise."""
    return not lasts(hook.identity.group_kind) and (Policy.BEFORE in hook.policies or is_act(hook.identity))


def makes_way(item: Desired, hook: Hook, live: dict[str, Any]) -> bool:
    """Whether what lives under a hook's name is deleted before it runs; what is protected is written over instead.

    But for a Job and the like, which can't be changed: that goes, or stops the plan (`in_the_way`).
    """
    return replaces(hook) and (is_act(hook.identity) or not kept(item, live))


def kept(item: Desired, live: dict[str, Any]) -> str:
    """Return what keeps a hook's object from being deleted; empty: nothing. A protection that the hook itself declares doesn't."""
    own, meta = item.manifest.body()["metadata"], live["metadata"]
    made = is_made(live)
    others = {
        part: {
            key: value
            for key, value in (meta.get(part) or {}).items()
            if (own.get(part) or {}).get(key) != value and not (made and is_ours_alone(live, ("metadata", part, key)))
        }
        for part in ("annotations", "labels")
    }
    declared = [each.get("uid") for each in own.get("ownerReferences") or ()]
    owners = [each for each in meta.get("ownerReferences") or () if each.get("uid") not in declared]
    return kept_by_itself({**live, "metadata": {**meta, **others, "ownerReferences": owners}})


def in_the_way(item: Desired, hook: Hook, live: dict[str, Any]) -> Problem | None:
    """Say what keeps one of ours from making way for a hook that can't run beside it, or None."""
    goes = makes_way(item, hook, live)
    mark = kept(item, live) if goes else left_alone(live)
    if not mark:
        return None
    seen = f"lives already, and this hook would have to {'delete' if goes else 'write'} it, but: {mark}"
    return Problem(str(item.identity), seen, item.manifest.place, "lift what keeps it from the live object, or give the hook another name")


def ever_deletes(hook: Hook) -> bool:
    """Whether one of a hook's policies, or its kind, has its object deleted at any time."""
    return not lasts(hook.identity.group_kind) and (replaces(hook) or bool(hook.policies & _AFTERWARDS))


def deletions(
    ours: Membership, hooks: Mapping[Identity, dict[str, Any]], planned_hooks: PlannedHooks, due: Iterable[Due], under_way: str = ""
) -> dict[Identity, Change]:
    """Return what due hooks delete of members that live under their names (`hooks`), as changes. `under_way`: see `tried`."""
    found: dict[Identity, Change] = {}
    for each in due:
        one, hook, live = each.identity, planned_hooks.hooks.get(each.identity), hooks.get(each.identity)
        if hook and live and one not in found and is_member(live, one, ours) and not _stays(planned_hooks.items[one], hook, live):
            runs = under_way and (live["metadata"].get("annotations") or {}).get(ROLLOUT) == f"{each.group} {under_way}"
            cause = Cause.REPEATED if is_made(live) else Cause.HOOK
            if not runs or hook.policies & _AFTERWARDS:
                action = Action.PRUNE if Policy.SUCCEEDED in hook.policies else Action.RECREATE
                item = planned_hooks.items[one]
                found[one] = Change(action, one, *uid_and_version(live), SAID[cause], manifest=item.manifest, cause=cause)
    return found


def _stays(item: Desired, hook: Hook, live: dict[str, Any]) -> bool:
    return not ever_deletes(hook) or bool(kept(item, live)) or bool(live["metadata"].get("deletionTimestamp"))


def tried(decision: DryRun, planned_hooks: PlannedHooks, due: Iterable[Identity], under_way: str = "") -> list[Finding]:
    """Dry-run the due hooks in parallel; return every mistake. `under_way`: `due.token` of the rollout that goes on, whose objects stay."""
    found: list[Finding] = []
    items, hooks = planned_hooks.items, planned_hooks.hooks
    for answer in parallel([partial(_try, decision, items[one], hooks[one], under_way) for one in sorted(set(due))]):
        if isinstance(answer, AnnealError):
            raise answer
        found += answer
    return found


def _try(decision: DryRun, item: Desired, hook: Hook, under_way: str) -> list[Finding]:
    ask = partial(_asked, decision, item, hook, under_way)
    try:
        return ask()
    except ClusterUnavailable as error:
        decision.notes.append(f"{item.identity}: {decision.missing.dead.unjudged(item, error, ask)}")
        return []


def _asked(decision: DryRun, item: Desired, hook: Hook, under_way: str) -> list[Finding]:
    if not decision.is_served(item.resource):
        return decision.postponed(item)
    identity = item.identity
    live = decision.comparison.hooks.get(identity)
    live = live or probe(decision.api, [(item.resource, identity.namespace, identity.name)]).get(identity)
    refusal = (_refusal(decision, item, hook, live, under_way) or _losing(item, hook, live)) if live else None
    if refusal:
        return [refusal]
    if decision.target.validate == "none":
        return []
    if any(need in decision.missing.absent for need in item.needs):
        return decision.postponed(item)
    return _dry_run(decision, item, scratch(item.manifest.body(), item) if live and makes_way(item, hook, live) else item.manifest.body())


def _refusal(decision: DryRun, item: Desired, hook: Hook, live: dict[str, Any], under_way: str) -> Problem | None:
    if is_member(live, item.identity, decision.ours):
        meta = live["metadata"]
        mine = under_way and str((meta.get("annotations") or {}).get(ROLLOUT, "")).endswith(f" {under_way}")
        return None if mine or meta.get("deletionTimestamp") else in_the_way(item, hook, live)
    refusal = decision.judge.refusal_to_use(item, live, NO_HOOK_TAKES)
    if refusal or not ever_deletes(hook):
        return refusal
    seen = "lives already, isn't ours, and this hook would have to delete it"
    fix = advice("give the hook another name; or, if nothing needs it, delete it by hand: {text}", kubectl("delete", item.identity))
    return Problem(str(item.identity), seen, item.manifest.place, fix)


def _losing(item: Desired, hook: Hook, live: dict[str, Any]) -> Problem | None:
    """Say what a hook that writes over what lives would have Kubernetes delete, or None."""
    waits = makes_way(item, hook, live) or live["metadata"].get("deletionTimestamp")
    lost = () if waits else lost_by_write(live, item.manifest.body())
    if not lost:
        return None
    seen = f"lives already, and once this hook has written it, {lost[0]}{f' and {len(lost) - 1} more' if len(lost) > 1 else ''}"
    return Problem(str(item.identity), seen, item.manifest.place, "take the hook's annotation off it: what goes is then in the plan")


def _dry_run(decision: DryRun, item: Desired, body: dict[str, Any]) -> list[Finding]:
    try:
        DryRunner(decision.api).check(item.resource, body)
    except (ApiRefused, AccessDenied) as error:
        if NO_DRY_RUN in error.words:
            decision.notes.append(f"{item.identity}: an admission webhook does not support dry run; checked when it is run")
            return []
        if decision.missing.first(item, error):
            return [*mistakes_of(decision.api, item, missing_objects.without(item))]
        return decision.missing.mistakes(item, error)
    return []
