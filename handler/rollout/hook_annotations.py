"""Annotations -> Hook: objects of git that are acts, as Argo CD and Helm mark them, read the way Argo CD reads them. Pure.

    argocd.argoproj.io/hook                PreSync, Sync, PostSync, SyncFail, Skip; PreDelete, PostDelete: never by a sync
    argocd.argoproj.io/hook-delete-policy  BeforeHookCreation (default), HookSucceeded, HookFailed
    helm.sh/hook                           pre-install, pre-upgrade -> PreSync; post-install, post-upgrade -> PostSync; the rest: never
    helm.sh/hook-delete-policy             before-hook-creation, hook-succeeded, hook-failed

Where an object has both, Argo CD's count. No hook is `crd-install`, and what others need to exist at all: a Namespace or CRD is applied
before everything, and no policy ever deletes it. A word that Argo CD would pass over is refused: a migration that silently never runs costs
more than a typo.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from handler.model.errors import Problem
from handler.model.health import Health, Status
from handler.model.manifest import at, items_at
from handler.model.names import ACTS, LASTING, GroupKind, Identity
from handler.model.numbers import whole
from handler.model.rollout import ARGO_HOOK, HELM_HOOK, Hook, Phase, Policy
from handler.model.tree import printable

ARGO_POLICY, HELM_POLICY = "argocd.argoproj.io/hook-delete-policy", "helm.sh/hook-delete-policy"
ARGO_WAVE, HELM_WEIGHT = "argocd.argoproj.io/sync-wave", "helm.sh/hook-weight"
ROLLOUT = "anneal.dev/rollout"
"""Annotation on a live hook: the rollout and phase that it was created by, so that a successor knows its own."""
_NEVER = Phase.SKIP
_ARGO_PHASES = {str(phase): phase for phase in Phase} | {"PreDelete": _NEVER, "PostDelete": _NEVER}
_HELM_PHASES = {
    "pre-install": Phase.PRE_SYNC,
    "pre-upgrade": Phase.PRE_SYNC,
    "post-install": Phase.POST_SYNC,
    "post-upgrade": Phase.POST_SYNC,
    **dict.fromkeys(("pre-delete", "post-delete", "pre-rollback", "post-rollback", "test", "test-success", "test-failure"), _NEVER),
}
_CRD_INSTALL = "crd-install"
_ARGO_POLICIES = {str(policy): policy for policy in Policy}
_HELM_POLICIES = {"before-hook-creation": Policy.BEFORE, "hook-succeeded": Policy.SUCCEEDED, "hook-failed": Policy.FAILED}
_HOLDERS = frozenset({GroupKind("", "Namespace"), GroupKind("apiextensions.k8s.io", "CustomResourceDefinition")})
_MAX_STRANGE, _SHOWN = 5, 80  # unknown words of one annotation that are named, and characters of each
_JOB, _POD, _WORKFLOW = GroupKind("batch", "Job"), GroupKind("", "Pod"), GroupKind("argoproj.io", "Workflow")


@dataclass(frozen=True, slots=True)
class HookRead:
    """What annotations make of an object. `hook`: None: an ordinary one; `note`: what a person should know of it."""

    hook: Hook | None = None
    note: str = ""
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Words:
    identity: Identity
    place: str
    annotations: Mapping[str, Any]
    problems: list[Problem] = field(default_factory=list)

    def list_of(self, name: str) -> list[str]:
        return [word.strip() for word in str(self.annotations.get(name) or "").split(",") if word.strip()]

    def known(self, name: str, meanings: Mapping[str, Any]) -> list[str]:
        words = self.list_of(name)
        strange = list(dict.fromkeys(each for each in words if each not in meanings))
        for word in [printable(each, _SHOWN) for each in strange[:_MAX_STRANGE]]:
            near = difflib.get_close_matches(word, meanings, n=1, cutoff=0.6)
            hint = f"did you mean {near[0]}? Known are " if near else "known are "
            self.problems.append(Problem(str(self.identity), f"{name}: {word!r} is unknown", self.place, hint + ", ".join(meanings)))
        if len(strange) > _MAX_STRANGE:
            self.problems.append(Problem(str(self.identity), f"{name}: {len(strange) - _MAX_STRANGE:,} more words are unknown", self.place))
        return [word for word in words if word in meanings]

    def number(self, name: str) -> int:
        try:
            return whole(str(self.annotations.get(name) or "0"))
        except ValueError:
            seen = f"{name}: {printable(str(self.annotations.get(name)), _SHOWN)!r} is not a whole number"
            self.problems.append(Problem(str(self.identity), seen, self.place, 'write it as a string, e.g. "-1"'))
            return 0


def read(body: Mapping[str, Any], identity: Identity, place: str) -> HookRead:
    """Read what an object's annotations make of it; `place`: its file:line."""
    annotations = at(body, "metadata", "annotations")
    if not isinstance(annotations, dict) or not (annotations.get(ARGO_HOOK) or annotations.get(HELM_HOOK)):
        return HookRead()
    words = _Words(identity, place, annotations)
    found, phases = _phases(words)
    wave = words.number(ARGO_WAVE if annotations.get(ARGO_WAVE) else HELM_WEIGHT)
    policies = _policies(words)
    if words.problems:
        return HookRead(problems=tuple(words.problems))
    if found == [_CRD_INSTALL]:
        return HookRead()
    if identity.group_kind in _HOLDERS and phases - {_NEVER}:
        return HookRead(note=f"{identity}: is applied like any other object, not as a {', '.join(found)} hook")
    runs = phases - {_NEVER} or frozenset({_NEVER})
    return HookRead(Hook(identity, runs, wave, policies), _note(identity, found, runs))


def _phases(words: _Words) -> tuple[list[str], frozenset[Phase]]:
    if words.list_of(ARGO_HOOK):
        found = words.known(ARGO_HOOK, _ARGO_PHASES)
        return found, frozenset(_ARGO_PHASES[word] for word in found)
    found = words.known(HELM_HOOK, _HELM_PHASES | {_CRD_INSTALL: _NEVER})
    return found, frozenset(_HELM_PHASES.get(word, _NEVER) for word in found)


def _policies(words: _Words) -> frozenset[Policy]:
    if words.list_of(ARGO_POLICY):
        return frozenset(_ARGO_POLICIES[word] for word in words.known(ARGO_POLICY, _ARGO_POLICIES))
    found = frozenset(_HELM_POLICIES[word] for word in words.known(HELM_POLICY, _HELM_POLICIES))
    return found or frozenset({Policy.BEFORE})


def _note(identity: Identity, found: list[str], runs: frozenset[Phase]) -> str:
    if lasts(identity.group_kind) and runs != {_NEVER}:
        return f"{identity}: is created as a {', '.join(found)} hook, and no policy ever deletes it: data would go with it"
    never = [word for word in found if word != str(_NEVER) and {**_HELM_PHASES, **_ARGO_PHASES}.get(word, _NEVER) is _NEVER]
    if not never:
        return ""
    also = "" if runs == {_NEVER} else f"; it runs as {', '.join(sorted(runs))}"
    return f"{identity}: hook {', '.join(never)} is never run by a rollout{also}"


def lasts(kind: GroupKind) -> bool:
    """Whether deleting an object of this kind loses data: no policy of a hook does that."""
    return kind in LASTING


def is_act(identity: Identity) -> bool:
    """Whether a kind runs to an end and can't be run again but by another object: what an earlier rollout left is in its way."""
    return identity.group_kind in ACTS


def has_ttl(body: Mapping[str, Any]) -> bool:
    """Whether the object goes by itself once it has ended."""
    return at(body, "spec", "ttlSecondsAfterFinished") is not None or at(body, "spec", "ttlStrategy") is not None


def is_over(live: Mapping[str, Any], identity: Identity) -> bool:
    """Whether what runs to its own end has ended well."""
    if identity.group_kind == _JOB:
        return _is(live, "Complete")
    return identity.group_kind in (_POD, _WORKFLOW) and at(live, "status", "phase") == "Succeeded"


def _is(live: Mapping[str, Any], condition: str) -> bool:
    return any(at(each, "type") == condition and at(each, "status") == "True" for each in items_at(live, "status", "conditions"))


def ended(live: Mapping[str, Any], identity: Identity) -> Health | None:
    """Judge a hook that runs to its own end (a Pod must have succeeded, an Argo Workflow ends by its phase); None: as any of its kind."""
    if at(live, "metadata", "deletionTimestamp") or is_over(live, identity):
        return None
    phase = str(at(live, "status", "phase") or "")
    if identity.group_kind == _WORKFLOW:
        failed = phase in ("Failed", "Error")
        text = str(at(live, "status", "message") or f"is {phase or 'not started'}")
        return Health(Status.FAILED if failed else Status.IN_PROGRESS, text)
    if identity.group_kind == _POD and phase == "Running" and (at(live, "spec", "restartPolicy") or "Always") != "Always":
        return Health(Status.IN_PROGRESS, "still runs") if _is(live, "Ready") else None
    if identity.group_kind == _JOB and at(live, "spec", "suspend") is True and not _is(live, "Failed"):
        return Health(Status.IN_PROGRESS, "is suspended: it runs once it is resumed")
    return None
